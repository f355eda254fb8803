// How long tasks waited for a worker, as a map: time goes to the right, a longer wait stands higher, and where more
// tasks are it is darker. The page counts the deliveries that the server still remembers, and those that begin since.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { range } from "./board";
import { colour, Frame, mark, timeAxis, type Pen } from "./chart";
import { clock, count, span } from "./format";
import { again, changed, serverNow, watch, welcome } from "./live";
import type { Positions } from "./protocol";

const columns = 60;
/** More deliveries in a second are not told one by one: every so many-th stands for all. */
const perSecond = 1000;
/** Place 0 has waits of 0 ms, place n those from 2^(n-1) ms up to below 2^n ms. */
const buckets = 26;
const bucketOf = (ms: number) => (ms < 1 ? 0 : Math.min(buckets - 1, Math.floor(Math.log2(ms)) + 1));
const upTo = (bucket: number) => span(2 ** bucket);

/** before is what one has who has no event: each shard begins with its oldest. */
const before = (oldest: Record<string, number> = {}) => Object.fromEntries(Object.entries(oldest).map(([shard, n]) => [shard, Math.max(0, n - 1)]));

export function Heat({ command }: { command: string }) {
  const stepMs = range.value === "5m" ? 5000 : 60_000, shown = useSignal<Map<number, number[]>>(new Map()), left = useSignal(0), isPart = useSignal(false);
  useEffect(() => {
    const waits = new Map<number, number[]>();
    let from: Record<string, number> | undefined, of: string | undefined, first: Record<string, number> = {}, got = 0, missed = 0, timer = 0;
    const show = () => {
      for (const step of waits.keys()) if (step <= serverNow() / stepMs - columns - 1) waits.delete(step);
      shown.value = new Map(waits);
      left.value = missed;
    };
    shown.value = new Map();
    left.value = 0;
    isPart.value = false;
    /** shorten reads the last part of what the server remembers: so much that it need not leave out any. */
    const shorten = () => {
      const part = (0.7 * perSecond) / (got + missed);
      from = Object.fromEntries(Object.entries(from!).map(([shard, n]) => [shard, Math.floor(n - (n - (first[shard] ?? 0)) * Math.min(1, part))]));
      got = missed = 0;
      waits.clear();
      isPart.value = true;
      again("waits");
    };
    const stop = watch("waits", {
      ask: () => {
        if (!from || of !== welcome.value?.creationId) from = { ...(first = before(welcome.value?.oldest as Record<string, number> | undefined)) };
        of = welcome.value?.creationId;
        return { id: "waits", kind: "events", commands: [command], causes: ["grant"], maxPerSecond: perSecond, from: { ...from } as Positions, creationId: of };
      },
      take: (f) => {
        if (f.type === "event") {
          got++;
          const step = Math.floor(Date.parse(f.at) / stepMs), column = waits.get(step) ?? new Array<number>(buckets).fill(0);
          column[bucketOf(f.spentMs)]!++;
          waits.set(step, column);
          from![f.shard] = f.n;
        } else if (f.type === "gap") {
          from![f.shard] = f.to;
          if (f.reason === "sampled") missed += f.missed;
          if (missed && !timer) timer = window.setTimeout(shorten, 1500);
        } else return;
        changed(show);
      },
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [command, stepMs]);

  const last = Math.floor(serverNow() / stepMs), steps = Array.from({ length: columns }, (_, i) => last - columns + 1 + i);
  const known = steps.map((s) => shown.value.get(s)), all = known.filter((c) => c !== undefined);
  const used = [...Array(buckets).keys()].filter((b) => all.some((c) => c[b]));
  const high = Math.max(6, ...used) + 1, low = Math.max(0, Math.min(high - 6, ...used)), most = Math.max(1, ...all.flat());
  const draw = (pen: Pen, at: number | null) => {
    const { c, w, h } = pen, wide = w / columns, tall = h / (high - low);
    for (let b = low; b <= high; b += Math.ceil((high - low) / 6)) mark(pen, h - (b - low) * tall, b ? upTo(b - 1) : "0");
    timeAxis(pen, steps.map((s) => (s * stepMs) / 1000));
    c.fillStyle = colour("accent");
    known.forEach((column, i) => column?.forEach((n, b) => {
      if (!n) return;
      c.globalAlpha = 0.15 + (0.85 * Math.log1p(n)) / Math.log1p(most);
      c.fillRect(i * wide, h - (b - low + 1) * tall, wide - 1, tall - 1);
    }));
    c.globalAlpha = 1;
    if (at !== null) c.strokeRect(at * wide - 0.5, 0, wide, h);
  };
  const legend = (at: number | null) => {
    const column = at === null ? undefined : known[at];
    return (
      <>
        {at === null ? <li>the stronger, the more tasks; {isPart.value ? "the newest of those that the server remembers" : "as far as the server remembers"}</li> : !column ? <li>no task that is known was given to a worker</li>
          : column.flatMap((n, b) => (n ? [<li key={b}><b>{count(n)}</b> up to {upTo(b)}</li>] : [])).slice(0, 4)}
        {at !== null && <li class="muted">{clock(steps[at]! * stepMs)}</li>}
        {left.value > 0 && <li class="muted">a sample: {count(left.value)} more are not in it</li>}
      </>
    );
  };
  return (
    <Frame
      title="How long tasks waited" note={`in ${stepMs === 5000 ? "5 s" : "a minute"} each`} places={columns} legend={legend} draw={draw}
      table={() => (
        <table>
          <thead><tr><th scope="col">Time</th>{used.map((b) => <th scope="col" class="n" key={b}>up to {upTo(b)}</th>)}</tr></thead>
          <tbody>
            {steps.toReversed().map((s) => {
              const column = shown.value.get(s);
              return column && <tr key={s}><td>{clock(s * stepMs)}</td>{used.map((b) => <td class="n" key={b}>{column[b] || "–"}</td>)}</tr>;
            })}
          </tbody>
        </table>
      )}
    />
  );
}
