import { onAbort } from "./clock.js";
import { CodeqError, garbled, isRefusal, outcomeUnknown, refusal, unanswered } from "./errors.js";
import type { Http } from "./http.js";
import type { Error as Refusal } from "./protocol.js";

const maxItems = 1000;
const maxChars = 2 << 20;
const remedy = "look whether the task is there before you enqueue it again, or give tasks an idempotencyKey";

/** What the server says of a new task. @internal */
export interface Posted {
  id: string;
  replayed: boolean;
}

interface Item {
  json: string;
  keyed: boolean;
  alone: boolean;
  /** Nobody waits for it any more. */
  left: boolean;
  done: (posted: Posted) => void;
  fail: (error: unknown) => void;
}

/**
 * A lane posts tasks in the order in which they were given, one request at a time: a task that comes while the
 * lane is free goes at once, and those that come meanwhile share the next request. @internal
 */
export class Lane {
  #waiting: Item[] = [];
  #busy = false;
  /** The request on the way. */
  #sent: { items: Item[]; stop: AbortController } | undefined;

  constructor(private readonly http: Http) {}

  /** post posts one task, once; `json` is its member of a batch. */
  post(json: string, keyed: boolean, signal: AbortSignal | undefined): Promise<Posted> {
    return new Promise((done, fail) => {
      if (signal?.aborted) return fail(signal.reason as Error);
      const item: Item = { json, keyed, alone: false, left: false, done: (p) => (forget(), done(p)), fail: (e) => (forget(), fail(e as Error)) };
      const forget = onAbort(signal, (reason) => {
        item.left = true;
        const waits = this.#waiting.includes(item);
        if (waits) this.#waiting = this.#waiting.filter((other) => other !== item);
        else if (this.#sent?.items.every((other) => other.left)) this.#sent.stop.abort(reason);
        fail(!waits && !keyed && reason instanceof CodeqError ? outcomeUnknown(reason, remedy) : reason);
      });
      this.#waiting.push(item);
      if (!this.#busy) {
        this.#busy = true;
        queueMicrotask(() => void this.#run());
      }
    });
  }

  /** run never rejects: whatever happens goes to the items. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const items = this.#take(), stop = new AbortController();
      this.#sent = { items, stop };
      try {
        await (items.length === 1 ? this.#one(items[0]!, stop.signal) : this.#many(items, stop.signal));
      } catch (error) {
        this.#refused(items, error);
      }
    }
    this.#sent = undefined;
    this.#busy = false;
  }

  #take(): Item[] {
    let n = 0, chars = 0;
    for (const item of this.#waiting) {
      if (n > 0 && (n === maxItems || item.alone || chars + item.json.length > maxChars)) break;
      chars += item.json.length;
      n++;
      if (item.alone) break;
    }
    return this.#waiting.splice(0, n);
  }

  async #one(item: Item, signal: AbortSignal): Promise<void> {
    const { body, headers } = await this.http.ask<{ id?: unknown } | undefined>({ method: "POST", path: "/tasks", body: item.json, signal });
    if (typeof body?.id !== "string") throw garbled("the answer to a new task has no id");
    item.done({ id: body.id, replayed: headers.get("Idempotent-Replayed") === "true" });
  }

  async #many(items: Item[], signal: AbortSignal): Promise<void> {
    const { body } = await this.http.ask<{ results?: (Posted | Refusal)[] } | undefined>({
      method: "POST", path: "/tasks/batch", body: `{"tasks":[${items.map((i) => i.json).join(",")}]}`, headers: { Prefer: "return=minimal" }, signal,
    });
    const results = body?.results;
    if (results?.length !== items.length) throw garbled("the answer to a batch has another number of results");
    items.forEach((item, i) => {
      const said = results[i];
      if (isRefusal(said)) item.fail(refusal({ ...said, error: said.error.replace(/^tasks\[\d+\]\./, "") }));
      else if (typeof said?.id === "string") item.done({ id: said.id, replayed: said.replayed === true });
      else item.fail(garbled("a result of a batch has no id"));
    });
  }

  /** refused ends the items of a request. One that the server could not read is posted again item by item: one of them broke it. */
  #refused(items: Item[], error: unknown): void {
    if (items.length > 1 && error instanceof CodeqError && error.fate === "refused" && (error.status === 400 || error.status === 413)) {
      for (const item of items) item.alone = true;
      this.#waiting.unshift(...items.filter((item) => !item.left));
      return;
    }
    const unknown = error instanceof CodeqError && unanswered(error.fate) ? outcomeUnknown(error, remedy) : error;
    for (const item of items) item.fail(item.keyed ? error : unknown);
  }
}
