import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Codeq, CodeqError, PermanentError, ReleaseError, RetryError } from "codeq";
import { Events, Server, gate, program } from "./kit.mjs";

const server = await Server.start();

/** work runs a worker for the time of a test. */
function work(t, options, from = server) {
  const events = new Events(), client = from.client();
  const worker = client.worker({ on: events.push, signals: false, ...options });
  const done = worker.run();
  done.catch(() => {}); // a test that minds awaits it
  t.after(async () => {
    worker.stop();
    await done.catch(() => {});
  });
  return { worker, events, client, done };
}

test("a worker does tasks of several commands in one window", async (t) => {
  let most = 0, now = 0;
  const slow = (f) => async (job) => {
    most = Math.max(most, ++now);
    await new Promise((done) => setTimeout(done, 20));
    now--;
    return f(job);
  };
  const { client, worker, done } = work(t, { concurrency: 3, handlers: { "w.double": slow((job) => ({ n: job.payload * 2 })), "w.upper": slow((job) => ({ s: job.payload.toUpperCase() })) } });
  const tasks = await client.enqueueBatch(Array.from({ length: 12 }, (_, i) => (i % 2 ? { command: "w.double", payload: i } : { command: "w.upper", payload: `a${i}` })));
  const results = await Promise.all(tasks.map((b) => b.task.result()));
  assert.deepEqual(results.slice(0, 4), [{ s: "A0" }, { n: 2 }, { s: "A2" }, { n: 6 }]);
  assert.equal(most, 3);
  worker.drain();
  await done;
});

test("what a handler returns or throws decides what becomes of its task", async (t) => {
  const { client, events } = work(t, {
    concurrency: 4,
    handlers: {
      "e.nothing": () => {},
      "e.error": () => { throw new Error("busy"); },
      "e.later": () => { throw new RetryError(7000, new Error("not yet")); },
      "e.never": () => { throw new Error("outer", { cause: new PermanentError("no such file") }); },
      "e.back": (job) => { if (job.delivery === 1) throw new ReleaseError(); return { delivery: job.delivery, attempts: job.attempts }; },
      "e.array": () => [1],
      "e.bigint": () => ({ n: 1n }),
      "e.large": () => ({ text: "x".repeat(3 << 20) }),
      "e.string": () => { throw "just a text"; },
    },
  });
  const settled = async (command) => {
    const task = await client.enqueue(command, null, { maxAttempts: 2 });
    return events.until((e) => e.type === "settled" && e.job.id === task.id);
  };
  assert.deepEqual(await (await client.enqueue("e.nothing")).result(), {});
  const error = await settled("e.error");
  assert.equal(error.outcome, "nacked");
  assert.equal(error.error, undefined);
  assert.equal((await client.task(error.job.id)).error, "busy");
  assert.equal((await settled("e.later")).retryAfterMs, 7000);
  const never = await settled("e.never");
  assert.equal(never.outcome, "failed");
  await assert.rejects(client.result(never.job.id), (e) => e instanceof CodeqError && e.code === "task_failed" && e.result.error === "outer" && !e.retryable);
  const back = await client.enqueue("e.back");
  assert.deepEqual(await back.result(), { delivery: 2, attempts: 0 });
  for (const [command, reason] of [["e.array", /an array/], ["e.bigint", /not JSON/], ["e.large", /more than 1048576 bytes/], ["e.string", /just a text/]]) {
    const { job, outcome } = await settled(command);
    assert.equal(outcome, "nacked");
    assert.match((await client.task(job.id)).error, reason);
  }
});

test("work that cannot begin is handed back, and the worker rests", async (t) => {
  let calls = 0;
  const { client } = work(t, { handlers: { "n.a": () => { if (++calls === 1) throw new ReleaseError("no database", { started: false }); return { calls }; } } });
  const began = Date.now();
  const task = await client.enqueue("n.a");
  assert.deepEqual(await task.result(), { calls: 2 });
  assert(Date.now() - began >= 900, "it rested");
  assert.equal((await client.task(task.id)).attempts, 0);
  assert.match(client.notices.join(), /could not begin: no database/);
});

test("middleware goes around handlers", async (t) => {
  const said = [];
  const { client } = work(t, {
    handlers: { "m.a": (job) => { said.push(`work ${job.payload}`); return { n: 1 }; } },
    middleware: [
      async (job, next) => { said.push("in 1"); const r = await next(); said.push("out 1"); return { ...r, more: job.command }; },
      async (job, next) => { said.push("in 2"); try { return await next(); } finally { said.push("out 2"); } },
    ],
  });
  assert.deepEqual(await (await client.enqueue("m.a", 5)).result(), { n: 1, more: "m.a" });
  assert.deepEqual(said, ["in 1", "in 2", "work 5", "out 2", "out 1"]);
});

test("a cancelled task ends the signal of its job, and says why", async (t) => {
  const began = gate();
  const { client, events } = work(t, { handlers: { "c.a": (job) => new Promise((_, fail) => { began.open(); job.signal.addEventListener("abort", () => fail(job.signal.reason)); }) } });
  const task = await client.enqueue("c.a");
  await began.opened;
  assert.equal((await client.cancel(task.id)).status, "CANCELLED");
  const { job, error } = await events.of("settled");
  assert.equal(job.signal.reason.code, "cancelled");
  assert.equal(error.code, "cancelled");
  await assert.rejects(task.result(), { code: "task_cancelled", taskStatus: "CANCELLED" });
});

test("the end of a run ends the signal with timeout", async (t) => {
  const { client, events } = work(t, { handlers: { "r.a": (job) => new Promise((_, fail) => job.signal.addEventListener("abort", () => fail(job.signal.reason))) } });
  await client.enqueue("r.a", null, { timeoutSeconds: 1, maxAttempts: 1 });
  const { job } = await events.of("settled");
  assert.equal(job.signal.reason.code, "timeout");
});

test("a lost lease ends the signal, and a late result still counts", async (t) => {
  const began = gate(), lost = gate(), finish = gate();
  const { client, events } = work(t, { handlers: { "l.a": async (job) => { job.signal.addEventListener("abort", lost.open); began.open(); await finish.opened; return { delivery: job.delivery }; } } });
  const task = await client.enqueue("l.a");
  await began.opened;
  await server.admin("POST", `/admin/tasks/${task.id}/take-back`, {});
  await lost.opened;
  finish.open();
  const { error } = await events.of("settled");
  assert.equal(error?.code, "lease_lost");
  assert.deepEqual(await task.result(), { delivery: 2 });
});

test("progress and output reach who watches", async (t) => {
  const { client } = work(t, { handlers: { "p.a": async (job) => {
    job.progress(40);
    job.progress({ percent: 50, note: "half", data: { page: 2 } });
    job.output("page 1\n");
    job.output("💥".repeat(5000), "stderr");
    await new Promise((d) => setTimeout(d, 100));
    return {};
  } } });
  const task = await client.enqueue("p.a");
  await task.result();
  const { progress, printed } = await client.task(task.id);
  assert.equal(progress.percent, 50);
  assert.equal(progress.note, "half");
  assert.deepEqual(progress.data, { page: 2 });
  assert.equal(printed, true);
  assert.deepEqual(client.notices, []);
});

test("a handler that blocks the event loop is told of", async (t) => {
  const { client, events } = work(t, { leaseSeconds: 1, handlers: { "b.a": () => { for (const until = Date.now() + 1500; Date.now() < until; ); } } });
  await client.enqueue("b.a");
  await events.of("settled");
  assert.match(client.notices.join(), /a handler blocked the event loop/);
});

test("a drained worker finishes what runs and hands back the rest", async (t) => {
  const began = gate(), finish = gate();
  const { client, worker, done } = work(t, { concurrency: 1, handlers: { "d.a": async (job) => { began.open(); await finish.opened; return { draining: job.draining.aborted }; } } });
  const task = await client.enqueue("d.a");
  await began.opened;
  worker.drain();
  const other = await client.enqueue("d.a");
  finish.open();
  await done;
  assert.deepEqual(await task.result(), { draining: true });
  assert.equal((await client.task(other.id)).status, "PENDING");
  await assert.rejects(worker.run(), TypeError);
});

test("a drain with a deadline ends the signals with stopping, and no attempt counts", async (t) => {
  const began = gate();
  const { client, worker, done } = work(t, { handlers: { "d.b": (job) => new Promise((_, fail) => { began.open(); job.signal.addEventListener("abort", () => fail(job.signal.reason)); }) } });
  const task = await client.enqueue("d.b");
  await began.opened;
  worker.drain({ graceMs: 200 });
  await done;
  const after = await client.task(task.id);
  assert.equal(after.status, "PENDING");
  assert.equal(after.attempts, 0);
});

test("handlers that ignore the end of the grace are told of", async (t) => {
  const began = gate();
  const { client, worker, done } = work(t, { handlers: { "d.c": () => { began.open(); return new Promise(() => {}); } } });
  await client.enqueue("d.c");
  await began.opened;
  worker.drain({ graceMs: 50 });
  await assert.rejects(done, { code: "grace_over" });
});

test("a worker without a server waits until it is drained, and options are checked", async () => {
  const nobody = new Codeq({ url: "127.0.0.1:1", notice: () => {} });
  const waiting = nobody.worker({ handlers: { a: () => {} }, signals: false });
  const done = waiting.run();
  await new Promise((d) => setTimeout(d, 400));
  waiting.drain();
  await done;
  assert.throws(() => nobody.worker({ handlers: {} }), TypeError);
  assert.throws(() => nobody.worker({ handlers: { a: () => {} }, concurrency: 0 }), RangeError);
});

test("a refusal that waiting does not change ends a worker and a watch, and a token may come later", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "codeq-tokens-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, "tokens.yaml");
  const mint = async (scope) => JSON.parse((await promisify(execFile)(program, ["token", "new", "--name", scope, "--tenant", "acme", "--scope", scope, "--file", file, "--json"])).stdout).token;
  const [worker, producer] = [await mint("worker"), await mint("producer")];
  const own = await Server.start("--tokens", file);
  const handlers = { "t.a": () => ({}) };
  await assert.rejects(own.client({ token: "cq_wrong" }).worker({ handlers, signals: false }).run(), (e) => e instanceof CodeqError && e.code === "unauthenticated" && !e.retryable);
  await assert.rejects(own.client({ token: producer }).worker({ handlers, signals: false }).run(), { code: "forbidden" });
  await assert.rejects(own.client({ token: producer }).watch({ kind: "server" })[Symbol.asyncIterator]().next(), { code: /^(forbidden|unauthenticated)$/ });
  await assert.rejects(own.client({ token: worker }).enqueue("t.a", 1), { code: "forbidden", status: 403 });
  const { done, worker: w } = work(t, { handlers }, { client: () => own.client({ token: async () => worker }) });
  assert.deepEqual(await (await own.client({ token: producer }).enqueue("t.a")).result(), {});
  w.drain();
  await done;
});
