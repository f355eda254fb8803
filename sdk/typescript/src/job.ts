import { Alarm, now } from "./clock.js";
import { CodeqError, messageOf, sayingOf } from "./errors.js";
import type { Http } from "./http.js";
import type { Artifact, Task } from "./protocol.js";
import { persist } from "./retry.js";

/** How long the server may take to make a file durable. */
const storeWithinMs = 300_000;

/** How far the work is. */
export interface Progress {
  /** 0 to 100. */
  percent?: number;
  /** A sentence for people, at most 512 bytes. */
  note?: string;
  /** Any JSON value of at most 4 KiB. */
  data?: unknown;
}

/** What the server says of a delivery. @internal */
export interface TaskFrame {
  type: "task";
  seq: number;
  leaseToken: string;
  leaseMs: number;
  runMs?: number;
  task: Omit<Task, "payload"> & { payload: unknown };
}

/** How a delivery ended for its worker. */
export type Outcome = "completed" | "failed" | "nacked" | "released";

/** An outcome as the frame that hands it in, without what names the delivery. @internal */
export interface Answer {
  outcome: Outcome;
  type: "result" | "nack" | "release";
  /** The further members of the frame, each behind a comma. */
  members: string;
  /** Why the work could not begin. */
  unbegun?: string;
}

/** What a job reports to. @internal */
export interface Reporter {
  readonly draining: AbortSignal;
  readonly http: Http;
  progress(job: Job, frame: string): void;
  output(job: Job, frames: string[]): void;
}

/** One delivery of a task to a handler. */
export class Job<P = unknown> {
  readonly #reporter: Reporter;
  readonly #task: TaskFrame["task"];
  #controller: AbortController | undefined;
  #reason: CodeqError | undefined;
  #limit: Alarm | undefined;
  readonly #artifacts = new Map<string, { name: string; url?: string }>();
  /** @internal */
  readonly token: string;
  /** When it came. @internal */
  readonly cameAt = now();
  /** @internal */
  readonly seq: number;
  /** How far it has come. A doubtful one came over an earlier connection: a heartbeat will tell whose it is. @internal */
  state: "doubtful" | "waiting" | "running" | "ended" = "waiting";
  /** The session that has it, as a number of this worker. @internal */
  session: number;
  /** @internal */
  answer: Answer | undefined;
  /** Its answer is on the way over the present link. @internal */
  asked = false;
  /** The session has it, and this worker never heard of it. @internal */
  unknown = false;

  /** How long this run may last, in milliseconds, if it has a limit. */
  readonly runMs: number | undefined;

  /** @internal */
  constructor(frame: TaskFrame, session: number, reporter: Reporter) {
    this.#task = frame.task;
    this.#reporter = reporter;
    this.token = frame.leaseToken;
    this.seq = frame.seq;
    this.session = session;
    this.runMs = frame.runMs;
  }

  get id(): string {
    return this.#task.id;
  }
  get command(): string {
    return this.#task.command;
  }
  get payload(): P {
    return this.#task.payload as P;
  }
  /** How many attempts have failed before. */
  get attempts(): number {
    return this.#task.attempts;
  }
  get maxAttempts(): number {
    return this.#task.maxAttempts;
  }
  /** The number of this delivery, 1 for the first. */
  get delivery(): number {
    return this.#task.deliveries;
  }
  get labels(): Readonly<Record<string, string>> {
    return this.#task.labels ?? {};
  }
  /** All that the server says of the task. */
  get task(): Readonly<Omit<Task, "payload"> & { payload: unknown }> {
    return this.#task;
  }

  /**
   * Ends when the work is of no use any more. Its reason is a CodeqError whose code says why: `cancelled`, `lease_lost`
   * (this worker was silent for too long, or another has the task), `timeout` (the run is over) or `stopping` (the worker
   * ends and its `graceMs` are over). After the last one throw what you like: the task is handed back and no attempt counts.
   */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Ends when the worker begins to drain: a job that can stop early then throws a ReleaseError; any other goes on. */
  get draining(): AbortSignal {
    return this.#reporter.draining;
  }

  /** progress says how far the work is, in place of all that was said before. A number is a percentage. */
  progress(p: number | Progress): void {
    const { percent, note, data } = typeof p === "number" ? { percent: p, note: undefined, data: undefined } : p;
    this.#reporter.progress(this as Job, this.frame("progress", undefined, members({
      percent: percent === undefined ? undefined : Math.min(100, Math.max(0, Math.round(percent))), note: note === undefined ? undefined : head(note, 512), data,
    })));
  }

  /** output sends a piece of what the work prints to those who watch the task. It is dropped while there is no connection. */
  output(text: string, stream: "stdout" | "stderr" = "stdout"): void {
    const pieces = text.toWellFormed().match(/[\s\S]{1,4096}/gu) ?? [];
    this.#reporter.output(this as Job, pieces.map((piece) => this.frame("output", undefined, members({ stream, text: piece }))));
  }

  /**
   * upload sends a file, which is on the disk of the server when the promise is fulfilled, and an artifact of the task when
   * this handler has ended it. A second file of the same name replaces the first. It is sent again until it is answered or
   * the signal of the job ends.
   */
  async upload(name: string, content: string | Uint8Array | Blob, { contentType = "application/octet-stream" }: { contentType?: string } = {}): Promise<Artifact> {
    const { body } = await persist("keyed", { signal: this.signal, timeoutMs: Infinity }, (signal) => this.#reporter.http.ask<Artifact>({
      method: "PUT", path: artifactPath(this.id, name), body: content, waitMs: storeWithinMs, signal,
      headers: { "Content-Type": contentType, "X-Codeq-Lease-Token": this.token },
    }));
    this.attach(name);
    return body;
  }

  /** attach gives the task an artifact when this handler has ended it: a link, or a file that `upload` has sent. */
  attach(name: string, url?: string): void {
    this.#artifacts.set(name, { name, ...(url === undefined ? {} : { url }) });
  }

  /** frame is a frame about this delivery. @internal */
  frame(type: string, ref: number | undefined, more: string): string {
    return `{"type":"${type}"${ref === undefined ? "" : `,"ref":${ref}`},"taskId":"${this.id}","leaseToken":"${this.token}"${more}}`;
  }

  /** begin starts the clock of the run. @internal */
  begin(): void {
    this.state = "running";
    if (this.runMs === undefined) return;
    this.#limit = new Alarm(() => this.abort("timeout", "the run has lasted as long as its limit allows"), false);
    this.#limit.set(this.cameAt + this.runMs);
  }

  /** abort ends the signal; the first reason counts. @internal */
  abort(code: string, why: string): void {
    if (this.#reason || this.answer) return;
    this.#reason = new CodeqError({ code, message: why, fate: "refused", taskId: this.id });
    this.#controller?.abort(this.#reason);
  }

  /** Why the signal has ended. @internal */
  get reason(): CodeqError | undefined {
    return this.#reason;
  }

  /** end stores the answer. @internal */
  end(answer: Answer): void {
    this.#limit?.clear();
    this.state = "ended";
    const named = answer.type === "result" && this.#artifacts.size > 0;
    this.answer = named ? { ...answer, members: answer.members + members({ artifacts: [...this.#artifacts.values()] }) } : answer;
  }
}

/** artifactPath is where a file of a task is. @internal */
export function artifactPath(id: string, name: string): string {
  return `/tasks/${encodeURIComponent(id)}/artifacts/${encodeURIComponent(name)}`;
}

function members(values: object): string {
  const json = JSON.stringify(values);
  return json === "{}" ? "" : `,${json.slice(1, -1)}`;
}

const maxResultBytes = 1 << 20;
const maxErrorBytes = 8192;

/** bytes is the length of a text in UTF-8. */
function bytes(text: string): number {
  return text.length > maxResultBytes ? text.length : new TextEncoder().encode(text).length;
}

/** head is the beginning of a text, in so many bytes of UTF-8. */
function head(text: string, limit: number): string {
  text = text.toWellFormed().slice(0, limit);
  while (text.length > limit / 4 && bytes(text) > limit) text = text.slice(0, -16);
  return text.toWellFormed().replace(/\uFFFD$/, "");
}

/** What the server accepts as the reason of a failure. */
const reason = (why: unknown) => head(messageOf(why), maxErrorBytes) || "no reason given";

/** completed is the answer for what a handler returned. @internal */
export function completed(result: unknown): Answer {
  let json: string | undefined;
  try {
    json = JSON.stringify(result ?? {});
  } catch (error) {
    return nack(`the result is not JSON: ${messageOf(error)}`);
  }
  if (json === undefined || !json.startsWith("{")) return nack(`a result is a JSON object, but the handler returned ${Array.isArray(result) ? "an array" : typeof result}`);
  if (json.length > maxResultBytes / 3 && bytes(json) > maxResultBytes) return nack(`the result has more than ${maxResultBytes} bytes: store it elsewhere and return where it is`);
  return { outcome: "completed", type: "result", members: `,"status":"COMPLETED","result":${json}` };
}

/** nack is the answer of an attempt that failed. @internal */
export function nack(why: unknown, delaySeconds?: number): Answer {
  return { outcome: "nacked", type: "nack", members: members({ delaySeconds, reason: reason(why) }) };
}

/** release hands a task back. @internal */
export function release(why: { started?: false; stopping?: true } = {}): Answer {
  return { outcome: "released", type: "release", members: members(why) };
}

/** failed is the answer for what a handler has thrown. @internal */
export function failed(job: Job, thrown: unknown): Answer {
  const said = sayingOf(thrown);
  switch (said?.kind) {
    case "fail":
      return { outcome: "failed", type: "result", members: members({ status: "FAILED", error: reason(thrown) }) };
    case "nack":
      return nack(thrown, Math.ceil(Math.max(0, said.delayMs) / 1000));
    case "release":
      return said.started ? release() : { ...release({ started: false }), unbegun: messageOf(thrown) };
  }
  return job.reason?.code === "stopping" ? release({ stopping: true }) : nack(thrown);
}
