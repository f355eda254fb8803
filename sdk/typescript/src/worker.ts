import { Alarm, now, onAbort, soon } from "./clock.js";
import { CodeqError, messageOf, refusal, ReleaseError } from "./errors.js";
import { Dialer, type Frame, type Link, type Path } from "./link.js";
import { completed, failed, Job, nack, release, type Answer, type Outcome, type Reporter, type TaskFrame } from "./job.js";
import type { Error as Refusal } from "./protocol.js";
import { again, backoff, pauseFor } from "./retry.js";

const flushMs = 5000;
const maxReports = 1000;
const maxUnsentBytes = 1 << 20;
const firstRestMs = 1000;
const longestRestMs = 60_000;

/** Does the work of one task and returns its result. What it throws has the task tried again later. */
export type Handler<P, R> = (job: Job<P>) => R | Promise<R>;

/** Runs around each handler: it calls `next` for the work, and may look at the job, its result and its error. */
export type Middleware = (job: Job, next: () => Promise<unknown>) => Promise<unknown>;

/** What a worker tells. */
export type WorkerEvent =
  | { type: "connected"; sessionId: string }
  | { type: "disconnected"; error: CodeqError }
  /** The server has answered for the outcome of a job. `error` is its refusal, `lease_lost` if the job was lost before. */
  | { type: "settled"; job: Job; outcome: Outcome; error: CodeqError | undefined; deadLetter: boolean; retryAfterMs: number | undefined };

export interface WorkerOptions<C> {
  /** A handler for each command that this worker takes. */
  handlers: { [K in keyof C & string]?: C[K] extends { payload: infer P; result: infer R } ? Handler<P, R> : never };
  /** How many tasks the worker has at a time, and so how many handlers run; 1 if left out, at most 10,000. */
  concurrency?: number;
  /** How long a task belongs to this worker without a heartbeat, from 1 to 43,200; 30 if left out. */
  leaseSeconds?: number;
  /** The name of the worker for people. */
  name?: string;
  /** Around each handler, the first one outermost. */
  middleware?: readonly Middleware[];
  /** Signals of the process that drain the worker; a second one ends its handlers. SIGTERM and SIGINT if left out, none if false. */
  signals?: readonly string[] | false;
  /** How long handlers may go on when the worker drains; 25 s if left out. Then their signals end, and their tasks are handed back. */
  graceMs?: number;
  on?: (event: WorkerEvent) => void;
}

/** What was asked with a ref. */
type Question = { kind: "outcome"; job: Job } | { kind: "heartbeat"; jobs: Job[] } | { kind: "subscribe" } | { kind: "window" };

interface Answered extends Frame, Partial<Refusal> {
  lost?: { leaseToken: string }[];
  status?: never;
  delaySeconds?: number;
}

interface Welcome {
  sessionId?: string;
  resume?: string;
  held?: { taskId: string; leaseToken: string }[];
}

/**
 * A worker takes tasks over one WebSocket, up to its concurrency, and connects again by itself while its handlers run.
 * Within the grace of the server its session goes on with its tasks; after it a new session takes over the leases that
 * still hold. Make it with `Codeq.worker`.
 */
export class Worker<C = unknown> {
  readonly #options: Required<Omit<WorkerOptions<C>, "name" | "handlers">>;
  readonly #handlers = new Map<string, (job: Job) => unknown>();
  readonly #notice: (text: string) => void;
  readonly #dialer: Dialer;
  readonly #leaving = new AbortController();
  readonly #draining = new AbortController();
  readonly #alarm = new Alarm(() => this.#step());
  readonly #reporter: Reporter;
  #resume = "";
  #link: Link | undefined;
  #sessionId = "";
  #session = 0;
  #held = new Map<string, Job>();
  /** How many in hand are of an earlier session. */
  #carried = 0;
  #waiting: Job[] = [];
  #running = 0;
  #lastRef = 0;
  #questions = new Map<number, Question>();
  #out: string[] = [];
  #progress = new Map<Job, string>();
  #received = { here: 0, said: 0 };
  #window = { size: 0, unanswered: 0 };
  #beatAt = 0;
  #unheard = false;
  #refusals = 0;
  #pauseEnd = Infinity;
  #restEnd = Infinity;
  #unbegun = 0;
  #deadline = Infinity;
  #giveUpAt = Infinity;
  #stopped: { error: CodeqError | undefined } | undefined;
  #scheduled = false;
  #over: ((error?: unknown) => void) | undefined;
  #began = false;

  /** @internal */
  constructor(base: Pick<Path, "http" | "socket"> & { notice: (text: string) => void }, o: WorkerOptions<C>) {
    const { concurrency = 1, leaseSeconds = 30, graceMs = 25_000 } = o;
    whole("concurrency", concurrency, 1, 10_000);
    whole("leaseSeconds", leaseSeconds, 1, 43_200);
    this.#options = { concurrency, leaseSeconds, graceMs, middleware: o.middleware ?? [], signals: o.signals ?? ["SIGTERM", "SIGINT"], on: o.on ?? (() => {}) };
    for (const [command, handler] of Object.entries(o.handlers)) {
      if (typeof handler === "function") this.#handlers.set(command, this.#around(handler as (job: Job) => unknown));
    }
    if (this.#handlers.size === 0) throw new TypeError("handlers names no command: give the worker at least one handler");
    this.#notice = base.notice;
    const hello = () => ({ type: "hello", workerId: o.name, maxMessageBytes: 4 << 20, ...(this.#resume ? { resume: this.#resume } : {}) });
    this.#dialer = new Dialer({ ...base, path: "/session", subprotocol: "codeq.v1", hello }, "worker", base.notice);
    this.#reporter = {
      draining: this.#draining.signal,
      http: base.http,
      progress: (job, frame) => this.#mayReport(job) && (this.#progress.set(job, frame), this.#schedule()),
      output: (job, frames) => {
        if (this.#mayReport(job) && this.#link && this.#link.unsentBytes < maxUnsentBytes && this.#out.length < maxReports) (this.#out.push(...frames), this.#schedule());
      },
    };
  }

  /**
   * run takes tasks until the worker is drained, and resolves when the handlers have ended and the server has their
   * outcomes. The end of `signal` drains it, too. It waits for a server that is not there. It rejects if the server refuses the worker, or with `grace_over` if
   * handlers still ran at the end of the grace. It may be called once.
   */
  async run(options: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#began) throw new TypeError("a worker runs once: make another one with Codeq.worker");
    this.#began = true;
    const forget = onAbort(options.signal, () => this.drain());
    const unlisten = this.#listen();
    try {
      await new Promise<void>((done, fail) => {
        this.#over = (error) => {
          this.#over = undefined;
          this.#alarm.clear();
          this.#leaving.abort();
          if (error === undefined) done();
          else fail(error as Error);
        };
        if (this.#draining.signal.aborted) this.#over();
        else void this.#connect();
      });
    } finally {
      forget();
      unlisten();
      await this.#link?.close();
      this.#link = undefined;
    }
  }

  /**
   * drain takes no more tasks and hands back those that no handler has begun; handlers go on for `graceMs`. It resolves
   * at once: `run` resolves when the worker has ended.
   */
  drain(options: { graceMs?: number } = {}): void {
    this.#deadline = Math.min(this.#deadline, now() + (options.graceMs ?? this.#options.graceMs));
    if (!this.#draining.signal.aborted) {
      this.#draining.abort(new CodeqError({ code: "stopping", fate: "refused", message: "the worker drains" }));
      this.#stateWindow();
    }
    this.#schedule();
  }

  /** stop drains without a grace: the signals of the handlers end now. */
  stop(): void {
    this.drain({ graceMs: 0 });
    this.#stopFor(undefined);
  }

  /** How many handlers run. */
  get running(): number {
    return this.#running;
  }

  #around(handler: (job: Job) => unknown): (job: Job) => unknown {
    return this.#options.middleware.reduceRight<(job: Job) => unknown>((inner, m) => (job) => m(job, async () => inner(job)), handler);
  }

  /** listen drains at the signals of the process, and returns what undoes that. */
  #listen(): () => void {
    const { process } = globalThis as { process?: { on?(s: string, f: () => void): void; off?(s: string, f: () => void): void } };
    const names = this.#options.signals || [];
    let before = -Infinity;
    const heard = () => {
      if (before === -Infinity) this.drain();
      else if (now() - before >= 500) this.stop(); // sooner it is the same one, sent twice
      else return;
      before = now();
    };
    for (const name of names) process?.on?.(name, heard);
    return () => names.forEach((name) => process?.off?.(name, heard));
  }

  /** connect makes the next link. It never rejects. */
  async #connect(): Promise<void> {
    try {
      const link = await this.#dialer.next(this.#leaving.signal);
      if (!this.#over) return void link.close();
      this.#connected(link);
    } catch (error) {
      this.#over?.(error);
    }
  }

  /** connected sends the answers that the last link may have lost, then a heartbeat for all that is in hand, then the subscription. */
  #connected(link: Link): void {
    const welcome = link.welcome as Welcome;
    this.#link = link;
    this.#received = { here: 0, said: 0 };
    this.#window = { size: 0, unanswered: 0 };
    this.#unheard = false;
    const resumed = this.#resume !== "" && welcome.sessionId === this.#sessionId;
    if (!resumed) this.#session++;
    this.#sessionId = welcome.sessionId ?? "";
    this.#resume = welcome.resume ?? "";
    if (resumed) this.#resumed(welcome.held ?? []);
    this.#carried = [...this.#held.values()].filter((job) => job.session !== this.#session).length;
    this.#handInAll();
    this.#beat();
    this.#subscribe();
    this.#tell({ type: "connected", sessionId: this.#sessionId });
    this.#schedule();
    link.own((frames) => this.#receive(frames), (error) => this.#disconnected(link, error), () => {
      this.#out.push(`{"type":"heartbeat","ref":${this.#ask({ kind: "heartbeat", jobs: [] })},"tasks":[]}`);
      this.#schedule();
    });
  }

  /** resumed sorts what is in hand by what the server says that the session still has. What this worker does not know never arrived. */
  #resumed(held: { taskId: string; leaseToken: string }[]): void {
    const still = new Set(held.map((h) => h.leaseToken));
    for (const { taskId, leaseToken } of held) {
      const job = this.#held.get(leaseToken);
      if (job?.state === "doubtful") job.state = "waiting";
      if (job) {
        job.session = this.#session;
        continue;
      }
      const task = { id: taskId } as TaskFrame["task"];
      const stranger = new Job({ type: "task", seq: 0, leaseToken, leaseMs: 0, task }, this.#session, this.#reporter);
      stranger.unknown = true;
      stranger.end(release());
      this.#held.set(leaseToken, stranger);
    }
    for (const job of this.#held.values()) {
      if (!still.has(job.token) && job.state !== "ended") this.#lose(job, "lease_lost", "the session does not have it any more");
    }
  }

  /** disconnected lets handlers go on. What has not begun waits until a heartbeat over the next link says whose it is. */
  #disconnected(link: Link, error: CodeqError): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    if (error.code === "superseded") this.#resume = "";
    this.#out = [];
    this.#questions.clear();
    for (const job of this.#held.values()) job.asked = false;
    for (const job of this.#waiting) job.state = "doubtful";
    this.#tell({ type: "disconnected", error });
    this.#notice(`connection lost: ${error.message}`);
    this.#schedule();
    void this.#connect();
  }

  #receive(frames: Frame[]): void {
    for (const frame of frames) {
      switch (frame.type) {
        case "task":
          this.#arrive(frame as TaskFrame & Frame);
          break;
        case "ok":
          this.#answered(frame);
          break;
        case "error":
          this.#refused(frame as Answered);
          break;
        case "revoked": {
          const { leaseToken, reason } = frame as Frame & { leaseToken: string; reason: string };
          const job = this.#held.get(leaseToken);
          const code = reason === "timeout" || reason === "cancelled" ? reason : "lease_lost";
          if (job) this.#lose(job, code, `the server has taken the task back: ${reason}`);
          break;
        }
        case "draining":
          this.#dialer.goodbye = true;
          this.#notice(`the server sends no more tasks: ${String((frame as Frame & { reason?: string }).reason)}`);
          break;
      }
    }
    this.#schedule();
  }

  #arrive(frame: TaskFrame): void {
    this.#received.here = Math.max(this.#received.here, frame.seq);
    if (this.#held.has(frame.leaseToken)) return;
    const job = new Job(frame, this.#session, this.#reporter);
    this.#held.set(job.token, job);
    this.#waiting.push(job);
    const beatAt = now() + frame.leaseMs / 3;
    if (beatAt < this.#beatAt) this.#beatAt = beatAt;
  }

  #take(frame: Frame): Question | undefined {
    const question = frame.ref === undefined ? undefined : this.#questions.get(frame.ref);
    if (question) this.#questions.delete(frame.ref!);
    return question;
  }

  #answered(frame: Answered): void {
    const q = this.#take(frame);
    switch (q?.kind) {
      case "outcome":
        this.#refusals = 0;
        this.#settle(q.job, undefined, frame);
        break;
      case "heartbeat":
        for (const { leaseToken } of frame.lost ?? []) {
          const job = this.#held.get(leaseToken);
          if (job) this.#lose(job, "lease_lost", "the lease ended before a heartbeat came");
        }
        for (const job of q.jobs) if (job.state === "doubtful") job.state = "waiting";
        break;
      case "window":
        this.#window.unanswered--;
        break;
    }
  }

  #refused(frame: Answered): void {
    const q = this.#take(frame), error = refusal(frame as unknown as Refusal);
    switch (q?.kind) {
      case undefined:
        this.#notice(`the server refuses a frame: ${error.message} (${error.code})`);
        break;
      case "outcome":
        this.#outcomeRefused(q.job, error);
        break;
      case "heartbeat":
        if (again.frame.has(error.fate)) this.#beatAt = now() + Math.min(backoff(0), (this.#options.leaseSeconds * 1000) / 6);
        else this.#notice(`heartbeat refused: ${error.message}`);
        break;
      case "subscribe":
        if (!again.frame.has(error.fate)) return this.#stopFor(error);
        this.#unheard = true;
        this.#pause(error);
        break;
      case "window":
        this.#window.unanswered--;
        this.#window.size = -1; // the next change states it again
        break;
    }
  }

  /** outcomeRefused hands an outcome in again, or another one in its place, or takes the answer for final. */
  #outcomeRefused(job: Job, error: CodeqError): void {
    job.asked = false;
    if (again.frame.has(error.fate)) return this.#pause(error);
    const content = /^invalid_|^too_large$|^unknown_member$/.test(error.code);
    if (content && !job.reason && job.answer?.type !== "release") {
      job.answer = job.answer?.type === "result" ? nack(`the server refused the outcome: ${error.message}`) : release();
      return this.#handIn(job);
    }
    this.#settle(job, error);
  }

  /** pause waits before what was refused for now is sent again. Refusals during a pause count once. */
  #pause(error: CodeqError): void {
    if (this.#pauseEnd !== Infinity) return;
    this.#pauseEnd = now() + pauseFor(this.#refusals, error);
    if (++this.#refusals === 4) this.#notice(`the server puts this worker off: ${error.message} (${error.code}); it is asked again`);
  }

  #settle(job: Job, error: CodeqError | undefined, said?: Answered): void {
    this.#forget(job);
    this.#stateWindow();
    if (job.unknown) return;
    const lost = job.reason && job.reason.code !== "stopping" ? job.reason : undefined;
    const status = said?.status as string | undefined;
    this.#tell({
      type: "settled", job, outcome: job.answer!.outcome, deadLetter: status === "dlq",
      error: error && lost ? lost : error, retryAfterMs: status === "requeued" ? (said?.delaySeconds ?? 0) * 1000 : undefined,
    });
  }

  /**
   * lose ends the signal of a job that is not this worker's any more. The outcome of its handler is handed in all the
   * same: only an answer gives its place in the window back, and a result may still count.
   */
  #lose(job: Job, code: string, why: string): void {
    if (job.reason && job.reason.code !== "stopping") return;
    job.abort(code, why);
    if (job.state !== "waiting" && job.state !== "doubtful") return;
    this.#waiting = this.#waiting.filter((other) => other !== job);
    job.unknown = true; // no handler has seen it
    if (job.session === this.#session) return this.#finish(job, release());
    this.#forget(job);
    this.#stateWindow();
  }

  #forget(job: Job): void {
    this.#held.delete(job.token);
    if (job.session !== this.#session) this.#carried--;
  }

  #ending(): boolean {
    return this.#draining.signal.aborted || this.#stopped !== undefined;
  }

  /** stopFor ends the signals of what runs. Its outcomes are still waited for. */
  #stopFor(error: CodeqError | undefined): void {
    this.#stopped ??= { error };
    this.#giveUpAt = Math.min(this.#giveUpAt, now() + flushMs);
    for (const job of this.#held.values()) if (job.state === "running") job.abort("stopping", error ? `the worker ends: ${error.message}` : "the worker ends, and its grace is over");
    this.#stateWindow();
    this.#schedule();
  }

  /** step does what is due. */
  #step(): void {
    const at = now();
    if (at >= this.#pauseEnd) {
      this.#pauseEnd = Infinity;
      this.#handInAll();
      if (this.#unheard) this.#subscribe();
    }
    if (at >= this.#restEnd) {
      this.#restEnd = Infinity;
      this.#stateWindow();
    }
    if (at >= this.#beatAt) {
      const late = at - this.#beatAt;
      if (late > this.#options.leaseSeconds * 500 && this.#held.size > 0) {
        this.#notice(`heartbeats came ${Math.round(late)} ms late: a handler blocked the event loop, or the machine was suspended. Leases may be lost; move long computations to a worker thread`);
      }
      this.#beat();
    }
    if (at >= this.#deadline && !this.#stopped) this.#stopFor(undefined);
    this.#flush();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    soon(() => this.#step());
  }

  /** flush sends what waits, what confirms deliveries first, and begins what may begin. */
  #flush(): void {
    this.#scheduled = false;
    if (!this.#over) return;
    if (this.#link) {
      if (this.#received.here > this.#received.said) {
        this.#received.said = this.#received.here;
        this.#out.unshift(`{"type":"received","through":${this.#received.said}}`);
      }
      for (const [job, frame] of this.#progress) if (job.state === "running") this.#out.push(frame);
      this.#progress.clear();
      const out = this.#out;
      this.#out = [];
      this.#link.send(out);
    }
    this.#startWaiting();
    if (this.#isOver()) return this.#end();
    this.#alarm.set(Math.min(this.#link ? this.#beatAt : Infinity, this.#pauseEnd, this.#restEnd, this.#deadline > now() ? this.#deadline : Infinity, this.#giveUpAt));
  }

  /** startWaiting begins jobs up to the concurrency, the oldest first, or hands them back if no work begins now. */
  #startWaiting(): void {
    if (this.#waiting.length === 0) return;
    const back = this.#ending() || this.#restEnd !== Infinity;
    const kept: Job[] = [];
    for (const job of this.#waiting) {
      if (back && this.#link && (job.state === "waiting" || this.#ending())) {
        job.unknown = true;
        this.#finish(job, release({ started: false, ...(this.#ending() ? { stopping: true } : {}) }));
      } else if (back && this.#ending()) this.#forget(job); // the server will miss this worker
      else if (!back && job.state === "waiting" && this.#running < this.#options.concurrency) {
        job.begin();
        this.#running++;
        void this.#handle(job);
      } else kept.push(job);
    }
    this.#waiting = kept;
  }

  /** handle runs a handler. It never rejects. */
  async #handle(job: Job): Promise<void> {
    let answer: Answer;
    try {
      const handler = this.#handlers.get(job.command);
      if (!handler) throw new ReleaseError(`this worker has no handler for ${job.command}`, { started: false });
      answer = completed(await handler(job));
    } catch (error) {
      answer = failed(job, error);
    }
    this.#running--;
    if (answer.unbegun !== undefined) this.#rest(job, answer.unbegun);
    else this.#unbegun = 0;
    this.#finish(job, answer.outcome === "released" && this.#ending() ? release({ stopping: true }) : answer);
  }

  /** rest takes nothing for a while after work that could not begin. The server is told before the task goes back. */
  #rest(job: Job, why: string): void {
    if (this.#restEnd !== Infinity || this.#ending()) return;
    const ms = Math.min(firstRestMs * 2 ** Math.min(this.#unbegun++, 16), longestRestMs);
    this.#notice(`task ${job.id} could not begin: ${why}; taking nothing for ${ms} ms`);
    this.#restEnd = now() + ms;
    this.#stateWindow();
  }

  #finish(job: Job, answer: Answer): void {
    const said = this.#progress.get(job);
    if (said && this.#link && this.#progress.delete(job)) this.#out.push(said);
    job.end(answer);
    this.#handIn(job);
    this.#schedule();
  }

  /** handIn sends an answer, or leaves it for the next link. */
  #handIn(job: Job): void {
    if (!this.#link) return;
    job.asked = true;
    this.#out.push(job.frame(job.answer!.type, this.#ask({ kind: "outcome", job }), job.answer!.members));
  }

  #handInAll(): void {
    for (const job of this.#held.values()) if (job.state === "ended" && !job.asked) this.#handIn(job);
  }

  #ask(question: Question): number {
    this.#questions.set(++this.#lastRef, question);
    return this.#lastRef;
  }

  #subscribe(): void {
    this.#unheard = false;
    if (!this.#link) return;
    this.#window.size = this.#wanted();
    this.#out.push(JSON.stringify({
      type: "subscribe", ref: this.#ask({ kind: "subscribe" }), commands: [...this.#handlers.keys()], leaseSeconds: this.#options.leaseSeconds, window: this.#window.size,
    }));
  }

  /** wanted leaves out what an earlier session brought along: the server counts only what it sent over this one. */
  #wanted(): number {
    if (this.#ending() || this.#restEnd !== Infinity) return 0;
    return Math.max(0, this.#options.concurrency - this.#carried);
  }

  /** stateWindow tells the server when the window is another one than it knows. */
  #stateWindow(): void {
    const size = this.#wanted();
    if (!this.#link || size === this.#window.size) return;
    this.#window.size = size;
    this.#window.unanswered++;
    this.#out.push(`{"type":"window","ref":${this.#ask({ kind: "window" })},"size":${size}}`);
  }

  /** beat renews the leases of all that is in hand, by token. */
  #beat(): void {
    const { leaseSeconds } = this.#options;
    this.#beatAt = now() + (leaseSeconds * 1000) / 3;
    if (!this.#link) return;
    const jobs = [...this.#held.values()].filter((job) => !job.asked && (!job.reason || job.reason.code === "stopping"));
    for (let i = 0; i < jobs.length; i += 10_000) {
      const part = jobs.slice(i, i + 10_000);
      const tasks = part.map((job) => `{"taskId":"${job.id}","leaseToken":"${job.token}"}`).join(",");
      this.#out.push(`{"type":"heartbeat","ref":${this.#ask({ kind: "heartbeat", jobs: part })},"extendSeconds":${leaseSeconds},"tasks":[${tasks}]}`);
    }
  }

  #mayReport(job: Job): boolean {
    return job.state === "running" && (!job.reason || job.reason.code === "stopping");
  }

  #isOver(): boolean {
    if (!this.#ending()) return false;
    if (this.#running === 0 && this.#held.size === 0 && (!this.#link || this.#window.unanswered === 0)) return true;
    return now() >= this.#giveUpAt;
  }

  #end(): void {
    const left = this.#held.size;
    if (this.#stopped?.error) return this.#over?.(this.#stopped.error);
    if (left === 0) return this.#over?.();
    const what = this.#running > 0 ? `${this.#running} handlers still ran` : `the outcomes of ${left} tasks could not be handed in`;
    this.#over?.(new CodeqError({ code: "grace_over", fate: "refused", message: `the worker ended and ${what}; their tasks are tried again when their leases end. Handlers should watch job.signal` }));
  }

  /** tell calls the hook; an error of it is its own. */
  #tell(event: WorkerEvent): void {
    try {
      this.#options.on(event);
    } catch (error) {
      this.#notice(`the hook of the worker threw: ${messageOf(error)}`);
    }
  }
}

function whole(name: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most) throw new RangeError(`${name} must be an integer from ${least} to ${most}, got ${value}`);
}
