import { Alarm, now, onAbort, sleep } from "./clock.js";
import { CodeqError, inDoubt, outcomeUnknown, unanswered, type Fate } from "./errors.js";

const passing: Fate[] = ["away", "unreached", "internal", "broken", "gateway"];

/**
 * The one table that decides what is tried again: for each purpose, the fates after which there is
 * another try. After any other the error of the try is the answer. @internal
 */
export const again = {
  /** A task without a key: a second post could make a second task. */
  once: new Set<Fate>(),
  /** A task with a key, whose refusals for now are the caller's to wait for. */
  keyed: new Set<Fate>(passing),
  /** The same after a try that may have made it, reads, and changes that are the same when they are done twice. */
  harmless: new Set<Fate>([...passing, "putOff"]),
  /** A wait for a result. */
  wait: new Set<Fate>([...passing, "putOff", "late"]),
  /** What a session sends: outcomes, subscriptions. */
  frame: new Set<Fate>(["putOff", "away", "internal"]),
  /** The first connection of a worker, and each of a watch. */
  first: new Set<Fate>([...passing, "putOff"]),
  /** The next ones of a worker: it may have work in hand. */
  worker: new Set<Fate>([...passing, "putOff", "refused", "foreign", "moved"]),
} as const;

/** backoff is the pause after so many failures in a row: doubling from 200 ms to 5 s, then half to one and a half of that. @internal */
export function backoff(failures: number): number {
  return Math.min(200 * 2 ** Math.min(failures, 5), 5000) * (0.5 + Math.random());
}

/** pauseFor is the pause after an error of a try that took so long: the backoff from its start, or longer if the answer asked for that, up to 50 s. @internal */
export function pauseFor(failures: number, error: unknown, tookMs = 0): number {
  const asked = error instanceof CodeqError ? error.retryAfterMs ?? 0 : 0;
  return Math.max(backoff(failures) - tookMs, Math.min(asked, 50_000));
}

const sayEveryMs = 30_000;
const sameKey = "do it again with the same idempotencyKey";

/** For how long a call goes on. @internal */
export interface Patience {
  signal?: AbortSignal | undefined;
  /** Infinity is for ever. */
  timeoutMs: number;
  /** Tells people now and then that it is tried again. */
  notice?: ((text: string) => void) | undefined;
}

/** How much longer than its time a wait may take, which ends by the answer of the server. */
const answerSlackMs = 5000;

/**
 * persist tries until the table calls an error final, the signal ends, or the time is over. A pause counts
 * from the start of a try, and one that an answer asks for from the answer. `attempt` gets a signal that ends with that of the caller and with the time, the time that is
 * left, and how the tries before went. @internal
 */
export async function persist<T>(purpose: keyof typeof again, p: Patience, attempt: (signal: AbortSignal, leftMs: number, failures: number, last: CodeqError | undefined) => Promise<T>): Promise<T> {
  const until = now() + p.timeoutMs, stop = new AbortController();
  const alarm = new Alarm(() => stop.abort(new CodeqError({ code: "timeout", fate: "broken", message: `no answer came within ${p.timeoutMs} ms` })), false);
  const forget = onAbort(p.signal, (reason) => stop.abort(reason));
  alarm.set(until + (purpose === "wait" ? answerSlackMs : 0));
  let doubted = false, toldAt = -Infinity, last: CodeqError | undefined;
  try {
    for (let failures = 0; ; failures++) {
      const began = now();
      try {
        stop.signal.throwIfAborted();
        return await attempt(stop.signal, until - began, failures, last);
      } catch (error) {
        p.signal?.throwIfAborted();
        if (!(error instanceof CodeqError)) throw error;
        last = error;
        doubted ||= inDoubt(error.fate);
        const keyed = purpose === "keyed" && doubted;
        if (stop.signal.aborted || !again[keyed ? "harmless" : purpose].has(error.fate)) {
          throw keyed && unanswered(error.fate) ? outcomeUnknown(error, sameKey) : error;
        }
        const took = now() - began, waited = error.fate === "late" && took >= 500;
        if (waited) failures = 0;
        const pause = waited ? 0 : pauseFor(failures, error, took);
        const over = () => error.fate === "late" ? error : keyed ? outcomeUnknown(error, sameKey) : timeIsOver(p.timeoutMs, error);
        if (now() + pause >= until) throw over();
        if (p.notice && now() - toldAt >= sayEveryMs) {
          toldAt = now();
          p.notice(`${error.message}; it is tried again`);
        }
        await sleep(pause, stop.signal).catch((reason: unknown) => { throw p.signal?.aborted ? reason : over(); });
      }
    }
  } finally {
    forget();
    alarm.clear();
  }
}

const timeIsOver = (ms: number, cause: CodeqError) => new CodeqError({ code: "timeout", fate: cause.fate, cause, message: `${ms} ms are over; what happened last: ${cause.message}` });
