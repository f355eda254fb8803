import { onAbort } from "./clock.js";
import { CodeqError, refusal } from "./errors.js";
import { Dialer, type Frame, type Link, type Path } from "./link.js";
import type { Error as Refusal, EventFrame, GapFrame, MarkFrame, NamesFrame, OutputFrame, ProgressFrame, Search, Server as ServerFigures, Needs, Session, SnapshotFrame, SubscribeFrame, Task, TickFrame } from "./protocol.js";
import { again, pauseFor } from "./retry.js";

/** What a watch shows. `commands` are names of queues, or prefixes that end with `.*`; none are all. */
export type Subscription =
  /** Each transition of tasks, from now on or after a position. */
  | { kind: "events"; commands?: string[]; causes?: string[]; maxPerSecond?: number; from?: Position }
  /** One task, each of its transitions, its progress and its output. */
  | { kind: "task"; taskId: string }
  /** The figures of queues. */
  | { kind: "queues"; commands?: string[]; everyMs?: number }
  /** The beginning of the list of a queue in a state, or of what a search finds. */
  | { kind: "page"; command: string; state: NonNullable<Search["state"]>; limit?: number }
  | { kind: "page"; filter: Search; limit?: number }
  /** The sessions of the tenant. */
  | { kind: "workers" }
  /** The figures of the server, and what needs a person. */
  | { kind: "server" };

/** How far a watch of events is: it can be stored as JSON, and another watch goes on behind it. */
export interface Position {
  creationId: string;
  positions: Record<string, number>;
}

/** Events, or output of a task, that were not shown; `replaced` says that the server has another data directory. */
export type Gap = Omit<GapFrame, "id" | "reason"> & { reason: GapFrame["reason"] | "replaced" };

/** The figures of a queue. */
export interface QueueFigures {
  tenant: string;
  command: string;
  ready: number;
  delayed: number;
  inProgress: number;
  dead: number;
  done: number;
  /** Of the last second, like the next five. */
  enqueued: number;
  started: number;
  completed: number;
  failed: number;
  retried: number;
  expired: number;
  /** When the oldest ready task became ready, in Unix milliseconds; 0 if none is. */
  oldestReadyAt: number;
  /** From ready to a worker, in milliseconds. */
  waitP50: number;
  waitP99: number;
  /** How long a delivery runs, in milliseconds. */
  runP50: number;
  runP99: number;
  paused: boolean;
  limited: number;
}

type Tasks = { type: "tasks"; tasks: Task[]; /** Tasks that a new page would have before the last row. */ above: number };

/** What each kind of watch tells. */
export interface NewsOf {
  events: Omit<EventFrame, "id"> | Gap;
  task: { type: "task"; task: Task } | Omit<EventFrame, "id"> | Omit<ProgressFrame, "id"> | Omit<OutputFrame, "id"> | Gap;
  queues: { type: "queues"; queues: QueueFigures[] };
  page: Tasks;
  workers: { type: "workers"; sessions: Session[] };
  server: { type: "server"; server: ServerFigures; needs: Needs };
}

export interface WatchOptions {
  /** Ends the watch: the loop rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** How many events may wait for the loop before a gap takes the place of further ones; 10,000 if left out. */
  buffer?: number | undefined;
}

type News = NewsOf[keyof NewsOf];
type Numbered = EventFrame | ProgressFrame | OutputFrame;

const figures = [
  "ready", "delayed", "inProgress", "dead", "done", "enqueued", "started", "completed", "failed", "retried", "expired", "oldestReadyAt",
  "waitP50", "waitP99", "runP50", "runP99", "paused", "limited",
] as const;

/**
 * A watch tells what happens as it happens, and connects again by itself. Nothing is missed in silence: events go on
 * behind the last one that was shown, and a gap tells what the server does not have any more; the other kinds show
 * everything anew. A loop that is slow gets gaps, or figures less often, and never old ones.
 */
export class Watch<S extends Subscription = Subscription> implements AsyncIterable<NewsOf[S["kind"]]> {
  readonly #subscription: Subscription;
  readonly #signal: AbortSignal | undefined;
  readonly #buffer: number;
  readonly #dialer: Dialer;
  readonly #leaving = new AbortController();
  #link: Link | undefined;
  #queue: News[] = [];
  /** The newest state, which takes the place of an older one that nobody has seen. */
  #state: News | undefined;
  #end: { error: unknown } | undefined;
  #wake: (() => void) | undefined;
  #position: Position | undefined;
  /** How far the events are that have come, whether they were taken or not. */
  #asked: Position | undefined;
  #reported = 0;
  #again: ReturnType<typeof setTimeout> | undefined;
  #refusals = 0;
  #began = false;

  #names = new Map<number, { tenant: string; command: string }>();
  #rows = new Map<number, number[]>();
  #sessions = new Map<string, Session>();
  #tasks = new Map<string, Task>();
  #above = 0;
  #whole = true;

  /** @internal */
  constructor(base: Pick<Path, "http" | "socket"> & { notice: (text: string) => void }, subscription: S, o: WatchOptions) {
    this.#subscription = subscription;
    this.#signal = o.signal;
    this.#buffer = o.buffer ?? 10_000;
    this.#position = subscription.kind === "events" && subscription.from ? structuredClone(subscription.from) : undefined;
    this.#asked = this.#position && structuredClone(this.#position);
    this.#dialer = new Dialer({ ...base, path: "/events", subprotocol: "codeq.events.v1", hello: () => ({ type: "hello" }) }, "first", base.notice);
  }

  /** Behind the last event that was taken from this watch; undefined before it has connected, and for other kinds than events. */
  get position(): Position | undefined {
    return this.#position && structuredClone(this.#position);
  }

  /** The news. A watch can be iterated over once. */
  async *[Symbol.asyncIterator](): AsyncGenerator<NewsOf[S["kind"]], void, void> {
    if (this.#began) throw new TypeError("a watch can be iterated over once: make another one with Codeq.watch");
    this.#began = true;
    const forget = onAbort(this.#signal, (reason) => this.#over(reason));
    if (!this.#end) void this.#connect();
    try {
      for (;;) {
        if (this.#end && (this.#signal?.aborted || (this.#queue.length === 0 && !this.#state))) throw this.#end.error;
        const news = this.#queue.shift() ?? this.#state;
        if (news === undefined) {
          await new Promise<void>((done) => (this.#wake = done));
          continue;
        }
        if (news === this.#state) this.#state = undefined;
        this.#reach(news);
        yield news as NewsOf[S["kind"]];
      }
    } finally {
      forget();
      this.#end ??= { error: undefined };
      this.#leaving.abort();
      clearTimeout(this.#again);
      await this.#link?.close();
    }
  }

  /** connect makes the next link. It never rejects. */
  async #connect(): Promise<void> {
    try {
      const link = await this.#dialer.next(this.#leaving.signal);
      if (this.#end) return void link.close();
      this.#link = link;
      this.#greeted(link.welcome as unknown as { creationId: string; positions: Record<string, number> });
      this.#subscribe();
      link.own((frames) => {
        for (const frame of frames) this.#receive(frame);
      }, () => {
        clearTimeout(this.#again);
        if (this.#end) return;
        this.#link = undefined;
        void this.#connect();
      });
    } catch (error) {
      this.#over(error);
    }
  }

  /** greeted begins at the position of the server, or says that ours is of another database. */
  #greeted({ creationId, positions }: Position): void {
    for (const map of [this.#names, this.#rows, this.#sessions, this.#tasks]) map.clear();
    this.#whole = true;
    if (this.#subscription.kind !== "events") return;
    const replaced = this.#asked && this.#asked.creationId !== creationId;
    if (this.#asked && !replaced) return;
    this.#asked = { creationId, positions: { ...positions } };
    if (replaced) this.#tell({ type: "gap", shard: 0, from: 0, to: 0, reason: "replaced", missed: 0 });
    this.#position = structuredClone(this.#asked);
  }

  #subscribe(): void {
    const { from: _, ...rest } = this.#subscription as Subscription & { from?: Position };
    const frame: SubscribeFrame = { type: "subscribe", ref: 1, id: "w", ...rest };
    if (this.#subscription.kind === "events" && this.#asked) Object.assign(frame, { from: this.#asked.positions, creationId: this.#asked.creationId });
    this.#link?.send([JSON.stringify(frame)]);
  }

  #receive(frame: Frame): void {
    switch (frame.type) {
      case "ok":
        this.#refusals = 0;
        break;
      case "error":
        this.#refused(refusal(frame as unknown as Refusal));
        break;
      case "draining":
        this.#dialer.goodbye = true;
        break;
      case "names":
        this.#named(frame as unknown as NamesFrame);
        break;
      case "snapshot":
      case "tick":
        this.#changed(frame as unknown as SnapshotFrame | TickFrame);
        break;
      case "event":
      case "progress":
      case "output":
        this.#happened(frame as unknown as Numbered);
        break;
      case "gap": {
        const { id: _, ...gap } = frame as unknown as GapFrame;
        this.#tell(gap);
        this.#come(gap.shard, gap.to);
        break;
      }
      case "mark":
        for (const [shard, n] of Object.entries((frame as unknown as MarkFrame).positions)) this.#come(Number(shard), n as number);
        break;
    }
  }

  /** refused asks again for what is refused for now. */
  #refused(error: CodeqError): void {
    if (!again.frame.has(error.fate)) return this.#over(error);
    this.#again = setTimeout(() => this.#subscribe(), pauseFor(this.#refusals++, error));
  }

  #happened(frame: Numbered): void {
    if (frame.type !== "event") {
      if (frame.n <= this.#reported) return; // it was told over an earlier connection
      this.#reported = frame.n;
    }
    const { id: _, ...news } = frame;
    this.#tell(news as News);
    if (frame.type === "event") this.#come(frame.shard, frame.n);
  }

  /** come notes the last event of a shard that is here. */
  #come(shard: number, n: number): void {
    if (this.#asked && n > (this.#asked.positions[shard] ?? 0)) this.#asked.positions[shard] = n;
    if (this.#queue.length === 0 && this.#position && this.#asked) this.#position.positions = { ...this.#asked.positions };
  }

  /** reach notes the last event of a shard that was taken. */
  #reach(news: News): void {
    if (!this.#position || (news.type !== "event" && news.type !== "gap")) return;
    this.#position.positions[news.shard] = Math.max(this.#position.positions[news.shard] ?? 0, news.type === "event" ? news.n : news.to);
  }

  /** tell hands news to the loop. What does not fit becomes a gap, one for each shard. */
  #tell(news: News): void {
    if (this.#queue.length < this.#buffer || (news.type !== "event" && news.type !== "output")) this.#queue.push(news);
    else {
      const shard = news.type === "event" ? news.shard : 0, n = news.type === "event" ? news.n : 0;
      const gap = this.#queue.slice(this.#buffer).find((g): g is Gap => g.type === "gap" && g.shard === shard && g.reason === "slow");
      if (gap) Object.assign(gap, { to: Math.max(gap.to, n), missed: gap.missed + 1 });
      else this.#queue.push({ type: "gap", shard, from: n, to: n, reason: "slow", missed: 1, ...(news.type === "output" ? { of: "output" } : {}) });
    }
    this.#wake?.();
  }

  #named(frame: NamesFrame): void {
    for (const [slot, tenant, command] of frame.queues as [number, string?, string?][]) {
      if (command === undefined) (this.#names.delete(slot), this.#rows.delete(slot));
      else this.#names.set(slot, { tenant: tenant ?? "", command });
    }
  }

  /** changed adds to what is shown, and tells it when it is whole. */
  #changed(frame: SnapshotFrame | TickFrame): void {
    if (frame.type === "snapshot") {
      if (this.#whole) for (const map of [this.#rows, this.#sessions, this.#tasks]) map.clear();
      this.#whole = !frame.more;
      if (this.#subscription.kind === "events") this.#restart(frame);
    }
    for (const row of frame.queues ?? []) this.#rows.set(row[0]!, row);
    for (const session of (frame.sessions ?? []) as Session[]) this.#sessions.set(session.sessionId, session);
    for (const task of (frame.tasks ?? []) as unknown as Task[]) this.#tasks.set(task.id, task);
    this.#above = frame.above ?? this.#above;
    for (const left of ("left" in frame && frame.left) || []) (this.#sessions.delete(left), this.#tasks.delete(left));
    if (!this.#whole || this.#subscription.kind === "events") return;
    this.#state = this.#shown(frame);
    if (this.#state?.type === "task") (this.#queue.push(this.#state), (this.#state = undefined));
    this.#wake?.();
  }

  /** restart takes a snapshot of positions for what it is: events begin there. */
  #restart(frame: SnapshotFrame): void {
    if (!frame.at || !this.#asked) return;
    this.#asked.positions = { ...(frame.at as Record<string, number>) };
    this.#come(0, 0);
  }

  #shown(frame: SnapshotFrame | TickFrame): News | undefined {
    switch (this.#subscription.kind) {
      case "queues":
        return { type: "queues", queues: this.#figures() };
      case "page":
        return { type: "tasks", tasks: [...this.#tasks.values()], above: this.#above };
      case "workers":
        return { type: "workers", sessions: [...this.#sessions.values()] };
      case "server":
        return frame.server && { type: "server", server: frame.server, needs: frame.needs ?? [] };
      case "task":
        return "task" in frame && frame.task ? { type: "task", task: frame.task as unknown as Task } : undefined;
    }
    return undefined;
  }

  #figures(): QueueFigures[] {
    const all: QueueFigures[] = [];
    for (const [slot, row] of this.#rows) {
      const name = this.#names.get(slot);
      if (!name) continue; // the total
      const values = Object.fromEntries(figures.map((f, i) => [f, f === "paused" ? row[i + 1] === 1 : row[i + 1] ?? 0]));
      all.push({ ...name, ...values } as unknown as QueueFigures);
    }
    return all.sort((a, b) => (a.tenant + a.command < b.tenant + b.command ? -1 : 1));
  }

  #over(error: unknown): void {
    this.#end ??= { error };
    this.#leaving.abort();
    this.#wake?.();
  }
}
