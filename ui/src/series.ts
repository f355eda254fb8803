// The figures of one queue, or of all, over time.

/** Places of the figures in a row of the protocol; place 0 is the slot. */
export const F = {
  ready: 1, delayed: 2, inProgress: 3, dead: 4, done: 5,
  in: 6, started: 7, completed: 8, failed: 9, retried: 10, expired: 11,
  oldest: 12, waitP50: 13, waitP99: 14, runP50: 15, runP99: 16, paused: 17, limited: 18,
} as const;
export type Figure = (typeof F)[keyof typeof F];

const isRate = (f: number) => f >= F.in && f <= F.expired;
const isTime = (f: number) => f >= F.waitP50 && f <= F.runP99;

/** How ranges of time are divided: the number of steps and their length. */
export const ranges = { "5m": [300, 1000], "1h": [360, 10_000], "24h": [720, 120_000], "7d": [1008, 600_000] } as const;
export type Range = keyof typeof ranges;

/** Series has the last `size` steps. A step in which nothing happened has no row. */
export class Series {
  /** The figures of now, which are those of all the time if nothing happened in it. */
  latest: readonly number[] = [];
  /** A row of one second may be the one that came; it is not changed, but replaced. */
  private rows: (readonly number[] | undefined)[];
  private first: number; // the number of the step of rows[0]
  private liveAt: number;

  constructor(readonly size: number, readonly stepMs: number, nowMs: number) {
    this.rows = new Array(size).fill(undefined);
    this.liveAt = Math.floor(nowMs / 1000) * 1000;
    this.first = this.step(this.liveAt) - size + 1;
  }

  private step = (ms: number) => Math.floor((ms - 1) / this.stepMs);

  /** advance makes the last step that of a time. */
  advance(ms: number) {
    const steps = this.step(ms) - this.first - this.size + 1;
    if (steps <= 0) return;
    this.first += steps;
    this.rows.splice(0, steps);
    while (this.rows.length < this.size) this.rows.push(undefined);
  }

  /** put takes a row: its rates are sums over the second or the step that ends then, the others are of that time. */
  put(ms: number, figures: readonly number[]) {
    this.advance(ms);
    const i = this.step(ms) - this.first;
    if (i < 0 || i >= this.size) return;
    const had = this.rows[i];
    if (!had) {
      this.rows[i] = figures;
      return;
    }
    this.rows[i] = had.map((n, f) => {
      const value = figures[f] ?? 0;
      return isRate(f) ? n + value : isTime(f) ? Math.max(n, value) : value;
    });
  }

  /** live takes a row of now, whose rates are those of the last second. It closes the hole since the last one. */
  live(ms: number, figures: readonly number[]) {
    const second = Math.floor(ms / 1000) * 1000;
    const from = second - this.liveAt > 3000 ? second : this.liveAt + 1000;
    for (let at = from; at <= second; at += 1000) this.put(at, figures);
    this.liveAt = second;
    this.latest = figures;
  }

  /** times are the ends of the steps, in seconds as charts want them. */
  times(): number[] {
    return this.rows.map((_, i) => ((this.first + i + 1) * this.stepMs) / 1000);
  }

  /** firstAt is when the first row ends, Infinity without rows. */
  firstAt(): number {
    const i = this.rows.findIndex((r) => r);
    return i < 0 ? Infinity : (this.first + i + 1) * this.stepMs;
  }

  /**
   * column is a figure at each step; rates are those of a second. It is null where nobody knows it: nothing
   * is known before `since`, and the last step of a long one is not over.
   */
  column(f: Figure, since = 0): (number | null)[] {
    const from = since / this.stepMs - this.first - 1;
    const last = isRate(f) && this.stepMs > 1000 ? this.size - 1 : this.size;
    let known = this.before(f);
    return this.rows.map((r, i) => {
      if (i < from || i >= last) return null;
      if (isRate(f)) return r ? ((r[f] ?? 0) * 1000) / this.stepMs : 0;
      if (isTime(f)) return r?.[f] || (f <= F.waitP99 && r?.[F.started] ? 0 : null);
      return (known = r ? (r[f] ?? 0) : known);
    });
  }

  /** addTo adds a rate to that of another series at each step. */
  addTo(sum: (number | null)[], f: Figure, other: Series) {
    const by = this.first - other.first, part = 1000 / this.stepMs;
    this.rows.forEach((r, i) => {
      if (r?.[f] && sum[i + by] != null) sum[i + by]! += r[f]! * part;
    });
  }

  /** before is what a count was before the first row: nothing happened then, but a new queue had nothing. */
  private before(f: Figure): number {
    const r = this.rows.find((row) => row);
    if (!r) return this.latest[f] ?? 0;
    const all = r[F.ready]! + r[F.delayed]! + r[F.inProgress]! + r[F.dead]! + r[F.done]!;
    return all <= r[F.in]! ? 0 : r[f]!;
  }
}
