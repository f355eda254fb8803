import type { Error as Refusal, ResultRecord, Status, Task } from "./protocol.js";

/** How a try ended that brought no answer of success. The table in retry.ts decides by it. @internal */
export type Fate =
  /** The server waited as long as it was asked to, and there is nothing yet. */
  | "late"
  /** Refused for now and certainly not done. */
  | "putOff"
  /** The same, of a server that starts or stops. */
  | "away"
  /** A fault of the server, which leaves open what was done. */
  | "internal"
  /** Refused, and it would be again. */
  | "refused"
  /** Nothing was sent. */
  | "unreached"
  /** Sent, and no whole answer came. */
  | "broken"
  /** A proxy answered that it has no answer of the server. */
  | "gateway"
  /** A success that is not codeq's. */
  | "garbled"
  /** Any other answer that is not codeq's. */
  | "foreign"
  /** A redirect that must not be followed. */
  | "moved";

const fates: Record<string, Fate> = {
  result_not_found: "late",
  draining: "away",
  overloaded: "putOff",
  rate_limited: "putOff",
  storage_full: "putOff",
  auth_unavailable: "putOff",
  internal: "internal",
  not_leader: "internal", // the leader may be lost after it has done what was asked
};

/** What a CodeqError is made of. @internal */
export interface ErrorParts {
  code: string;
  message: string;
  fate: Fate;
  status?: number | undefined;
  retryable?: boolean;
  retryAfterMs?: number | undefined;
  taskId?: string | undefined;
  taskStatus?: Status | undefined;
  task?: Task | undefined;
  result?: ResultRecord | undefined;
  cause?: unknown;
}

/**
 * The one class of errors of this package. `code` is for programs and never changes its meaning;
 * `message` says what is wrong, where, and what would be right.
 *
 * A code is one of the server's (docs/reference/errors.md lists them) or one of these:
 *
 * | code | when |
 * |---|---|
 * | `unreachable` | nothing was sent: no server, no such name, no TLS |
 * | `outcome_unknown` | sent, and no answer came: the server may or may not have done it |
 * | `not_codeq` | the answer of something else, such as a proxy |
 * | `moved` | a redirect that must not be followed |
 * | `timeout` | `timeoutMs` is over; `cause` is what happened last. As the reason of a task's signal: its run is over |
 * | `task_failed`, `task_cancelled` | the task whose result was awaited ended so; `result` has its record |
 * | `lease_lost`, `cancelled`, `stopping` | reasons of a task's signal, see `Job.signal` |
 * | `grace_over` | a drained worker ended while handlers still ran |
 */
export class CodeqError extends Error {
  override readonly name = "CodeqError";
  readonly code: string;
  /** The status of the HTTP answer, if there was one. */
  readonly status: number | undefined;
  /** The same request may succeed later. */
  readonly retryable: boolean;
  /** How long the server asks to wait before that. */
  readonly retryAfterMs: number | undefined;
  /** The first task, with `idempotency_conflict`; the task of a failed result. */
  readonly taskId: string | undefined;
  /** The status of the task, with `result_not_found`, `already_terminal` and the codes of results. */
  readonly taskStatus: Status | undefined;
  /** The task as it ended, with `already_terminal`, `task_failed` and `task_cancelled`. */
  readonly task: Task | undefined;
  /** The result record, with `task_failed` and `task_cancelled`. */
  readonly result: ResultRecord | undefined;
  /** @internal */
  readonly fate: Fate;

  /** @internal */
  constructor(p: ErrorParts) {
    super(p.message, p.cause === undefined ? undefined : { cause: p.cause });
    this.code = p.code;
    this.status = p.status;
    this.retryable = p.retryable ?? p.fate !== "refused";
    this.retryAfterMs = p.retryAfterMs;
    this.taskId = p.taskId;
    this.taskStatus = p.taskStatus;
    this.task = p.task;
    this.result = p.result;
    Object.defineProperty((this.fate = p.fate, this), "fate", { enumerable: false });
  }
}

/** isRefusal reports an error body or an error frame of codeq. @internal */
export function isRefusal(body: unknown): body is Refusal {
  const b = body as Partial<Refusal> | null;
  return typeof b === "object" && b !== null && typeof b.code === "string" && b.code !== "" && typeof b.error === "string";
}

/** refusal is the error of an error body or an error frame. @internal */
export function refusal(r: Refusal, status?: number, after?: number): CodeqError {
  const seconds = r.retryAfterSeconds ?? after;
  return new CodeqError({
    code: r.code,
    message: r.error,
    fate: fates[r.code] ?? "refused",
    status,
    retryable: r.retryable,
    retryAfterMs: seconds ? seconds * 1000 : undefined,
    taskId: r.taskId,
    taskStatus: r.status,
    task: r.task,
  });
}

/** inDoubt reports that the server may have done what was asked. @internal */
export function inDoubt(fate: Fate): boolean {
  return fate === "internal" || unanswered(fate);
}

/** unanswered reports that something was sent and no answer of codeq came. @internal */
export function unanswered(fate: Fate): boolean {
  return fate === "broken" || fate === "gateway" || fate === "garbled";
}

/** outcomeUnknown is the error of a change that was sent and has no answer. @internal */
export function outcomeUnknown(cause: CodeqError, remedy: string): CodeqError {
  return new CodeqError({
    code: "outcome_unknown",
    message: `${cause.message}: the server may or may not have done it; ${remedy}`,
    fate: cause.fate,
    retryable: false,
    cause,
  });
}

/** garbled is the error of a success that codeq does not send. @internal */
export function garbled(what: string, cause?: unknown): CodeqError {
  return new CodeqError({ code: "not_codeq", fate: "garbled", retryable: false, cause, message: `${what}: is it a codeq server?` });
}

/** messageOf is the text of whatever was thrown. @internal */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}

const outcome = Symbol.for("codeq.outcome");

/** What a thrown error says about its task, if it says something. @internal */
export type Saying = { kind: "fail" } | { kind: "nack"; delayMs: number } | { kind: "release"; started: boolean };

/** sayingOf reads what an error, or one of its causes, says about the task. @internal */
export function sayingOf(thrown: unknown): Saying | undefined {
  for (let e = thrown, depth = 0; typeof e === "object" && e !== null && depth < 8; depth++) {
    const said = (e as { [outcome]?: Saying })[outcome];
    if (said) return said;
    e = (e as Error).cause;
  }
  return undefined;
}

abstract class OutcomeError extends Error {
  /** @internal */
  constructor(said: Saying, why: unknown) {
    super(messageOf(why), why instanceof Error ? { cause: why } : undefined);
    Object.defineProperty(this, outcome, { value: said });
  }
}

/** Thrown by a handler: the task fails for good and is a dead letter at once. Every other try would fail, too. */
export class PermanentError extends OutcomeError {
  override readonly name = "PermanentError";
  constructor(why: unknown) {
    super({ kind: "fail" }, why);
  }
}

/** Thrown by a handler: this attempt failed, and the next one comes after `delayMs`, rounded up to whole seconds, in place of the backoff of the queue. */
export class RetryError extends OutcomeError {
  override readonly name = "RetryError";
  constructor(delayMs: number, why: unknown = "the handler asked for another try") {
    super({ kind: "nack", delayMs }, why);
  }
}

/**
 * Thrown by a handler that gives its task back; no attempt counts. With `started: false` the work could not
 * begin for a reason that is not the task's, such as a database that is not there: the worker then takes no
 * task for a pause, which doubles from 1 s to 60 s while this goes on.
 */
export class ReleaseError extends OutcomeError {
  override readonly name = "ReleaseError";
  constructor(why: unknown = "the handler gave the task back", options: { started?: boolean } = {}) {
    super({ kind: "release", started: options.started ?? true }, why);
  }
}
