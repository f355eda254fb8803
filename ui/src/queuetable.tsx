// The table of queues, of the page of queues and of the overview.
import { computed, signal, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { at, column, history, own, queues, version, type Queue, type Row } from "./board";
import { count, plural, rate, span } from "./format";
import { Shape, Spark, State } from "./parts";
import { go, href, param, place, setQuery } from "./route";
import { Rows, sorted, type Column } from "./rows";
import { F, type Figure } from "./series";

/** Item is a row: one queue, or a group of those whose names begin alike. That of a queue is always the same one. */
interface Item {
  id: string;
  of: Queue[];
  isGroup?: boolean;
  /** It stands below its group. */
  within?: boolean;
  /** What the queues of a group have together, and the version of the figures that it is of. */
  sum?: Row;
  summed?: number;
}

/** What the table shows beside the figures, if the page has asked for it. */
export interface Beside {
  spread: ReadonlySet<string>;
  /** The number of sessions that ask for a queue, and of tasks that they still have room for. */
  room: Map<string, [sessions: number, free: number]>;
  act: (q: Queue) => void;
}

function fig(i: Item, f: Figure): number {
  return (i.isGroup ? together(i) : i.of[0]!.shown)[f] ?? 0;
}

// Counts and rates of a group are sums, times are the longest, "oldest" is the earliest.
function together(group: Item): Row {
  if (group.sum && group.summed === version.peek()) return group.sum;
  const sum: Row = (group.sum = new Array(F.limited + 1).fill(0));
  group.summed = version.peek();
  for (const q of group.of) {
    const row = q.shown;
    for (let f = 1; f < row.length; f++) {
      const n = row[f]!, had = sum[f]!;
      if (f === F.oldest) sum[f] = had && n ? Math.min(had, n) : had || n;
      else sum[f] = f > F.oldest && f < F.limited ? Math.max(had, n) : had + n;
    }
  }
  return sum;
}

const pins = signal<string[]>(JSON.parse(localStorage.getItem("pins") ?? "[]"));

function pin(command: string) {
  pins.value = pins.value.includes(command) ? pins.value.filter((p) => p !== command) : [...pins.value, command];
  localStorage.setItem("pins", JSON.stringify(pins.value));
}

const folds = computed(() => place.value.query.getAll("fold"));

function fold(id: string) {
  setQuery({ fold: folds.value.includes(id) ? folds.value.filter((f) => f !== id) : [...folds.value, id] });
}

/** failing is the part of what ended or came back in the last second that went wrong, or null. */
function failing(q: Item): number | null {
  const wrong = fig(q, F.retried) + fig(q, F.expired) + fig(q, F.failed);
  const all = wrong + fig(q, F.completed);
  return all ? wrong / all : null;
}

/** drained is how long the backlog takes at the rate of now, in ms; Infinity if it does not shrink. */
function drained(q: Item): number {
  const backlog = fig(q, F.ready);
  if (!backlog) return 0;
  const down = fig(q, F.started) - fig(q, F.in);
  return down > 0 ? (backlog / down) * 1000 : Infinity;
}

/** backlog says how long a queue needs for what is ready, with the class of that. */
function backlog(q: Item): [text: string, tone: string] {
  const ms = drained(q);
  if (ms === 0) return ["–", "zero"];
  return ms < Infinity ? [span(ms), ""] : [fig(q, F.paused) ? "paused" : fig(q, F.in) > fig(q, F.started) ? "grows" : "stands", "warn"];
}

const trends = new Map<string, { series: unknown; drawn: number; spark: Signal<ComponentChildren> }>();

function Trend({ of }: { of: Signal<ComponentChildren> }) {
  return of.value;
}

// A point of a trend stands for 5 s or more, so a trend is drawn once in 5 s, a fifth of the rows at a time.
function trend(i: Item): Signal<ComponentChildren> {
  const { series } = i.of[0]!, drawn = Math.floor(at.peek() / 5000 + i.id.charCodeAt(i.id.length - 1) / 5) + history.value / 1e6, had = trends.get(i.id);
  if (had?.series === series && had.drawn === drawn) return had.spark;
  const values = column(series, F.completed);
  for (const q of i.of) if (q.series !== series) q.series.addTo(values, F.completed, series);
  const spark = had?.spark ?? signal<ComponentChildren>(null);
  spark.value = <Spark values={values} tone="done" />;
  trends.set(i.id, { series, drawn, spark });
  return spark;
}

/** measured is a time that tasks took, "–" if none did. */
const measured = (q: Item, time: Figure, of: Figure) => (fig(q, time) ? span(fig(q, time)) : fig(q, of) ? "0" : "–");

const number = (name: string, f: Figure, show: (n: number) => string, more: Partial<Column<Item>> = {}): Column<Item> => ({
  name, class: "n", by: (q) => fig(q, f), text: (q) => (fig(q, f) ? show(fig(q, f)) : "0"), tone: (q) => (fig(q, f) ? "" : "zero"), ...more,
});

const linked = (name: string, f: Figure, state: string, more: Partial<Column<Item>> = {}): Column<Item> => ({
  ...number(name, f, count, more),
  to: (i) => (i.isGroup ? href(["find"], { command: i.id, state }) : href(["queue", i.id], state === "dlq" ? { tab: "dead" } : { tab: "tasks", state })),
});

const columns = (beside?: Beside): Column<Item>[] => [
  {
    name: "queue", by: (i) => i.id, class: "name",
    same: (i) => [folds.value.includes(i.id), pins.value.includes(i.id), fig(i, F.paused), fig(i, F.limited), i.of.length, i.within, beside?.spread.has(i.id)].join(),
    cell: (i) => {
      const isFolded = folds.value.includes(i.id), paused = fig(i, F.paused), isPinned = pins.value.includes(i.id);
      if (i.isGroup) {
        return (
          <button type="button" class="fold" aria-expanded={!isFolded} onClick={() => fold(i.id)}>
            <span aria-hidden="true">{isFolded ? "▸" : "▾"}</span> {i.id} <span class="muted">{plural(i.of.length, "queue")}</span>
          </button>
        );
      }
      return (
        <>
          {beside && (
            <button type="button" class="quiet pin" aria-pressed={isPinned} aria-label={`Keep ${i.id} on top`} title="Keep on top" onClick={() => pin(i.id)}>{isPinned ? "★" : "☆"}</button>
          )}
          <a href={href(["queue", i.id])} class={i.within ? "within" : ""} title={i.id}>{i.id}</a>
          {paused ? <State of="paused" /> : null}
          {fig(i, F.limited) > 0 && <a class="badge" href={href(["queue", i.id], { tab: "tasks", state: "ready" })} title="Tasks that would be ready, did their concurrency key not hold them back">{count(fig(i, F.limited))} limited</a>}
          {" "}{beside?.spread.has(i.id) && <span class="badge" title="Its tasks lie on all shards; each shard has an order of its own">spread</span>}
        </>
      );
    },
  },
  linked("ready", F.ready, "ready", { head: <><Shape of="ready" /> ready</> }),
  linked("delayed", F.delayed, "delayed", { head: <><Shape of="delayed" /> delayed</>, class: "n wide" }),
  linked("running", F.inProgress, "inProgress", { head: <><Shape of="inProgress" /> in progress</> }),
  linked("dead", F.dead, "dlq", { head: <><Shape of="dead" /> dead</> }),
  number("in", F.in, rate, { head: "in/s", title: "Tasks that came in the last second" }),
  number("done", F.completed, rate, { head: "done/s", title: "Tasks that completed in the last second" }),
  {
    name: "failing", class: "n", by: (q) => failing(q) ?? -1, title: "Retries, expiries and dead letters, of all that ended or came back in the last second",
    text: (q) => (failing(q) === null ? "–" : `${Math.round(failing(q)! * 100)} %`), tone: (q) => (failing(q) ? "bad" : "zero"),
  },
  number("wait", F.waitP99, span, { head: "wait p99", class: "n wide", title: "99 of 100 tasks had a worker in this time", text: (q) => measured(q, F.waitP99, F.started) }),
  number("run", F.runP99, span, { head: "run p99", class: "n wide", title: "99 of 100 deliveries took this time or less", text: (q) => measured(q, F.runP99, F.completed) }),
  {
    name: "oldest", class: "n", title: "How long the first ready task waits", by: (q) => (fig(q, F.oldest) ? at.peek() - fig(q, F.oldest) : 0),
    text: (q) => (fig(q, F.oldest) ? span(at.peek() - fig(q, F.oldest)) : "–"), tone: (q) => (fig(q, F.oldest) ? "" : "zero"),
  },
  {
    name: "drained", class: "n wide", head: "drained in", title: "Ready tasks ÷ (started − in), in the last second", by: drained,
    text: (q) => backlog(q)[0], tone: (q) => backlog(q)[1],
  },
  ...(beside ? [{
    name: "workers", class: "n wide", by: (i: Item) => room(i, beside)[0], same: (i: Item) => `${room(i, beside)} ${fig(i, F.ready) > 0 && !fig(i, F.started)}`, title: "Sessions that ask for it · tasks for which they have room. Workers that claim over HTTP have no session.",
    cell: (i: Item) => {
      const [sessions, free] = room(i, beside);
      return sessions ? <>{count(sessions)} <span class="muted">· {count(free)} free</span></> : fig(i, F.ready) && !fig(i, F.started) ? <span class="warn">none</span> : <span class="zero">–</span>;
    },
  }] : []),
  { name: "trend", class: "trend wide", title: "Tasks that completed in a second, over time", same: trend, cell: (i) => <Trend of={trend(i)} /> },
  ...(beside ? [{
    name: "act", class: "act", head: <span class="unseen">Actions</span>, same: (i: Item) => i.id,
    cell: (i: Item) => !i.isGroup && <button type="button" class="quiet" aria-label={`What to do with ${i.id}`} title="What to do with it" onClick={() => beside.act(i.of[0]!)}>⋯</button>,
  }] : []),
];

function room(i: Item, { room }: Beside): [number, number] {
  const all = i.of.map((q) => room.get(q.command) ?? [0, 0]);
  return [all.reduce((n, r) => n + r[0]!, 0), all.reduce((n, r) => n + r[1]!, 0)];
}

const prefix = (command: string) => command.split(".", 1)[0]! + ".*";

const items = new WeakMap<Queue, Item>();

/** ordered puts queues into groups, and groups and queues in order. Pinned queues are first, outside of their groups. */
function ordered(all: Queue[], c: Column<Item>[], sort: string, grouped: boolean): Item[] {
  const one = (q: Queue, within = false): Item => {
    const i = items.get(q) ?? { id: q.command, of: [q] };
    items.set(q, i);
    return Object.assign(i, { within });
  };
  const isPinned = (q: Queue) => pins.value.includes(q.command);
  const groups = Map.groupBy(all.filter((q) => !isPinned(q)), (q) => (grouped ? prefix(q.command) : ""));
  const rest = [...groups].flatMap(([id, of]): Item[] => (id && of.length > 1 ? [{ id, of, isGroup: true }] : of.map((q) => one(q))));
  const within = (i: Item) => (i.isGroup && !folds.value.includes(i.id) ? sorted(i.of.map((q) => one(q, true)), c, sort) : []);
  return [...sorted(all.filter(isPinned).map((q) => one(q)), c, sort), ...sorted(rest, c, sort).flatMap((i) => [i, ...within(i)])];
}

interface Props {
  /** Show only so many, the busiest. */
  most?: number;
  filter?: string;
  /** Also the queues of the server itself. */
  system?: boolean;
  sort?: string;
  onSort?: (sort: string) => void;
  picked?: Signal<ReadonlySet<string>>;
  beside?: Beside;
}

/** How long the order of the rows stays. */
const keptMs = 10_000;

export function QueueTable({ most, filter = "", system, sort = "-ready", onSort, picked, beside }: Props) {
  // The order stays while the pointer is on the rows, so that none moves away below it, and else for some seconds, for who reads.
  const held = useSignal(false), kept = useRef({ rows: [] as Item[], of: [] as Queue[], key: "", until: 0 });
  const all = useMemo(() => columns(beside), [beside]), of = (system ? queues : own).value, k = kept.current;
  void version.value;
  const key = [sort, filter, param("flat"), pins.value, ...folds.value].join();
  if (k.of !== of || k.key !== key || (at.value >= k.until && !held.value)) {
    const rows = ordered(of.filter((q) => q.command.includes(filter)), all, sort, !!beside && !filter && !param("flat"));
    if (held.value) {
      const places = new Map(k.rows.map((i, place) => [i.id, place]));
      rows.sort((a, b) => (places.get(a.id) ?? 1e9) - (places.get(b.id) ?? 1e9));
    }
    kept.current = { rows, of, key, until: at.value + keptMs };
  }
  const { rows } = kept.current;
  return (
    <div
      class="scroll"
      onPointerEnter={() => (held.value = true)}
      onPointerLeave={() => (held.value = false)}
      onClickCapture={() => (held.value = false)}
    >
      <Rows
        rows={most ? rows.slice(0, most) : rows} columns={all} id={(i) => i.id} label="Queues" sort={sort} onSort={onSort}
        picked={picked} picks={(i) => i.of.map((q) => q.command)} open={(i) => (i.isGroup ? fold(i.id) : go(["queue", i.id]))} tone={(i) => (i.isGroup ? "group" : "")}
      />
    </div>
  );
}
