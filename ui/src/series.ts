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
/** What stands for one step in the ring of a series: whether it has a row, and its figures by their places. */
const width = F.limited + 1;
const mostStored = 2 ** 32 - 1;

export class Series {
  /** The figures of now, which are those of all the time if nothing happened in it. */
  latest: readonly number[] = [];
  /** The steps, the oldest at the place of head; made with the first row. Rows of five hundred queues as objects would keep the browser busy with their removal. */
  private ring?: Uint32Array;
  private head = 0;
  private first: number; // the number of the oldest step
  private liveAt: number;

  constructor(readonly size: number, readonly stepMs: number, nowMs: number) {
    this.liveAt = Math.floor(nowMs / 1000) * 1000;
    this.first = this.step(this.liveAt) - size + 1;
  }

  private step(ms: number): number {
    return Math.floor((ms - 1) / this.stepMs);
  }

  /** place is where step i stands in the ring, the oldest one for 0. */
  private place(i: number): number {
    const at = this.head + i;
    return (at < this.size ? at : at - this.size) * width;
  }

  /** each calls a function with the steps that have a row, and where that stands in the ring, until it returns true. */
  private each(take: (i: number, ring: Uint32Array, at: number) => boolean | void) {
    const ring = this.ring;
    for (let i = 0; ring && i < this.size; i++) {
      const at = this.place(i);
      if (ring[at] && take(i, ring, at)) return;
    }
  }

  /** advance makes the last step that of a time. */
  advance(ms: number) {
    const steps = this.step(ms) - this.first - this.size + 1;
    if (steps <= 0) return;
    this.first += steps;
    for (let i = Math.min(steps, this.size); this.ring && i > 0; i--) {
      this.ring.fill(0, this.head * width, ++this.head * width);
      if (this.head === this.size) this.head = 0;
    }
  }

  /** put takes a row: its rates are sums over the second or the step that ends then, the others are of that time. */
  put(ms: number, figures: readonly number[]) {
    this.advance(ms);
    const i = this.step(ms) - this.first;
    if (i < 0 || i >= this.size) return;
    const ring = (this.ring ??= new Uint32Array(this.size * width)), at = this.place(i), had = ring[at];
    ring[at] = 1;
    for (let f = 1; f < width; f++) {
      const value = figures[f] ?? 0, now = !had ? value : isRate(f) ? ring[at + f]! + value : isTime(f) ? Math.max(ring[at + f]!, value) : value;
      ring[at + f] = now < mostStored ? now : mostStored;
    }
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
    return Array.from({ length: this.size }, (_, i) => ((this.first + i + 1) * this.stepMs) / 1000);
  }

  /** firstAt is when the first row ends, Infinity without rows. */
  firstAt(): number {
    let found = Infinity;
    this.each((i) => {
      found = (this.first + i + 1) * this.stepMs;
      return true;
    });
    return found;
  }

  /**
   * column is a figure at each step; rates are those of a second. It is null where nobody knows it: nothing
   * is known before `since`, and the last step of a long one is not over.
   */
  column(f: Figure, since = 0): (number | null)[] {
    const from = Math.max(0, Math.ceil(since / this.stepMs - this.first - 1));
    const last = isRate(f) && this.stepMs > 1000 ? this.size - 1 : this.size;
    const values = new Array<number | null>(this.size).fill(null), ring = this.ring, part = 1000 / this.stepMs;
    let known = this.before(f);
    for (let i = from; i < last; i++) {
      const at = this.place(i), has = ring?.[at] ? ring[at + f]! : undefined;
      if (isRate(f)) values[i] = (has ?? 0) * part;
      else if (isTime(f)) values[i] = has || (f <= F.waitP99 && has !== undefined && ring![at + F.started] ? 0 : null);
      else values[i] = known = has ?? known;
    }
    return values;
  }

  /** addTo adds a rate to that of another series at each step. */
  addTo(sum: (number | null)[], f: Figure, other: Series) {
    const by = this.first - other.first, part = 1000 / this.stepMs, ring = this.ring;
    for (let i = Math.max(0, -by), at = this.place(i) + f; ring && i < this.size && i + by < sum.length; i++) {
      const n = ring[at]!;
      if (n && sum[i + by] !== null) sum[i + by]! += n * part;
      at += width;
      if (at >= ring.length) at -= ring.length;
    }
  }

  /** before is what a count was before the first row: nothing happened then, but a new queue had nothing. */
  private before(f: Figure): number {
    let found = this.latest[f] ?? 0;
    this.each((_, ring, at) => {
      const row = (of: Figure) => ring[at + of]!;
      const all = row(F.ready) + row(F.delayed) + row(F.inProgress) + row(F.dead) + row(F.done);
      found = all <= row(F.in) ? 0 : row(f);
      return true;
    });
    return found;
  }
}
