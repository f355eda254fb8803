import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, test } from "node:test";
import { Codeq, CodeqError } from "codeq";
import { Server, freePort } from "./kit.mjs";

const server = await Server.start();
const client = server.client();

/** A server that answers as a test says, and counts what it was asked. */
async function stub(answer) {
  const asked = [], self = { answer, asked };
  const s = createServer((request, response) => {
    let body = "";
    request.on("data", (d) => (body += d)).on("end", () => {
      asked.push({ url: request.url, method: request.method, headers: request.headers, body });
      self.answer(response, asked.length, asked.at(-1));
    });
  }).listen(0, "127.0.0.1");
  await once(s, "listening");
  after(() => (s.closeAllConnections(), s.close()));
  return Object.assign(self, { url: `http://127.0.0.1:${s.address().port}` });
}

const json = (response, status, body, headers = {}) => response.writeHead(status, headers).end(JSON.stringify(body));

test("without a token nothing is sent", async () => {
  const s = await stub((response) => json(response, 200, {}));
  const codeq = new Codeq({ url: s.url, token: async () => { throw new Error("the provider is away"); } });
  await assert.rejects(codeq.enqueue("a", 1), { code: "unreachable", message: /the provider is away/ });
  assert.equal(s.asked.length, 0);
});

test("a task has all that was said about it", async () => {
  const { id, replayed } = await client.enqueue("p.all", { a: [1, "ü💥"] }, {
    priority: 7, delaySeconds: 60, maxAttempts: 3, timeoutSeconds: 9, ttlSeconds: 600, labels: { customer: "acme" }, concurrencyKey: "acme", idempotencyKey: "all-1",
    traceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  });
  assert.equal(replayed, false);
  const task = await client.task(id);
  assert.deepEqual(
    [task.priority, task.status, task.lastKnownLocation, task.maxAttempts, task.timeoutSeconds, task.labels, task.concurrencyKey, JSON.parse(task.payload), task.traceParent],
    [7, "PENDING", "DELAYED_ZSET", 3, 9, { customer: "acme" }, "acme", { a: [1, "ü💥"] }, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]);
  const second = await client.enqueue("p.all", { a: [1, "ü💥"] }, { priority: 7, maxAttempts: 3, timeoutSeconds: 9, labels: { customer: "acme" }, idempotencyKey: "all-1" });
  assert.deepEqual([second.id, second.replayed], [id, true]);
  await assert.rejects(client.enqueue("p.all", 2, { idempotencyKey: "all-1" }), (e) => e instanceof CodeqError && e.code === "idempotency_conflict" && e.status === 409 && !e.retryable && e.taskId === id);
  const at = await client.enqueue("p.all", null, { runAt: new Date(Date.now() + 60_000) });
  assert.equal((await client.task(at.id)).lastKnownLocation, "DELAYED_ZSET");
});

test("a refusal has its code, its status and a sentence", async () => {
  await assert.rejects(client.enqueue("p.x", 1, { priority: 10 }), (e) => e.code === "invalid_priority" && e.status === 400 && !e.retryable && /0 to 9/.test(e.message));
  await assert.rejects(client.task("00000000-0000-7000-8000-000000000000"), { code: "task_not_found", status: 404 });
  await assert.rejects(client.enqueue("p.x", 1n), TypeError);
});

test("tasks of one turn share a request and keep their order", async () => {
  const ids = (await Promise.all(Array.from({ length: 2500 }, (_, i) => client.enqueue("p.many", i)))).map((t) => t.id);
  assert.equal(new Set(ids).size, 2500);
  const { tasks } = await client.list("p.many", { state: "ready", limit: 500 });
  assert.deepEqual(tasks.map((t) => t.id), ids.slice(0, 500));
});

test("each task of a batch is accepted or refused on its own", async () => {
  let deep = 0;
  for (let i = 0; i < 100; i++) deep = [deep];
  const results = await client.enqueueBatch([{ command: "p.b", payload: 1 }, { command: "p b", payload: 2 }, { command: "p.b", payload: deep }, { command: "p.b", payload: 4, priority: 11 }, { command: "p.b", payload: 5 }]);
  assert.deepEqual(results.map((r) => r.error?.code ?? "ok"), ["ok", "invalid_command", "invalid_body", "invalid_priority", "ok"]);
  assert.match(results[1].error.message, /^command may hold/);
  const lost = await stub((response) => response.destroy());
  await assert.rejects(new Codeq({ url: lost.url }).enqueueBatch([{ command: "a", payload: 1 }, { command: "a", payload: 2 }]), { code: "outcome_unknown" });
  assert.deepEqual(await client.enqueueBatch([]), []);
});

test("a wait for a result lasts until the task ends, its time is over or its signal ends", async () => {
  const task = await client.enqueue("p.wait", 1);
  await assert.rejects(task.result({ timeoutMs: 0 }), { code: "result_not_found", taskStatus: "PENDING" });
  await assert.rejects(task.result({ signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await assert.rejects(task.result({ signal: stop.signal }), /enough/);
  await assert.rejects(client.enqueue("p.wait", 1, { signal: stop.signal }), /enough/);
  const waiting = task.result();
  const claimed = await server.admin("POST", "/tasks/claim", { commands: ["p.wait"] });
  await server.admin("POST", `/tasks/${claimed.id}/result`, { result: { n: 1 }, leaseToken: claimed.leaseToken });
  assert.deepEqual(await waiting, { n: 1 });
});

test("tasks are cancelled, listed and found", async () => {
  const made = await Promise.all([1, 2, 3].map((n) => client.enqueue("p.find", { n }, { labels: { run: "r1", n: String(n) } })));
  assert.equal((await client.cancel(made[0].id)).status, "CANCELLED");
  assert.equal((await client.cancel(made[0].id)).status, "CANCELLED");
  assert.equal((await client.list("p.find", { state: "ready" })).tasks.length, 2);
  assert.deepEqual((await client.find({ labels: { run: "r1", n: "2" } })).tasks.map((t) => t.id), [made[1].id]);
  const all = [];
  for await (const t of client.found({ labels: { run: "r1" }, state: "ready", limit: 1 })) all.push(t.id);
  assert.deepEqual(all.sort(), [made[1].id, made[2].id].sort());
  assert.equal((await client.find({ command: "p.find", payloadPart: "\"n\":3", olderThan: "0s" })).tasks.length, 1);
});

test("without an answer a task with a key is posted again, one without is not", async () => {
  const cut = await stub((response, n) => (n === 1 ? response.destroy() : json(response, 202, { id: "i" }, { "Idempotent-Replayed": "true" })));
  const posting = new Codeq({ url: cut.url });
  const posted = await posting.enqueue("a", 1, { idempotencyKey: "k" });
  assert.deepEqual([posted.id, posted.replayed, cut.asked.length], ["i", true, 2]);
  assert.equal(cut.asked[0].body, cut.asked[1].body);
  const lost = await stub((response) => response.destroy());
  await assert.rejects(new Codeq({ url: lost.url }).enqueue("a", 1), (e) => e.code === "outcome_unknown" && !e.retryable && /look whether the task is there/.test(e.message) && e.cause.code === "unreachable");
  assert.equal(lost.asked.length, 1);
  await assert.rejects(new Codeq({ url: lost.url }).enqueue("a", 1, { idempotencyKey: "k", timeoutMs: 300 }), { code: "outcome_unknown" });
  await assert.rejects(new Codeq({ url: `127.0.0.1:${await freePort()}` }).enqueue("a", 1), (e) => e.code === "unreachable" && e.retryable && /codeq serve/.test(e.message));
});

test("a time that ends during a pause says what is known of the tries before", async () => {
  const { persist } = await import("../dist/retry.js"), { CodeqError } = await import("../dist/errors.js");
  const random = Math.random;
  Math.random = () => 0; // every pause is 100 ms, and the times end around its end
  const said = (fate) => Promise.all(Array.from({ length: 100 }, (_, n) => persist("keyed", { timeoutMs: 99.5 + n / 40 }, async () => {
    throw new CodeqError({ code: "unreachable", message: "cut", fate });
  }).catch((e) => e.code)));
  const codes = [...await said("broken"), ...await said("unreached")];
  Math.random = random;
  assert.deepEqual([...new Set(codes.slice(0, 100))], ["outcome_unknown"]);
  assert.deepEqual([...new Set(codes.slice(100))], ["timeout"], "nothing was sent");
});

test("timeoutMs bounds a call also while a server is silent", async () => {
  const silent = await stub(() => {}), c = new Codeq({ url: silent.url }), stop = new AbortController();
  await assert.rejects(c.task("x", { timeoutMs: 200 }), { code: "timeout", retryable: true });
  const first = c.enqueue("a", 1, { signal: stop.signal });
  while (silent.asked.length < 2) await new Promise((d) => setTimeout(d, 10));
  const behind = c.enqueue("a", 3, { timeoutMs: 100 }), aborted = c.enqueue("a", 4, { signal: AbortSignal.timeout(100) });
  const waited = await Promise.allSettled([behind, aborted]);
  assert.deepEqual(waited.map((r) => r.reason.code ?? r.reason.name), ["timeout", 23], "what was not sent was not done");
  stop.abort(new Error("enough"));
  await assert.rejects(first, /enough/);
  const posts = [c.enqueue("a", 1, { timeoutMs: 2000 }), c.enqueue("a", 2, { timeoutMs: 2000, idempotencyKey: "k" })];
  assert.deepEqual((await Promise.allSettled(posts)).map((r) => r.reason.code), ["outcome_unknown", "outcome_unknown"]);
  silent.answer = (response) => json(response, 202, { id: "n" });
  assert.equal((await c.enqueue("a", 5)).id, "n", "the lane is free again");
});

test("Retry-After is kept, and a refusal for now is the caller's to wait for", async () => {
  const busy = await stub((response, n) => (n < 2 ? json(response, 503, { error: "later", code: "overloaded", retryable: true, retryAfterSeconds: 1 }) : json(response, 200, { id: "i", status: "PENDING" })));
  const posting = new Codeq({ url: busy.url });
  await assert.rejects(posting.enqueue("a", 1, { idempotencyKey: "k" }), { code: "overloaded", retryable: true, retryAfterMs: 1000, status: 503 });
  busy.asked.length = 0;
  const began = Date.now();
  assert.equal((await posting.task("i")).id, "i");
  assert(Date.now() - began >= 950, "it waited");
});

test("a pause that a slow answer asks for is kept", async () => {
  const { persist } = await import("../dist/retry.js");
  let answered = 0;
  const rest = await persist("first", { timeoutMs: Infinity }, async () => {
    if (answered) return Date.now() - answered;
    await new Promise((done) => setTimeout(done, 350)); // longer than the first backoff
    answered = Date.now();
    throw new CodeqError({ code: "overloaded", message: "later", fate: "putOff", retryAfterMs: 400 });
  });
  assert(rest >= 380, `${rest} ms`);
});

test("answers of something else are said to be that", async () => {
  const page = await stub((response, _, { url }) => (url.endsWith("/a") ? response.writeHead(404).end("<html>") : response.writeHead(200).end("<html>")));
  const c = new Codeq({ url: page.url });
  await assert.rejects(c.task("a"), { code: "not_codeq", status: 404 });
  await assert.rejects(c.task("b"), { code: "not_codeq" });
  await assert.rejects(c.enqueue("b", 1), { code: "outcome_unknown" });
  const gateway = await stub((response, n) => (n === 1 ? response.writeHead(502).end("bad gateway") : json(response, 200, { id: "b" })));
  assert.equal((await new Codeq({ url: gateway.url }).task("b")).id, "b");
});

test("redirects are followed with their body, and the token goes to no other server", async () => {
  const target = await stub((response) => json(response, 202, { id: "t" }));
  for (const [status, ok] of [[307, true], [308, true], [301, false], [302, false], [303, false]]) {
    const from = await stub((response) => response.writeHead(status, { Location: `${target.url}/v1/codeq/tasks` }).end());
    const c = new Codeq({ url: from.url, token: "secret" });
    if (ok) {
      assert.equal((await c.enqueue("a", 1)).id, "t");
      assert.equal(target.asked.at(-1).body, '{"command":"a","payload":1}');
      assert.equal(target.asked.at(-1).headers.authorization, undefined);
      assert.equal(from.asked[0].headers.authorization, "Bearer secret");
    } else await assert.rejects(c.enqueue("a", 1), { code: "moved", retryable: false });
  }
});

test("several servers are tried in turn, and the one that leads is preferred", async () => {
  const dead = `http://127.0.0.1:${await freePort()}`;
  assert.equal((await new Codeq({ url: `${dead},${server.url}` }).enqueue("p.turn", 1)).replayed, false);
  const stops = await stub((response) => json(response, 503, { error: "stops", code: "draining", retryable: true }));
  assert.equal((await new Codeq({ url: [stops.url, server.url] }).enqueue("p.turn", 1)).replayed, false);
  const leader = await stub((response) => json(response, 202, { id: "l" }));
  const follower = await stub((response) => json(response, 202, { id: "f" }, { "Codeq-Leader": leader.url }));
  const c = new Codeq({ url: [follower.url, stops.url, leader.url] });
  assert.deepEqual([(await c.enqueue("a", 1)).id, (await c.enqueue("a", 2)).id], ["f", "l"]);
  const stranger = new Codeq({ url: [follower.url, stops.url] });
  assert.deepEqual([(await stranger.enqueue("a", 1)).id, (await stranger.enqueue("a", 2)).id], ["f", "f"], "a leader that nobody named gets no token");
  const lost = await stub((response) => json(response, 503, { error: "lost", code: "not_leader", retryable: true }));
  await assert.rejects(new Codeq({ url: [lost.url, leader.url] }).enqueue("a", 1), { code: "not_leader" }, "it may have been done");
  assert.equal((await new Codeq({ url: [lost.url, leader.url] }).enqueue("a", 1, { idempotencyKey: "k" })).id, "l");
  assert.throws(() => new Codeq({ url: "ftp://x" }), TypeError);
  assert.throws(() => new Codeq({ url: "" }).url, TypeError);
});

test("a token may come from a function, and is asked for before each request", async () => {
  const s = await stub((response) => json(response, 200, { id: "x" }));
  let n = 0;
  const c = new Codeq({ url: s.url, token: async () => `t${++n}`, tenant: "acme" });
  await c.task("x");
  await c.task("x");
  assert.deepEqual(s.asked.map((a) => a.headers.authorization), ["Bearer t1", "Bearer t2"]);
  assert.equal(s.asked[0].headers["x-codeq-tenant"], "acme");
});

test("a wait for a result goes on while the server is away", async () => {
  const own = await Server.start();
  const c = own.client(), task = await c.enqueue("p.away", 1), waiting = task.result();
  await own.kill();
  await new Promise((d) => setTimeout(d, 300));
  await own.begin();
  const claimed = await own.admin("POST", "/tasks/claim", { commands: ["p.away"] });
  await own.admin("POST", `/tasks/${claimed.id}/result`, { result: { n: 2 }, leaseToken: claimed.leaseToken });
  assert.deepEqual(await waiting, { n: 2 });
});
