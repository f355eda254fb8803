// The driver of this SDK for `codeq conform -- node sdk/typescript/conform/driver.mjs`: it reads the
// commands of the kit and writes what the public interface of the SDK says.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Codeq, CodeqError, PermanentError, ReleaseError, RetryError } from "codeq";

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const say = (event) => process.stdout.write(JSON.stringify(event) + "\n");
const clients = new Map(), jobs = new Map(), numbers = new Map(), watches = new Map(), tokens = new Map();
let worker, last = 0;

function client({ url, token }) {
  const key = JSON.stringify([url, token]);
  if (!clients.has(key)) clients.set(key, new Codeq({ url, token: token && (() => tokens.get(token) ?? token), notice: (text) => console.error(text) }));
  return clients.get(key);
}

/** options are those that the kit has set. */
function options({ key, priority, delaySeconds, maxAttempts, timeoutSeconds, ttlSeconds, labels, concurrencyKey, traceParent, traceState }) {
  const all = { idempotencyKey: key, priority, delaySeconds, maxAttempts, timeoutSeconds, ttlSeconds, labels, concurrencyKey, traceParent, traceState };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value));
}

const causes = { timeout: "timeout", stopping: "stopping" };

function handler(name) {
  return (job) => new Promise((done, fail) => {
    const delivery = ++last;
    numbers.set(job, delivery);
    jobs.set(delivery, { job, done, fail });
    say({
      event: "delivery", delivery, handler: name, task: job.id, command: job.command, payload: job.payload, attempts: job.attempts, maxAttempts: job.maxAttempts,
      number: job.delivery, traceParent: job.task.traceParent, traceState: job.task.traceState, runMs: job.runMs ?? 0,
    });
    job.signal.addEventListener("abort", () => {
      const cause = causes[job.signal.reason.code] ?? "lease_lost";
      say({ event: "cancelled", delivery, cause });
      if (cause === "stopping") fail(new ReleaseError());
    }, { once: true });
  });
}

function told(event) {
  if (event.type === "connected") say({ event: "connected", session: event.sessionId });
  if (event.type === "disconnected") say({ event: "disconnected", message: event.error.message });
  if (event.type === "settled") {
    const { outcome, error } = event;
    const code = error && (["timeout", "cancelled"].includes(error.code) ? "lease_lost" : error.code);
    say({ event: "settled", delivery: numbers.get(event.job), outcome, ok: !error, code, message: error?.message });
  }
}

/** answer prints what a call of a producer brings. */
function answer(command, call) {
  call({ timeoutMs: (command.waitSeconds ?? 30) * 1000 }).then(
    (event) => say({ id: command.id, ...event }),
    (e) => say(e instanceof CodeqError
      ? { event: "error", id: command.id, code: e.code, message: e.message, retryable: e.retryable, retryAfterSeconds: (e.retryAfterMs ?? 0) / 1000, status: e.status, task: e.taskId }
      : { event: "error", id: command.id, code: "bug", message: String(e?.stack ?? e) }),
  );
}

const settle = (command, f) => jobs.has(command.delivery) && f(jobs.get(command.delivery));

const commands = {
  worker(c) {
    worker = client(c).worker({
      handlers: Object.fromEntries(c.commands.map((name) => [name, handler(name)])), concurrency: c.window ?? 1, leaseSeconds: c.leaseSeconds ?? 30, name: c.name,
      graceMs: (c.graceSeconds ?? 20) * 1000, signals: c.signals ? ["SIGTERM"] : false, on: told,
    });
    worker.run().then(() => say({ event: "stopped" }), (e) => say({ event: "stopped", code: e.code === "grace_over" ? undefined : e.code, message: e.message }));
  },
  complete: (c) => settle(c, ({ done }) => done(c.result)),
  nack: (c) => settle(c, ({ fail }) => fail(c.delaySeconds == null ? new Error(c.reason) : new RetryError(c.delaySeconds * 1000, c.reason))),
  fail: (c) => settle(c, ({ fail }) => fail(new PermanentError(c.reason))),
  throw: (c) => settle(c, ({ fail }) => fail(new Error(c.reason))),
  release: (c) => settle(c, ({ fail }) => fail(new ReleaseError())),
  notstarted: (c) => settle(c, ({ fail }) => fail(new ReleaseError(c.reason, { started: false }))),
  progress: (c) => settle(c, ({ job }) => job.progress({ percent: c.percent, note: c.note })),
  output: (c) => settle(c, ({ job }) => job.output(c.text, c.stream)),
  upload: (c) => settle(c, ({ job, fail }) => job.upload(c.name, c.text).then(({ name, sizeBytes }) => say({ event: "uploaded", delivery: c.delivery, name, sizeBytes }), fail)),
  drain: () => worker.drain(),
  stop: () => worker.stop(),
  enqueue: (c) => answer(c, async (o) => {
    const { id, replayed } = await client(c).enqueue(c.command, c.payload, { ...options(c), ...o });
    return { event: "enqueued", task: id, replayed };
  }),
  batch: (c) => answer(c, async (o) => {
    const results = await client(c).enqueueBatch(c.tasks.map((t) => ({ command: t.command, payload: t.payload, ...options(t) })), o);
    return { event: "batch", results: results.map(({ task, error }) => task ? { task: task.id, replayed: task.replayed } : { code: error.code, message: error.message }) };
  }),
  result: (c) => answer(c, async (o) => {
    const { result } = await client(c).outcome(c.task, o);
    return { event: "result", status: result.status, result: result.result, reason: result.error };
  }),
  task: (c) => answer(c, async (o) => {
    const { status, attempts } = await client(c).task(c.task, o);
    return { event: "task", status, attempts };
  }),
  cancel: (c) => answer(c, async (o) => ({ event: "cancelled_task", status: (await client(c).cancel(c.task, o)).status })),
  download: (c) => answer(c, async (o) => ({ event: "downloaded", text: await (await client(c).download(c.task, c.name, o)).text() })),
  token: (c) => answer(c, async () => (tokens.set(c.token, c.becomes), { event: "token" })),
  async watch(c) {
    const stop = new AbortController();
    watches.set(c.id, stop);
    try {
      for await (const news of client(c).watch({ kind: "queues", commands: [c.queue] }, { signal: stop.signal })) say({ event: "news", id: c.id, kind: news.type });
    } catch (e) {
      if (!stop.signal.aborted) say({ event: "error", id: c.id, code: e.code ?? "bug", message: e.message });
    }
  },
  unwatch: (c) => watches.get(c.id)?.abort(),
  exit: () => process.exit(0),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const command = JSON.parse(line);
  commands[command.do]?.(command);
}).on("close", () => process.exit(0));

say({ event: "ready", sdk: "typescript", version, can: ["progress", "output", "batch", "cancel", "watch", "notstarted", "signals", "nodes", "tokens", "artifacts", ...("WebSocket" in globalThis ? ["asks"] : [])] });
