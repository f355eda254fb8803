let wall = Date.now(), mono = performance.now(), passed = 0;

/**
 * now is a clock in milliseconds that never goes back and goes on while the machine is suspended, which
 * the clock of timers does not. It is the monotonic clock, moved forward where the wall clock is more
 * than a second ahead of it. @internal
 */
export function now(): number {
  const atWall = Date.now(), atMono = performance.now();
  const slept = atWall - wall, ran = atMono - mono;
  passed += slept > ran + 1000 ? slept : Math.max(0, ran);
  wall = atWall;
  mono = atMono;
  return passed;
}

/** A timer for a time of `now`. It looks at the clock each second, so that a suspended machine does not delay it by more. @internal */
export class Alarm {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #at = Infinity;

  constructor(private readonly ring: () => void, private readonly keepsAlive = true) {}

  /** set moves the alarm; Infinity is never. */
  set(at: number): void {
    if (at === this.#at && this.#timer !== undefined) return;
    this.clear();
    this.#at = at;
    if (at !== Infinity) this.#arm();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#at = Infinity;
  }

  #arm(): void {
    const left = this.#at - now();
    this.#timer = setTimeout(() => {
      if (now() < this.#at) return this.#arm();
      this.clear();
      this.ring();
    }, Math.max(0, Math.min(left, 1000)));
    if (!this.keepsAlive) (this.#timer as { unref?: () => void }).unref?.();
  }
}

/** sleep waits, or throws the reason of the signal. @internal */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    if (signal?.aborted) return fail(signal.reason as unknown);
    const alarm = new Alarm(() => (signal?.removeEventListener("abort", stop), done()));
    const stop = () => (alarm.clear(), fail(signal?.reason as unknown));
    signal?.addEventListener("abort", stop, { once: true });
    alarm.set(now() + ms);
  });
}

/** onAbort calls back at the end of a signal, at once if it has ended, and returns what undoes that. @internal */
export function onAbort(signal: AbortSignal | undefined, stop: (reason: unknown) => void): () => void {
  if (!signal) return () => {};
  const heard = () => stop(signal.reason);
  if (signal.aborted) heard();
  else signal.addEventListener("abort", heard, { once: true });
  return () => signal.removeEventListener("abort", heard);
}

/** soon runs what is left to do after the events of this turn, once for all of them. @internal */
export const soon: (run: () => void) => void =
  typeof setImmediate === "function" ? (run) => void setImmediate(run) : (run) => void setTimeout(run, 0);
