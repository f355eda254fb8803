// A chart over time, and the same numbers as a table.
import { effect, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock, moment } from "./format";

export interface Line {
  label: string;
  /** The name of a colour of the style sheet, without dashes. */
  tone: string;
  values: (number | null)[];
  /** The area below is filled; stacked lines stand on the one before. */
  filled?: boolean;
  stacked?: boolean;
  /** The area between it and the line before is filled. */
  band?: boolean;
}

interface Props {
  title: string;
  note?: string;
  times: number[];
  lines: Line[];
  show: (n: number) => string;
  /** The values are milliseconds. */
  isTime?: boolean;
  log?: boolean;
}

/** theme changes when the colours do. */
export const theme = signal(0);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme.value++);

function colour(name: string, alpha = 1): string {
  const probe = document.createElement("i");
  probe.style.color = `color-mix(in srgb, var(--${name}) ${alpha * 100}%, transparent)`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// Lines are drawn from the last one to the first: where a stacked line adds nothing, the one below it shows.
function data({ times, lines, log }: Props): uPlot.AlignedData {
  const sum = new Array<number>(times.length).fill(0);
  const drawn = lines.map((l) => (l.stacked ? l.values.map((v, i) => (v === null ? v : (sum[i]! += v))) : log ? l.values.map((v) => v || null) : l.values));
  return [times, ...drawn.reverse()] as uPlot.AlignedData;
}

function options(p: Props, width: number, onCursor: (i: number | null) => void): uPlot.Options {
  const font = "11px system-ui, sans-serif", text = colour("muted"), grid = { stroke: colour("line"), width: 1 };
  const n = p.lines.length, base = p.lines.findIndex((l) => l.stacked);
  const between = (l: Line, i: number) => l.band || (l.stacked && i > base);
  return {
    width, height: 168, padding: [10, 16, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "time" }, y: false, points: { size: 6 } },
    scales: { y: { distr: p.log ? 3 : 1, range: p.log ? undefined : (_, __, max) => [0, Math.max(max * 1.08, 1)] } },
    series: [
      {},
      ...p.lines.map((l, i) => ({
        stroke: colour(l.tone), width: 1.5, points: { show: false }, spanGaps: p.isTime,
        fill: l.filled && !between(l, i) ? colour(l.tone, 0.22) : undefined,
      })).reverse(),
    ],
    bands: p.lines.flatMap((l, i) => (between(l, i) ? [{ series: [n - i, n - i + 1] as [number, number], fill: colour(l.tone, 0.28) }] : [])),
    axes: [
      { font, stroke: text, grid: { show: false }, ticks: { show: false }, size: 24, space: 70, values: (_, at) => at.map(label(p.times)) },
      {
        font, stroke: text, grid, ticks: { show: false }, size: 52, space: 34, incrs: p.log ? undefined : p.isTime ? times : whole,
        values: (_, at) => at.map((v) => (v == null ? "" : p.show(v))),
      },
    ],
    hooks: { setCursor: [(u) => onCursor(u.cursor.left! >= 0 ? (u.cursor.idx ?? null) : null)] },
  };
}

// Steps of an axis of counts, and of one of time, of which each is one whole unit.
const whole = [...Array(13).keys()].flatMap((i) => [1, 2, 5].map((n) => n * 10 ** i));
const times = whole.slice(0, 9).concat(
  [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400, 172_800, 604_800].map((s) => s * 1000));

const label = (times: number[]) => (s: number) => {
  const long = times.at(-1)! - times[0]! > 86_400;
  const text = clock(s * 1000);
  return long ? `${new Date(s * 1000).toLocaleDateString("en", { weekday: "short" })} ${text.slice(0, 5)}` : s % 60 ? text : text.slice(0, 5);
};

export function Chart(p: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shown = useRef(p);
  shown.current = p;
  const cursor = useSignal<number | null>(null);
  const table = useSignal(false);
  const kind = p.lines.map((l) => l.label).join() + p.log + table.value;

  useEffect(() => {
    if (!box.current) return;
    const el = box.current;
    const stop = effect(() => {
      void theme.value;
      plot.current?.destroy();
      plot.current = new uPlot(options(shown.current, el.clientWidth, (i) => (cursor.value = i)), data(shown.current), el);
    });
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height: 168 }));
    sized.observe(el);
    return () => {
      sized.disconnect();
      stop();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [kind]);
  useEffect(() => plot.current?.setData(data(p)), [p.times, p.lines]);

  const value = (l: Line) => (cursor.value === null ? l.values.findLast((v) => v !== null) : l.values[cursor.value]) ?? null;
  return (
    <figure class="chart">
      <figcaption>
        <h3>{p.title}</h3>
        {p.note && <span class="muted">{p.note}</span>}
        <button type="button" class="quiet" aria-pressed={table.value} onClick={() => (table.value = !table.value)}>
          {table.value ? "Chart" : "Table"}
        </button>
      </figcaption>
      <ul class="legend">
        {p.lines.map((l) => (
          <li key={l.label}>
            <i class={`key ${l.tone} ${l.filled ? "" : "thin"}`} /> {l.label} <b>{value(l) === null ? "–" : p.show(value(l)!)}</b>
          </li>
        ))}
        {cursor.value !== null && <li class="muted">{clock(p.times[cursor.value]! * 1000)}</li>}
      </ul>
      {table.value ? <Numbers {...p} /> : <div class="plot" ref={box} />}
    </figure>
  );
}

function Numbers({ title, times, lines, show }: Props) {
  const rows = times.map((_, i) => i).filter((i) => lines.some((l) => l.values[i])).reverse().slice(0, 500);
  return (
    <div class="plot numbers" tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map((l) => <th scope="col" class="n" key={l.label}>{l.label}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((i) => (
            <tr key={times[i]}>
              <td>{moment(times[i]! * 1000)}</td>
              {lines.map((l) => <td class="n" key={l.label}>{l.values[i] == null ? "–" : show(l.values[i])}</td>)}
            </tr>
          ))}
          {rows.length === 0 && <tr><td colSpan={lines.length + 1}>Nothing happened in this time.</td></tr>}
        </tbody>
      </table>
    </div>
  );
}
