// Puts one fault after another into the SDK, and sees that the scripts of `codeq conform` that are named beside it
// fail over it: node conform/faults.mjs [PART OF A SCRIPT'S NAME]. Needs `make build` and `npm run build`; ten minutes.
// `--check` only looks whether each script has a fault and each fault its place.
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const home = new URL("..", import.meta.url).pathname;
const program = process.env.CODEQ ?? join(home, "../../bin/codeq");
const atOnce = 8;
const driver = "conform/driver.mjs";

/** The scripts, by name; the file; what is in it once; what stands there instead. */
const faults = [
  ["work/complete", "dist/job.js", '"result":${json}` };', '"result":{}` };'],
  ["work/several-commands", "dist/worker.js", "this.#handlers.get(job.command)", "[...this.#handlers.values()][0]"],
  ["work/window", "dist/worker.js", "this.#options = { concurrency,", "this.#options = { concurrency: 2 * concurrency,"],
  ["work/window-overrun", "dist/worker.js", ' && this.#running < this.#options.concurrency) {', ") {"],
  ["work/received-first", "dist/worker.js", '"through":${this.#received.said}}', '"through":${this.#received.said - 1}}'],
  ["work/error-is-retried", "dist/job.js", "nack(thrown, Math.ceil(Math.max(0, said.delayMs) / 1000))", "nack(thrown)"],
  ["work/backoff-decides", "dist/job.js", "members({ delaySeconds, reason", "members({ delaySeconds: delaySeconds ?? 900, reason"],
  ["work/exception", "dist/job.js", ": nack(thrown);", ': { outcome: "failed", type: "result", members: members({ status: "FAILED", error: reason(thrown) }) };'],
  ["work/fail-for-good", "dist/job.js", '{ outcome: "failed", type: "result", members: members({ status: "FAILED", error: reason(thrown) }) }', "nack(thrown)"],
  ["work/hand-back end/grace-is-over end/stop", "dist/job.js", "return said.started ? release()", "return said.started ? nack(thrown)"],
  ["work/cannot-begin", "dist/worker.js", "this.#restEnd = now() + ms;", "this.#restEnd = now();"],
  ["work/large", "dist/link.js", 'if (typeof data !== "string")', 'if (typeof data !== "string" || data.length > 512 << 10)'],
  ["work/many-large-outcomes", "dist/link.js", "const maxMessageChars = 256 << 10;", "const maxMessageChars = 256 << 20;"],
  ["work/result-too-large", "dist/job.js", "return nack(`the result has more", "return release(`the result has more"],
  ["work/result-refused", "dist/worker.js", "if (content && ", "if (!content && "],
  ["work/progress", "dist/worker.js", "(this.#progress.set(job, frame), this.#schedule())", "this.#schedule()"],
  ["work/output", "dist/job.js", "members({ stream, text: piece })", 'members({ stream, text: "" })'],
  ["work/artifact", "dist/job.js", "this.attach(name);", ""],
  ["work/artifact-answer-lost", "dist/job.js", 'persist("keyed",', 'persist("once",'],
  ["work/trace", driver, "traceParent: job.task.traceParent", "traceParent: undefined"],

  ["lease/heartbeat", "dist/worker.js", "(leaseSeconds * 1000) / 3;", "leaseSeconds * 1000;"],
  ["lease/held-for-long", "dist/worker.js", '"extendSeconds":${leaseSeconds}', '"extendSeconds":1'],
  ["lease/cancelled", "dist/job.js", "this.#controller?.abort(this.#reason);\n    }", 'if (code !== "cancelled") this.#controller?.abort(this.#reason);\n    }'],
  ["lease/taken-back", "dist/job.js", "this.#controller?.abort(this.#reason);\n    }", 'if (!why.endsWith("taken_back")) this.#controller?.abort(this.#reason);\n    }'],
  ["lease/revoked-for-a-new-reason", "dist/worker.js", "                    if (job)\n                        this.#lose(job, code,", '                    if (job && reason !== "sold")\n                        this.#lose(job, code,'],
  ["lease/revoked-by-timeout", "dist/worker.js", 'reason === "timeout" ||', 'reason === "never" ||'],
  ["lease/late-result-counts", "dist/worker.js", "error: error && lost ? lost : error,", "error: lost ?? error,"],
  ["lease/goes-to-another strange/unknown-code", "dist/worker.js", "        this.#settle(job, error);\n", "        this.#settle(job, undefined);\n"],
  ["lease/listed-as-lost resume/new-session-lost", "dist/worker.js", 'this.#lose(job, "lease_lost", "the lease ended before a heartbeat came");', "void 0;"],
  ["lease/deadline-of-its-own", "dist/job.js", "if (this.runMs === undefined)", "if (true)"],
  ["lease/duplicate", "dist/worker.js", "if (this.#held.has(frame.leaseToken))", "if (false)"],

  ["link/not-there-yet", "dist/retry.js", 'first: new Set([...passing, "putOff"])', 'first: new Set(passing.filter((f) => f !== "unreached"))'],
  ["way/session-behind-a-proxy", "dist/retry.js", 'first: new Set([...passing, "putOff"])', 'first: new Set(passing.filter((f) => f !== "gateway"))'],
  ["strange/unauthenticated way/session-of-another-server", "dist/link.js", "!again.first.has(fate)", "false"],
  ["link/pauses-grow strange/full", "dist/retry.js", "return Math.min(200 * 2 ** Math.min(failures, 5), 5000) * (0.5 + Math.random());", "return 100;"],
  ["link/cut-while-idle", "dist/link.js", ": backoff(0), signal);", ": 10_000, signal);"],
  ["link/cut-while-working", "dist/worker.js", "if (!still.has(job.token) && job.state", "if (job.state"],
  ["link/cut-before-the-result link/cut-after-the-result", "dist/worker.js", "            job.asked = false;\n        for (const job of this.#waiting)", "            void job;\n        for (const job of this.#waiting)"],
  ["link/answered-while-away", "dist/worker.js", "        this.#handInAll();\n        this.#beat();", "        this.#beat();"],
  ["link/half-open link/half-closed-result", "dist/link.js", "this.welcome.pingSeconds || 20) * 2500", "this.welcome.pingSeconds || 20) * 3_600_000"],
  ["link/slow", "dist/link.js", "if (bytes !== this.#bytes)", "if (false)"],
  ["link/ping-is-echoed", "dist/link.js", "p.subprotocol)", "p.subprotocol, { autoPong: false })"],
  ["link/server-restarts result/watch", "dist/link.js", "for (;;) {\n            try {\n", "for (;;) {\n            if (this.#reached) await new Promise(() => {});\n            try {\n"],
  ["strange/token-removed", "dist/link.js", "this.#reached ? this.lasting.includes(fate) :", 'this.#reached ? fate === "refused" :'],

  ["resume/key resume/same-session", "dist/worker.js", 'this.#resume = welcome.resume ?? "";', 'this.#resume = "";'],
  ["resume/grace-is-over lease/ends", "dist/worker.js", "        job.abort(code, why);\n", ""],
  ["resume/not-held", "dist/worker.js", 'this.#lose(job, "lease_lost", "the session does not have it any more");', "void 0;"],
  ["resume/held-and-unknown", "dist/worker.js", "            stranger.end(release());\n", ""],
  ["resume/new-session", "dist/worker.js", "this.#options.concurrency - this.#carried", "this.#options.concurrency"],
  ["resume/outcome-first", "dist/worker.js", "        this.#handInAll();\n        this.#beat();", "        this.#beat();\n        this.#handInAll();"],
  ["resume/replaced", "dist/worker.js", 'if (error.code === "superseded")', "if (false)"],

  ["end/drain", "dist/worker.js", "if (this.#running === 0 && this.#held.size === 0", "if (true"],
  ["end/drain-idle", "dist/link.js", "this.socket.close(1000)", "this.socket.close(3000)"],
  ["end/drain-hands-back", "dist/worker.js", "this.#finish(job, release({ started: false, ...(this.#ending() ? { stopping: true } : {}) }));", "this.#forget(job);"],
  ["end/task-on-its-way", "dist/worker.js", "(!this.#link || this.#window.unanswered === 0)", "true"],
  ["end/term", "dist/worker.js", "process?.on?.(name, heard);", "void heard;"],
  ["end/drain-without-a-connection", "dist/worker.js", "this.#held.size === 0 && (", "(!this.#link || this.#held.size === 0) && ("],
  ["end/server-drains end/server-tells-all end/admin-drains", "dist/worker.js", "this.#dialer.goodbye = true;", "this.#stopFor(undefined);"],

  ["strange/unknown", "dist/worker.js", "            case undefined:\n", "            case undefined:\n                this.#stopFor(error);\n"],
  ["strange/no-json strange/binary", "dist/link.js", "this.socket.close(4400);", "this.socket.close(3002);"],
  ["strange/subscription-put-off", "dist/worker.js", "if (!again.frame.has(error.fate))\n                    return this.#stopFor(error);", "return this.#stopFor(error);"],
  ["strange/subscription-refused", "dist/worker.js", "if (!again.frame.has(error.fate))\n                    return this.#stopFor(error);", ""],
  ["strange/outcome-put-off", "dist/retry.js", 'frame: new Set(["putOff", "away", "internal"])', 'frame: new Set(["putOff", "away"])'],
  ["strange/heartbeat-refused", "dist/worker.js", "this.#beatAt = now() + Math.min(backoff(0), (this.#options.leaseSeconds * 1000) / 6);", "this.#beatAt = Infinity;"],
  ["strange/token-changes", "dist/http.js", "await this.tokenOf()", "(this.said ??= await this.tokenOf())"],
  ["strange/connect-put-off", "dist/retry.js", "Math.max(backoff(failures), Math.min(asked, 50_000))", "backoff(failures)"],

  ["way/session-redirected way/post-redirected", "dist/http.js", "if (status !== 307 && status !== 308)", "if (status !== 308)"],
  ["way/session-moved way/post-moved", "dist/http.js", "if (status !== 307 && status !== 308)", "if (status === 303)"],
  ["way/session-in-a-circle", "dist/http.js", "const maxHops = 5;", "const maxHops = 20;"],
  ["way/session-token-stays way/post-token-stays", "dist/http.js", "return this.#all.some((u) => u.host === at.host);", "return true;"],
  ["way/task-of-another-server", "dist/http.js", 'const parts = { code: "not_codeq",', 'const parts = { code: "unreachable",'],

  ["node/next-address node/next-address-of-a-post", "dist/http.js", "if (from === this.current)", "if (false)"],
  ["node/leader-is-asked", "dist/http.js", "        this.#at = at;\n", ""],
  ["node/lost-leader-is-not-asked", "dist/http.js", "this.#lostAt.set(from, now());", ""],
  ["node/stranger-is-not-asked", "dist/http.js", "if (at < 0 || at === this.#at", "if (at < 0)\n            this.#all[this.#at] = new URL(leader);\n        if (at === this.#at"],

  ["post/options", driver, "idempotencyKey: key, priority, delaySeconds,", "idempotencyKey: key, priority,"],
  ["post/twice-with-a-key", "dist/lane.js", 'headers.get("Idempotent-Replayed") === "true"', "false"],
  ["post/answer-lost-with-a-key", "dist/retry.js", 'harmless: new Set([...passing, "putOff"])', 'harmless: new Set(passing.filter((f) => f !== "broken"))'],
  ["post/proxy-error-with-a-key", "dist/retry.js", 'harmless: new Set([...passing, "putOff"])', 'harmless: new Set(passing.filter((f) => f !== "gateway"))'],
  ["post/draining-with-a-key", "dist/retry.js", "keyed: new Set(passing)", 'keyed: new Set(passing.filter((f) => f !== "away"))'],
  ["post/waits-with-a-key", "dist/retry.js", "keyed: new Set(passing)", 'keyed: new Set(passing.filter((f) => f !== "unreached"))'],
  ["post/answer-lost-without-a-key", "dist/retry.js", "once: new Set()", "once: new Set(passing)"],
  ["post/proxy-error-without-a-key", "dist/errors.js", 'return fate === "broken" || fate === "gateway"', 'return fate === "broken"'],
  ["post/unreachable", "dist/http.js", 'fate: "unreached", message: why', 'fate: "broken", message: why'],
  ["post/overloaded", driver, "retryAfterSeconds: (e.retryAfterMs ?? 0) / 1000", "retryAfterSeconds: 0"],
  ["post/refused", driver, "retryable: e.retryable", "retryable: true"],
  ["post/conflict", driver, "task: e.taskId }", "task: undefined }"],
  ["post/unknown-answer", "dist/errors.js", 'typeof b.code === "string" && b.code !== ""', 'typeof b.code === "string" && b.code in fates'],
  ["post/batch", "dist/lane.js", "const said = results[i];", "const said = results[results.length - 1 - i];"],
  ["post/batch-answer-lost", "dist/retry.js", "once: new Set()", "once: new Set(passing)"],
  ["post/batch-with-keys", "dist/client.js", "const keyed = options.idempotencyKey !== undefined;", "const keyed = false;"],

  ["result/waits", driver, "result: result.result, reason", "result: {}, reason"],
  ["result/failed", driver, "reason: result.error };", "reason: undefined };"],
  ["result/over-a-restart result/over-a-cut", "dist/retry.js", 'wait: new Set([...passing, "putOff", "late"])', 'wait: new Set(["gateway", "putOff", "late"])'],
  ["result/over-a-proxy-error", "dist/retry.js", 'wait: new Set([...passing, "putOff", "late"])', 'wait: new Set([...passing.filter((f) => f !== "gateway"), "putOff", "late"])'],
  ["result/time-is-over", driver, "timeoutMs: (command.waitSeconds ?? 30) * 1000", "timeoutMs: Infinity"],
  ["result/no-such-task", "dist/errors.js", 'result_not_found: "late",', 'result_not_found: "late", task_not_found: "gateway",'],
  ["result/task", driver, "status, attempts };", "status, attempts: 0 };"],
  ["result/cancel", driver, "status: (await client(c).cancel(c.task, o)).status", 'status: "?"'],
];

/** faulty makes a copy of the package with one fault. */
function faulty(dir, [, file, old, now]) {
  mkdirSync(dir);
  for (const part of ["package.json", "dist", "conform"]) cpSync(join(home, part), join(dir, part), { recursive: true });
  symlinkSync(join(home, "node_modules"), join(dir, "node_modules"));
  const at = join(dir, file), text = readFileSync(at, "utf8"), parts = text.split(old);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times ${JSON.stringify(old)}: mend the list of faults`);
  writeFileSync(at, parts.join(now));
  return join(dir, driver);
}

/** failure is the sentence with which a script fails; "" if it passes. */
const failure = (file, script) =>
  new Promise((done) => execFile(program, ["conform", "--json", "--only", script, "--", process.execPath, file], (_, report) => done(JSON.parse(report).scripts[0].failed ?? "")));

const list = execFileSync(program, ["conform", "--list"], { encoding: "utf8" }).split("\n").map((line) => line.split(":")[0]).filter(Boolean);
const without = list.filter((script) => !faults.some(([scripts]) => scripts.split(" ").includes(script)));
console.log(`no fault for: ${without.join(" ") || "none"}`);
const dir = mkdtempSync(join(tmpdir(), "codeq-faults-"));
const check = process.argv[2] === "--check", wanted = faults.filter(([scripts]) => check || scripts.includes(process.argv[2] ?? ""));
const cases = wanted.flatMap((fault, i) => {
  const file = faulty(join(dir, String(i)), fault);
  return fault[0].split(" ").map((script) => ({ script, file, fault }));
});
const total = cases.length;
let missed = 0;
await Promise.all(Array.from({ length: check ? 0 : atOnce }, async () => {
  for (let c = cases.shift(); c; c = cases.shift()) {
    const sentence = await failure(c.file, c.script);
    if (!sentence) missed++;
    console.log(`${c.script}: ${sentence || `NOT FOUND: ${c.fault[2]}`}`);
  }
}));
if (!check) console.log(`${total - missed} of ${total} faults found`);
rmSync(dir, { recursive: true });
process.exit(missed > 0 || without.length > 0 ? 1 : 0);
