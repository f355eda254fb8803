// Numbers, times and names as people read them.

/** count is 12,345, or 1.2 M from ten million on. */
export function count(n: number): string {
  if (n < 1000 && n >= 0) return String(Math.round(n));
  return Math.abs(n) >= 1e7 ? `${(n / 1e6).toFixed(1)} M` : String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** rate is what happens in a second. */
export function rate(n: number): string {
  return n > 0 && n < 9.95 ? n.toFixed(1).replace(/\.0$/, "") : count(n);
}

const units: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000]];

/** span is a length of time with its two largest units. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const at = units.findIndex(([, size]) => ms >= size);
  const [unit, size] = units[at]!;
  if (unit === "s") return ms < 10_000 ? `${(ms / 1000).toFixed(1).replace(/\.0$/, "")} s` : `${Math.floor(ms / 1000)} s`;
  const [next, small] = units[at + 1]!;
  const rest = Math.floor((ms % size) / small);
  return `${Math.floor(ms / size)} ${unit}${rest ? ` ${rest} ${next}` : ""}`;
}

const two = (n: number) => String(n).padStart(2, "0");

/** clock is the time of day here. */
export function clock(ms: number): string {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** moment is a time here, with the day if that is not today. */
export function moment(ms: number, now = Date.now()): string {
  const d = new Date(ms), today = new Date(now);
  if (d.getDate() === today.getDate() && d.getMonth() === today.getMonth() && d.getFullYear() === today.getFullYear()) return clock(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}

export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** shortId is the part of a task's id that differs between tasks of the same minute. */
export const shortId = (id: string) => id.slice(-8);

/** bytes is a size as people read it. */
export function bytes(n: number): string {
  const unit = n >= 1 << 30 ? 30 : n >= 1 << 20 ? 20 : n >= 1 << 10 ? 10 : 0, part = n / 2 ** unit;
  return `${unit && part < 10 ? part.toFixed(1) : Math.round(part)} ${{ 0: "bytes", 10: "KiB", 20: "MiB", 30: "GiB" }[unit]}`;
}
