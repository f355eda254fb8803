// Small pieces that pages are made of.
import type { ComponentChildren } from "preact";
import { moment } from "./format";
import { serverNow } from "./live";

/** The states of a task and of a queue: each has a word, a shape and a colour. */
const shapes = {
  ready: ["ready", "M2 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0"],
  delayed: ["delayed", "M2 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0M6 3.5V6l1.6 1.2"],
  inProgress: ["in progress", "M3.5 2.5v7l6-3.5z"],
  limited: ["waits for its key", "M3.2 5.5h5.6v4.2H3.2zM4.3 5.5V4a1.7 1.7 0 0 1 3.4 0v1.5"],
  done: ["completed", "M2.2 6.4l2.6 2.6 5-6"],
  dead: ["dead letter", "M2.8 2.8l6.4 6.4M9.2 2.8L2.8 9.2"],
  cancelled: ["cancelled", "M2 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0M3.2 8.8l5.6-5.6"],
  failed: ["failed", "M6 1.8v5M6 9.2v.8"],
  paused: ["paused", "M4 2.5v7M8 2.5v7"],
  live: ["live", "M2 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0M6 5.9v.2"],
} as const;
export type StateName = keyof typeof shapes;

export const stateWord = (s: StateName) => shapes[s][0];
export const shapePath = (s: StateName) => shapes[s][1];

export function Shape({ of }: { of: StateName }) {
  return (
    <svg class={`shape ${of}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={shapes[of][1]} />
    </svg>
  );
}

export function State({ of, word }: { of: StateName; word?: string }) {
  return (
    <span class="state">
      <Shape of={of} /> {word ?? shapes[of][0]}
    </span>
  );
}

/** Time is a moment, with the exact time as its title. */
export function Time({ ms }: { ms: number }) {
  const exact = new Date(ms).toISOString();
  return (
    <time dateTime={exact} title={exact}>
      {moment(ms, serverNow())}
    </time>
  );
}

/** Spark is a line without axes, for a first impression. What it shows stands in numbers beside it. */
export function Spark({ values, tone = "", area = true }: { values: (number | null)[]; tone?: string; area?: boolean }) {
  const w = 120, h = 24, points = 60;
  const known = values.findIndex((v) => v !== null);
  if (known < 0) return <svg class="spark" aria-hidden="true" />;
  const per = Math.max(1, Math.ceil(values.length / points));
  const ys: number[] = [];
  let top = 1e-9;
  for (let i = known - (known % per); i < values.length; i += per) {
    let y = 0;
    for (let k = i; k < i + per && k < values.length; k++) if (values[k]! > y) y = values[k]!;
    ys.push(y);
    if (y > top) top = y;
  }
  const tenth = (n: number) => Math.round(n * 10) / 10, step = (per * w) / Math.max(1, values.length - per);
  let line = "";
  ys.forEach((y, i) => {
    if (i > 0 && y === ys[i - 1] && y === ys[i + 1]) return; // on a flat line
    line += `${line && " "}${tenth(w - (ys.length - 1 - i) * step)},${tenth(h - 1 - (y / top) * (h - 2))}`;
  });
  return (
    <svg class={`spark ${tone}`} viewBox={`0 0 ${w} ${h}`} preserveAspectRatio="none" aria-hidden="true">
      {area && <polygon points={`${line.split(",")[0]},${h} ${line} ${w},${h}`} />}
      <polyline points={line} />
    </svg>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

/** Problem is the sentence of a refusal. */
export function Problem({ children }: { children: ComponentChildren }) {
  return (
    <p class="problem" role="alert">
      <Shape of="failed" /> {children}
    </p>
  );
}
