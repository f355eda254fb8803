// A chart over time, drawn on a canvas, and the same numbers as a table.
import { computed, signal, useSignal } from "@preact/signals";
import type { ComponentChild, ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { clock, moment } from "./format";

type Values = (number | null)[];

export interface Line {
  label: string;
  /** The name of a colour of the style sheet, without dashes. */
  tone: string;
  values: Values;
  /** The area below is filled; stacked lines stand on the one before. */
  filled?: boolean;
  stacked?: boolean;
  /** The area between it and the line before is filled. */
  band?: boolean;
}

interface Props {
  title: string;
  note?: string;
  /** The times of the values, in seconds, one step after the other. */
  times: number[];
  /** It is called for a chart in sight. */
  lines: () => Line[];
  show: (n: number) => string;
  /** The values are milliseconds. */
  isTime?: boolean;
  log?: boolean;
}

/** theme changes when the colours do. */
export const theme = signal(0);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme.value++);

const colours = computed(() => (void theme.value, new Map<string, string>()));

/** colour is what a colour of the style sheet is now. */
export function colour(name: string): string {
  let found = colours.value.get(name);
  if (!found) {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    colours.value.set(name, (found = getComputedStyle(probe).color));
    probe.remove();
  }
  return found;
}

/** pointed is where the pointer is in all charts: 0 is the first time and 1 the last. */
const pointed = signal<number | null>(null);

// The space around the lines, in pixels, which has the texts of the axes.
const left = 52, right = 16, top = 10, bottom = 24;

// Steps of an axis of counts, and of one of time, of which each is one whole unit.
const whole = [...Array(13).keys()].flatMap((i) => [1, 2, 5].map((n) => n * 10 ** i));
const seconds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400, 172_800, 604_800];
const millis = whole.slice(0, 9).concat(seconds.map((s) => s * 1000));

const ticks = (from: number, to: number, by: number) => Array.from({ length: Math.floor((to - from) / by + 1e-9) + 1 }, (_, i) => from + i * by);

/** scaleOf says which part of the height a value has, and which values have a text. */
function scaleOf({ log, isTime }: Props, values: number[], height: number): { part: (v: number) => number; marks: number[] } {
  const most = values.reduce((a, b) => Math.max(a, b), 1);
  if (!log) {
    const end = Math.max(most * 1.08, 1), by = (isTime ? millis : whole).find((n) => (n / end) * height >= 34) ?? end;
    return { part: (v) => v / end, marks: ticks(0, end, by) };
  }
  const low = Math.floor(Math.log10(values.reduce((a, b) => Math.min(a, b), most))), high = Math.max(low + 1, Math.ceil(Math.log10(most)));
  return { part: (v) => (Math.log10(v) - low) / (high - low), marks: ticks(low, high, 1).map((n) => 10 ** n) };
}

/** moments are the times that have a text, by the clock here. */
function moments(times: number[], width: number): number[] {
  const from = times[0]!, to = times.at(-1)!, by = seconds.find((s) => (s / (to - from)) * width >= 70) ?? to - from;
  const shift = new Date(from * 1000).getTimezoneOffset() * 60;
  return ticks(Math.ceil((from - shift) / by) * by + shift, to, by);
}

type Label = [text: string, width: number];
const labels = new Map<string, Label>(); // all charts have the same ones, for minutes

function label(c: CanvasRenderingContext2D, s: number, times: number[]): Label {
  const isLong = times.at(-1)! - times[0]! > 86_400, key = `${s} ${isLong}`, had = labels.get(key);
  if (had) return had;
  if (labels.size > 200) labels.clear();
  const text = clock(s * 1000), day = isLong ? `${new Date(s * 1000).toLocaleDateString("en", { weekday: "short" })} ` : "";
  const whole = day + (s % 60 && !isLong ? text : text.slice(0, 5)), made: Label = [whole, c.measureText(whole).width];
  labels.set(key, made);
  return made;
}

interface Stroke {
  line: Line;
  /** Where it is drawn, and what its area stands on, if that is not 0. */
  tops: Values;
  base?: Values;
}

function strokes(lines: Line[], log?: boolean): Stroke[] {
  let stack: Values | undefined, before: Values | undefined;
  return lines.map((line) => {
    const below = line.stacked ? stack : undefined, base = below ?? (line.band ? before : undefined);
    const tops = line.values.map((v, i) => (v === null || (log && v <= 0) ? null : v + (below?.[i] ?? 0)));
    if (line.stacked) stack = tops;
    before = tops;
    return { line, tops, base };
  });
}

/** Pen draws on the canvas of a frame. Its area, without the texts around it, is w wide and h high. */
export interface Pen {
  c: CanvasRenderingContext2D;
  w: number;
  h: number;
}

/** Size is the width and the height of a canvas. To ask the canvas for them lays out the page. */
type Size = readonly [width: number, height: number];

function penOf(canvas: HTMLCanvasElement, [width, height]: Size): Pen | undefined {
  const c = canvas.getContext("2d");
  if (!c || !width) return;
  const wide = Math.round(width * devicePixelRatio), high = Math.round(height * devicePixelRatio);
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high]; // which is dear
  c.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.translate(left, top);
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "middle";
  return { c, w: width - left - right, h: height - top - bottom };
}

/** mark draws a level with its text. */
export function mark({ c, w }: Pen, at: number, text: string) {
  const level = Math.round(at) + 0.5;
  c.strokeStyle = colour("line");
  c.fillStyle = colour("muted");
  c.textAlign = "right";
  c.strokeRect(0, level, w, 0);
  c.fillText(text, -6, level);
}

/** timeAxis writes times below the area. */
export function timeAxis({ c, w, h }: Pen, times: number[]) {
  const first = times[0]!, length = times.at(-1)! - first;
  c.fillStyle = colour("muted");
  c.textAlign = "center";
  for (const s of moments(times, w)) {
    const [text, width] = label(c, s, times), x = ((s - first) / length) * w;
    if (x + width / 2 < w + right) c.fillText(text, x, h + bottom / 2 + 2);
  }
}

function draw(p: Props, lines: Line[], pen: Pen, at: number | null) {
  const { c, w, h } = pen, last = p.times.length - 1, all = strokes(lines, p.log);
  const { part, marks } = scaleOf(p, all.flatMap((s) => s.tops).filter((v) => v !== null), h);
  const x = (i: number) => (i / last) * w, y = (v: number) => h * (1 - part(v));
  for (const v of marks) mark(pen, y(v), p.show(v));
  timeAxis(pen, p.times);

  c.lineWidth = 1.5;
  c.lineJoin = c.lineCap = "round";
  // From the last line to the first: where a stacked line adds nothing, the one below it shows.
  for (const s of all.toReversed()) {
    c.fillStyle = c.strokeStyle = colour(s.line.tone);
    for (const run of runs(s.tops, p.isTime)) {
      const path = new Path2D(), first = run[0]!;
      path.moveTo(x(first), y(s.tops[first]!));
      for (const i of bends(run, s.tops)) path.lineTo(x(i), y(s.tops[i]!));
      c.stroke(path);
      if (!s.line.filled && !s.base) continue;
      const under = s.base ?? [];
      for (const i of bends(run, under).reverse()) path.lineTo(x(i), under[i] == null ? h : y(under[i]));
      c.globalAlpha = 0.24;
      c.fill(path);
      c.globalAlpha = 1;
    }
  }

  if (at === null) return;
  c.fillStyle = colour("muted");
  c.fillRect(x(at), 0, 1, h);
  for (const { line, tops } of all) {
    if (tops[at] == null) continue;
    c.fillStyle = colour(line.tone);
    c.beginPath();
    c.arc(x(at), y(tops[at]), 3, 0, 7);
    c.fill();
  }
}

/** runs are the places of values that are drawn as one line: over holes only if those mean that nothing was to measure. */
function runs(values: Values, over?: boolean): number[][] {
  const all: number[][] = [];
  let run: number[] | undefined;
  values.forEach((v, i) => {
    if (v !== null) run ? run.push(i) : all.push((run = [i]));
    else if (!over) run = undefined;
  });
  return all;
}

/** bends are the places of a run where its line has another value before or behind it: a flat line has two. */
function bends(run: number[], values: Values): number[] {
  const end = run.length - 1;
  return run.filter((at, i) => i === 0 || i === end || values[at] !== values[run[i - 1]!] || values[at] !== values[run[i + 1]!]);
}

interface FrameProps {
  title: string;
  note?: ComponentChildren;
  /** The place of the pointer among so many times, or null. */
  places: number;
  legend: (at: number | null) => ComponentChildren;
  draw: (pen: Pen, at: number | null) => void;
  table: () => ComponentChildren;
}

/** Frame has a picture over time, its legend, and the same as a table. It stays as it is while nobody sees it. */
export function Frame({ title, note, places, legend, draw, table }: FrameProps) {
  const canvas = useRef<HTMLCanvasElement>(null), size = useSignal<Size>([0, 0]), isTable = useSignal(false);
  const figure = useRef<HTMLElement>(null), inSight = useSignal(true), drawn = useRef<ComponentChild>(null);
  const at = pointed.value === null ? null : Math.round(pointed.value * (places - 1));
  void [theme.value, size.value]; // it is drawn again when they change
  useEffect(() => {
    const el = canvas.current;
    if (!el) return;
    const sized = new ResizeObserver(([e]) => (size.value = [e!.contentRect.width, e!.contentRect.height]));
    sized.observe(el);
    return () => sized.disconnect();
  }, [isTable.value]);
  useEffect(() => {
    const seen = new IntersectionObserver((all) => (inSight.value = all.at(-1)!.isIntersecting));
    seen.observe(figure.current!);
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    const pen = inSight.value && canvas.current && penOf(canvas.current, size.value);
    if (pen) draw(pen, at);
  });
  const point = (e: PointerEvent) => {
    const part = (e.offsetX - left) / (canvas.current!.clientWidth - left - right);
    pointed.value = part >= 0 && part <= 1 ? part : null;
  };
  if (!inSight.value && drawn.current) return drawn.current;
  return (drawn.current = (
    <figure class="chart" ref={figure}>
      <figcaption>
        <h3>{title}</h3>
        {note && <span class="muted">{note}</span>}
        <button type="button" class="quiet" aria-pressed={isTable.value} onClick={() => (isTable.value = !isTable.value)}>
          {isTable.value ? "Chart" : "Table"}
        </button>
      </figcaption>
      <ul class="legend">{legend(at)}</ul>
      {isTable.value ? <div class="plot numbers" tabIndex={0} role="region" aria-label={`${title} as a table`}>{table()}</div> : (
        <canvas class="plot" ref={canvas} role="img" aria-label={`${title} over time`} onPointerMove={point} onPointerLeave={() => (pointed.value = null)} />
      )}
    </figure>
  ));
}

export function Chart(p: Props) {
  let made: Line[] | undefined;
  const lines = () => (made ??= p.lines());
  const legend = (at: number | null) => (
    <>
      {lines().map((l) => {
        const value = at === null ? l.values.findLast((v) => v !== null) : l.values[at];
        return <li key={l.label}><i class={`key ${l.tone} ${l.filled ? "" : "thin"}`} /> {l.label} <b>{value == null ? "–" : p.show(value)}</b></li>;
      })}
      {at !== null && <li class="muted">{clock(p.times[at]! * 1000)}</li>}
    </>
  );
  return <Frame title={p.title} note={p.note} places={p.times.length} legend={legend} draw={(pen, at) => draw(p, lines(), pen, at)} table={() => <Numbers times={p.times} lines={lines()} show={p.show} />} />;
}

function Numbers({ times, lines, show }: Pick<Props, "times" | "show"> & { lines: Line[] }) {
  const rows = times.map((_, i) => i).filter((i) => lines.some((l) => l.values[i])).reverse().slice(0, 500);
  return (
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
  );
}
