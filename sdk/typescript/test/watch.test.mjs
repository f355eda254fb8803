import assert from "node:assert/strict";
import { test } from "node:test";
import { Codeq } from "codeq";
import { Events, Proxy, Server } from "./kit.mjs";

const server = await Server.start();
const proxy = await Proxy.start(server.port);

/** watch collects the news of a watch until the end of a test. */
function watch(t, subscription, { url = proxy.url, ...options } = {}) {
  const events = new Events(), stop = new AbortController();
  const w = new Codeq({ url, notice: () => {} }).watch(subscription, { signal: stop.signal, ...options });
  const done = (async () => {
    for await (const news of w) events.push(news);
  })().catch((e) => e);
  t.after(async () => {
    stop.abort(new Error("over"));
    assert.equal((await done)?.message, "over");
  });
  return { events, w };
}

const began = (w) => new Promise((done) => {
  const look = () => (w.position ? done() : setTimeout(look, 10));
  look();
});

test("events come once each, also over a cut and a restart", async (t) => {
  const { events, w } = watch(t, { kind: "events", commands: ["w.e"], causes: ["enqueue"] });
  await began(w);
  const client = server.client(), made = [];
  for (let i = 0; i < 6; i++) {
    made.push((await client.enqueue("w.e", i)).id);
    if (i === 1) proxy.cut();
    if (i === 3) await events.until((e) => e.task === made[3]);
  }
  await events.until((e) => e.task === made[5]);
  assert.deepEqual(events.all.map((e) => e.task), made);
  const { creationId } = w.position;
  await server.kill();
  await server.begin();
  made.push((await client.enqueue("w.e", 7)).id);
  await events.until((e) => e.task === made[6] || e.type === "gap");
  assert.equal(w.position.creationId, creationId);
});

test("a watch goes on behind a stored position, and a gap tells what is gone", async (t) => {
  const client = server.client();
  const first = watch(t, { kind: "events", commands: ["w.p"] });
  await began(first.w);
  const a = await client.enqueue("w.p", 1);
  await first.events.until((e) => e.task === a.id);
  const position = JSON.parse(JSON.stringify(first.w.position));
  const b = await client.enqueue("w.p", 2);
  const second = watch(t, { kind: "events", commands: ["w.p"], from: position });
  await second.events.until((e) => e.task === b.id);
  assert.deepEqual(second.events.all.map((e) => e.task), [b.id]);
  await server.kill();
  await server.begin();
  const third = watch(t, { kind: "events", commands: ["w.p"], from: { ...position, positions: Object.fromEntries(Object.keys(position.positions).map((s) => [s, 0])) } });
  const gap = await third.events.of("gap");
  assert.equal(gap.reason, "evicted");
  const other = watch(t, { kind: "events", from: { ...position, creationId: "00000000-0000-7000-8000-000000000000" } });
  assert.equal((await other.events.of("gap")).reason, "replaced");
});

test("a task is shown with its transitions, its progress and its output, once each", async (t) => {
  const client = server.client();
  const task = await client.enqueue("w.t", 1);
  const { events } = watch(t, { kind: "task", taskId: task.id });
  assert.equal((await events.of("task")).task.status, "PENDING");
  let cut;
  const cuts = new Promise((done) => (cut = done));
  const worker = client.worker({ signals: false, handlers: { "w.t": async (job) => { job.progress(10); job.output("a\n"); await cuts; job.progress(20); job.output("b\n"); return {}; } } });
  const done = worker.run();
  await events.of("output");
  proxy.cut();
  await events.of("task", 2);
  cut();
  await events.until((e) => e.type === "event" && e.status === "COMPLETED");
  assert.deepEqual(events.all.filter((e) => e.type === "output").map((e) => e.text), ["a\n", "b\n"]);
  assert.deepEqual(events.all.filter((e) => e.type === "progress").map((e) => e.percent), [10, 20]);
  worker.drain();
  await done;
});

test("figures of queues, pages, sessions and the server are whole", async (t) => {
  const client = server.client();
  await Promise.all([1, 2, 3].map((n) => client.enqueue("w.q", n)));
  const { events } = watch(t, { kind: "queues", commands: ["w.*"], everyMs: 250 });
  const { queues } = await events.until((e) => e.queues.some((q) => q.command === "w.q" && q.ready === 3));
  const figures = queues.find((q) => q.command === "w.q");
  assert.deepEqual([figures.paused, figures.inProgress, figures.tenant], [false, 0, "default"]);
  await client.enqueue("w.q", 4);
  await events.until((e) => e.queues.some((q) => q.command === "w.q" && q.ready === 4));
  proxy.cut();
  await client.enqueue("w.q", 5);
  await events.until((e) => e.queues.some((q) => q.command === "w.q" && q.ready === 5));
  const page = watch(t, { kind: "page", command: "w.q", state: "ready", limit: 3 });
  const { tasks } = await page.events.of("tasks");
  assert.equal(tasks.length, 3);
  await client.cancel(tasks[1].id);
  assert.deepEqual((await page.events.until((e) => e.tasks.length === 2)).tasks.map((x) => x.id), [tasks[0].id, tasks[2].id]);
  assert((await watch(t, { kind: "server" }).events.of("server")).server.shards.length > 0);
  assert.deepEqual((await watch(t, { kind: "workers" }).events.of("workers")).sessions, []);
});

test("a loop that is slow gets a gap, and the watch does not grow", async (t) => {
  const client = server.client();
  const w = client.watch({ kind: "events", commands: ["w.s"], causes: ["enqueue"], maxPerSecond: 1000 }, { buffer: 5 });
  const it = w[Symbol.asyncIterator]();
  const next = it.next();
  await began(w);
  const beside = watch(t, { kind: "events", commands: ["w.s"], causes: ["enqueue"], maxPerSecond: 1000 });
  await began(beside.w);
  await Promise.all(Array.from({ length: 60 }, (_, i) => client.enqueue("w.s", i)));
  await beside.events.of("event", 60);
  await new Promise((d) => setTimeout(d, 300));
  const news = [(await next).value];
  while (news.at(-1).type !== "gap") news.push((await it.next()).value);
  assert.equal(news.at(-1).reason, "slow");
  assert(news.length <= 7);
  await it.return();
});

test("a refusal that will not change is thrown", async () => {
  const client = server.client();
  await assert.rejects((async () => { for await (const _ of client.watch({ kind: "page", command: "w q", state: "ready" })); })(), (e) => e.code.startsWith("invalid_"));
  const w = client.watch({ kind: "server" });
  for await (const _ of w) break;
  await assert.rejects((async () => { for await (const _ of w); })(), TypeError);
});
