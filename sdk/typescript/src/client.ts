import { CodeqError, garbled } from "./errors.js";
import { Http, type Call, type Reply, type Token } from "./http.js";
import { Lane } from "./lane.js";
import { persist } from "./retry.js";
import type { SocketClass } from "./link.js";
import { artifactPath } from "./job.js";
import type { Answers, Artifact, NewTask, ResultRecord, Search, Task } from "./protocol.js";
import { Watch, type Subscription, type WatchOptions } from "./watch.js";
import { Worker, type WorkerOptions } from "./worker.js";

/**
 * A map of commands to the types of their payloads and results, such as
 * `{ resize: { payload: Photo; result: Thumbnail } }`. A result is a JSON object or nothing.
 */
export type Commands<C> = { [K in keyof C]: { payload: unknown; result: object | void } };

/** The map of a client that was given none. */
export type AnyCommands = Record<string, { payload: unknown; result: object | void }>;

/** The names of the commands of a map. */
export type Name<C> = keyof C & string;

export interface ClientOptions {
  /** The address of a server, or several, which are tried in turn. Without it `CODEQ_URL`, or http://127.0.0.1:8080. */
  url?: string | readonly string[] | undefined;
  /** A token, or what returns one. Without it `CODEQ_TOKEN`, if that is set. */
  token?: Token | undefined;
  /** The tenant to act for, with a token of the scope codeq:admin:all. */
  tenant?: string | undefined;
  /** The class of WebSockets. Without it that of the platform, or the package `ws` on Node 20. */
  WebSocket?: SocketClass | undefined;
  /** What holds a worker or a watch up, in words. Without it console.warn. */
  notice?: ((text: string) => void) | undefined;
}

export interface CallOptions {
  /** Ends the call: it rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** How long the call may take in all, with what it tries again; 30 s if left out. Infinity is for ever. */
  timeoutMs?: number | undefined;
}

type Optional<T> = { [K in keyof T]?: Exclude<T[K], null> | undefined };

/** All that can be said about a new task besides its command and payload. */
export interface EnqueueOptions extends Omit<Optional<NewTask>, "command" | "payload" | "runAt" | "expiresAt"> {
  runAt?: Date | string | undefined;
  expiresAt?: Date | string | undefined;
}

/** One task of a batch. */
export type BatchItem<C> = { [K in Name<C>]: EnqueueOptions & { command: K; payload: PayloadOf<C, K> } }[Name<C>];

export type PayloadOf<C, K extends keyof C> = C[K] extends { payload: infer P } ? P : never;
export type ResultOf<C, K extends keyof C> = C[K] extends { result: infer R } ? R : never;

/** A new task. */
export interface Enqueued<R = unknown> {
  readonly id: string;
  /** The idempotency key found an earlier task. */
  readonly replayed: boolean;
  /** The same as `Codeq.result` with this id. */
  result(options?: CallOptions): Promise<R>;
}

/** The part of a batch that one task became: exactly one member is there. */
export type BatchResult = { task: Enqueued; error?: undefined } | { task?: undefined; error: CodeqError };

export interface TaskPage {
  tasks: Task[];
  /** Asks for the next page; absent on the last. */
  cursor?: string;
}

/** What to find: tasks that all members select. */
export interface FindQuery {
  id?: string | undefined;
  labels?: Record<string, string> | undefined;
  /** The name of a queue, or what names begin with and `.*` behind it. */
  command?: string | undefined;
  state?: State | undefined;
  /** A text that the error contains. */
  errorPart?: string | undefined;
  /** A text that the payload contains, in the JSON as it was posted. */
  payloadPart?: string | undefined;
  /** The worker that has the task, or had it last. */
  worker?: string | undefined;
  /** Such as 90s, 1h30m or 7d. */
  olderThan?: string | undefined;
  /** At least so many failed attempts. */
  minAttempts?: number | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** The states of the lists of a queue. */
export type State = NonNullable<Search["state"]>;

const environment = (name: string) => (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name] || undefined;
const maxWaitSeconds = 30;

/**
 * A client of codeq. It connects to nothing before it is used, needs no closing, and one is enough for a
 * process. `C` maps commands to the types of their payloads and results.
 */
export class Codeq<C extends Commands<C> = AnyCommands> {
  readonly #http: Http;
  readonly #lane: Lane;
  /** @internal */
  readonly link: { http: Http; socket: SocketClass | undefined; notice: (text: string) => void };

  constructor(options: ClientOptions = {}) {
    this.#http = new Http(options.url ?? environment("CODEQ_URL") ?? "http://127.0.0.1:8080", options.token ?? environment("CODEQ_TOKEN"), options.tenant);
    this.#lane = new Lane(this.#http);
    const notice = options.notice ?? ((text: string) => console.warn(`codeq: ${text}`));
    this.link = { http: this.#http, socket: options.WebSocket, notice: (text) => void Promise.resolve(text).then(notice).catch(() => {}) };
  }

  /**
   * enqueue makes a task; it is on the server's disk when the promise is fulfilled. Calls that are made at the
   * same time share requests and keep their order. With an `idempotencyKey` a request whose answer was lost is
   * sent again, and the key never makes a second task. Without one it is not: the error is `outcome_unknown` then.
   */
  async enqueue<K extends Name<C>>(command: K, payload: PayloadOf<C, K>, options: EnqueueOptions & CallOptions = {}): Promise<Enqueued<ResultOf<C, K>>> {
    const { signal, timeoutMs, ...more } = options;
    const json = JSON.stringify({ command, payload: payload === undefined ? null : payload, ...more });
    const keyed = options.idempotencyKey !== undefined;
    const posted = await persist(keyed ? "keyed" : "once", { signal, timeoutMs: timeoutMs ?? 30_000 }, (until) => this.#lane.post(json, keyed, until));
    return { ...posted, result: (o) => this.result<K>(posted.id, o) };
  }

  /**
   * enqueueBatch makes many tasks, each as enqueue does; each is accepted or refused on its own. The results have the
   * order of the tasks. It rejects if not one of them had a definite answer, because there is no server, for example.
   */
  async enqueueBatch(tasks: readonly BatchItem<C>[], options: CallOptions = {}): Promise<BatchResult[]> {
    const results = await Promise.all(tasks.map(async ({ command, payload, ...more }): Promise<BatchResult> => {
      try {
        return { task: await this.enqueue(command, payload as PayloadOf<C, Name<C>>, { ...more, ...options }) };
      } catch (error) {
        if (error instanceof CodeqError) return { error };
        throw error;
      }
    }));
    const first = results[0]?.error;
    if (first && results.every(({ error }) => error && error.fate !== "refused")) throw first;
    return results;
  }

  /**
   * result waits until a task has ended, and for a server that is away, and returns what the worker returned.
   * Without a `timeoutMs` it waits for ever. If the task did not complete, the error is `task_failed` or
   * `task_cancelled`; if it has not ended in time, `result_not_found`.
   */
  async result<K extends Name<C>>(id: string, options: CallOptions = {}): Promise<ResultOf<C, K>> {
    const { task, result } = await this.outcome(id, options);
    if (result.status === "COMPLETED") return result.result as ResultOf<C, K>;
    throw new CodeqError({
      code: result.status === "FAILED" ? "task_failed" : "task_cancelled",
      message: `task ${id} is ${result.status}${result.error ? `: ${result.error}` : ""}`,
      fate: "refused", taskId: id, taskStatus: result.status, task, result,
    });
  }

  /** outcome waits as result does, and returns the task and its result record, whatever its status. */
  async outcome(id: string, options: CallOptions = {}): Promise<{ task: Task; result: ResultRecord }> {
    return persist("wait", { signal: options.signal, timeoutMs: options.timeoutMs ?? Infinity }, async (signal, leftMs) => {
      const waitSeconds = Math.max(0, Math.min(maxWaitSeconds, Math.floor(leftMs / 1000)));
      const { body } = await this.#http.ask<{ task: Task; result: ResultRecord }>({
        method: "GET", path: `/tasks/${encodeURIComponent(id)}/result?waitSeconds=${waitSeconds}`, waitMs: waitSeconds * 1000, signal,
      });
      if (typeof body?.result?.status !== "string") throw garbled("the answer to a request for a result has none");
      return body;
    });
  }

  /** cancel ends a task that waits or runs, and its worker is told. If it has ended otherwise, the error is `already_terminal`. */
  async cancel(id: string, options: CallOptions = {}): Promise<Task> {
    return this.#task("POST", `/tasks/${encodeURIComponent(id)}/cancel`, options);
  }

  /** task reads a task as it is now. */
  async task(id: string, options: CallOptions = {}): Promise<Task> {
    return this.#task("GET", `/tasks/${encodeURIComponent(id)}`, options);
  }

  /** artifacts are those of a task that has ended: files with their sizes, and links. */
  async artifacts(id: string, options: CallOptions = {}): Promise<Artifact[]> {
    const { body } = await this.#harmless<{ artifacts: Artifact[] }>({ method: "GET", path: `/tasks/${encodeURIComponent(id)}/artifacts` }, options);
    return body.artifacts;
  }

  /** download opens the file of an artifact; `timeoutMs` is over when the answer has begun. Read its body to the end, or cancel it. */
  async download(id: string, name: string, options: CallOptions = {}): Promise<Response> {
    const { body } = await this.#harmless<Response>({ method: "GET", path: artifactPath(id, name), raw: true }, options);
    return body;
  }

  /** list reads a page of the tasks of a queue in a state. */
  async list(command: Name<C>, query: { state: State; limit?: number; cursor?: string }, options: CallOptions = {}): Promise<TaskPage> {
    const { body } = await this.#harmless<Answers["GET /admin/queues/{command}/tasks"]>({ method: "GET", path: `/admin/queues/${encodeURIComponent(command)}/tasks${parameters(query)}` }, options);
    return body;
  }

  /** find reads a page of the tasks that a query selects in all queues. A page may be empty and have a cursor. */
  async find(query: FindQuery, options: CallOptions = {}): Promise<TaskPage & { scanned: number }> {
    const { body } = await this.#harmless<Answers["GET /admin/tasks"]>({ method: "GET", path: `/admin/tasks${parameters(search(query))}` }, options);
    return body;
  }

  /** found goes through all tasks that a query selects, page by page. */
  async *found(query: FindQuery, options: CallOptions = {}): AsyncGenerator<Task, void, void> {
    for (let cursor = query.cursor; ; ) {
      const page = await this.find({ ...query, cursor }, options);
      yield* page.tasks;
      if (!page.cursor) return;
      cursor = page.cursor;
    }
  }

  /** worker makes a worker, which begins with `run`. */
  worker(options: WorkerOptions<C>): Worker<C> {
    return new Worker<C>(this.link, options);
  }

  /**
   * watch tells what happens as it happens. Iterate over it with `for await`; it connects when that begins, and
   * again by itself. It ends with the loop or the signal. A refusal that will not change is thrown.
   */
  watch<S extends Subscription>(subscription: S, options: WatchOptions = {}): Watch<S> {
    return new Watch<S>(this.link, subscription, options);
  }

  async #task(method: "GET" | "POST", path: string, options: CallOptions): Promise<Task> {
    const { body } = await this.#harmless<Task>({ method, path }, options);
    if (typeof body?.id !== "string") throw garbled("the answer has no task");
    return body;
  }

  #harmless<T>(call: Call, options: CallOptions): Promise<Reply<T>> {
    return persist("harmless", { signal: options.signal, timeoutMs: options.timeoutMs ?? 30_000 }, (until) => this.#http.ask<T>({ ...call, signal: until }));
  }
}

function search({ labels, errorPart, payloadPart, minAttempts, ...same }: FindQuery): object {
  const label = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return { ...same, label, "error~": errorPart, "payload~": payloadPart, "attempts>": minAttempts };
}

function parameters(query: object): string {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, unknown][]) {
    for (const one of [value].flat()) if (one !== undefined && one !== null) all.append(name, String(one));
  }
  return all.size > 0 ? `?${all.toString()}` : "";
}
