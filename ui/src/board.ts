// All queues with their figures, now and over the range that the person chose.
import { batch, computed, effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { PointsFrame, ServerFrame } from "./protocol";
import { again, changed, everyMs, hear, link, serverNow, watch } from "./live";
import { param } from "./route";
import { F, ranges, Series, type Figure, type Range } from "./series";

export type Row = number[];

export class Queue {
  /** The figures of now, as they are shown. */
  shown: Row = none;
  /** Those that are not shown yet. */
  next?: Row;
  series = newSeries();
  private signal?: Signal<Row>;

  constructor(readonly tenant: string, readonly command: string) {}

  /** row are the figures of now for who is drawn again with them. Nearly all of the queues of a page have nobody. */
  get row(): ReadonlySignal<Row> {
    return (this.signal ??= signal(this.shown));
  }

  show(row: Row) {
    this.shown = row;
    this.next = undefined;
    if (this.signal) this.signal.value = row;
  }
}

const none: Row = new Array(F.limited + 1).fill(0);
let shownAt = 0; // the time of the newest rows

export const range = computed<Range>(() => {
  const asked = param("range", "5m");
  return asked in ranges ? (asked as Range) : "5m";
});

const bySlot = new Map<number, Queue>();
let fresh: Queue[] = []; // those with figures that are not shown yet
let begun = false; // a snapshot has come since the last subscribe

/** history changes when the server has told more of what was before. */
export const history = signal(0);
let told = false; // more that is not shown yet

/** version changes whenever a figure of a queue does, named when there are other queues. at is the time of the figures. */
export const version = signal(0);
const named = signal(0);
let renamed = false; // names have come that are not shown yet
export const at = signal(0);
/** loaded is false until the first figures have come. */
export const loaded = signal(false);

/** total has the figures of all queues together, which the server adds up. Its slot has no name. */
const totalSlot = 2 ** 32 - 1;
export const total = new Queue("", "");

/** queues are all queues, by name. */
export const queues = computed(() => {
  void named.value;
  return [...bySlot.values()].filter((q) => q.command !== "").sort((a, b) => (a.command < b.command ? -1 : 1));
});

/** isSystem says that the server itself posts the tasks of a queue. Nobody else posts any, and only its pause can be set. */
export const isSystem = (command: string) => command.startsWith("codeq.");

/** own are the queues that people and programs post to. */
export const own = computed(() => queues.value.filter((q) => !isSystem(q.command)));

export const find = (command: string) => queues.value.find((q) => q.command === command);

/** oldest is the queue whose first ready task waits for the longest time. */
export const oldest = computed(() => {
  void version.value;
  let found: Queue | undefined;
  for (const q of queues.value) {
    const since = q.shown[F.oldest]!;
    if (since && (!found || since < found.shown[F.oldest]!)) found = q;
  }
  return found;
});

/** column is a figure over time, from where the server remembers anything. */
export function column(series: Series, f: Figure): (number | null)[] {
  void version.value;
  return series.column(f, Math.min(total.series.firstAt(), series.firstAt()));
}

function newSeries(): Series {
  const [size, stepMs] = ranges[range.peek()];
  return new Series(size, stepMs, shownAt || serverNow());
}

function name([slot, tenant, command]: unknown[]) {
  if (command === undefined) {
    bySlot.delete(slot as number);
    return;
  }
  bySlot.set(slot as number, new Queue(tenant as string, command as string));
}

function rows(all: number[][] | undefined) {
  for (const row of all ?? []) {
    const q = bySlot.get(row[0]!);
    if (!q) continue;
    if (!q.next) fresh.push(q);
    q.next = q.series.latest = row;
  }
}

function points(f: PointsFrame) {
  const q = bySlot.get(f.slot);
  for (const p of f.points) q?.series.put(p[0]!, p);
  told = true;
}

function happens(row: readonly number[]): boolean {
  for (let f: number = F.in; f < F.oldest; f++) if (row[f]) return true;
  return false;
}

// sample puts the figures of now into the history. A queue without a row is as before, so what happened in
// the second before has happened again.
function sample(ms: number) {
  const second = Math.floor(ms / 1000) * 1000;
  for (const q of bySlot.values()) {
    const row = q.series.latest;
    if (q.next || happens(row)) q.series.live(ms, row);
    q.series.advance(second);
  }
}

const show = () => batch(() => {
  for (const q of fresh) q.show(q.next!);
  fresh = [];
  at.value = shownAt;
  loaded.value = true;
  version.value++;
  if (renamed) named.value++;
  if (told) history.value++;
  renamed = told = false;
});

function take(frame: ServerFrame) {
  switch (frame.type) {
    case "snapshot":
      shownAt = serverNow();
      if (!begun) for (const q of bySlot.values()) q.series = newSeries();
      begun = true;
      rows(frame.queues);
      break;
    case "points":
      points(frame);
      break;
    case "tick":
      rows(frame.queues);
      sample(frame.t);
      shownAt = frame.t;
      break;
    default:
      return;
  }
  changed(show);
}

hear((frame) => {
  if (frame.type === "welcome") {
    bySlot.clear(); // slots are those of one connection
    bySlot.set(totalSlot, total);
  }
  if (frame.type === "names") for (const q of frame.queues) name(q as unknown[]);
  renamed ||= frame.type === "welcome" || frame.type === "names";
});

/** settle takes what an answer says of a queue: the server reads whether it is paused only now and then. */
export function settle(answer: { command: string; paused: boolean }) {
  for (const q of bySlot.values()) {
    if (q.command === answer.command) q.show(q.shown.with(F.paused, Number(answer.paused)));
  }
}

/** begin subscribes to all queues, for as long as the page is open. */
export function begin() {
  watch("queues", {
    ask: () => {
      begun = false;
      return { id: "queues", kind: "queues", everyMs: everyMs(), range: range.peek() };
    },
    take,
  });
  effect(() => {
    void range.value;
    if (link.peek().state === "live") again("queues");
  });
}
