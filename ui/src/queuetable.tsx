// The table of queues, of the page of queues and of the overview.
import { useSignal, type Signal } from "@preact/signals";
import { at, column, queues, type Queue } from "./board";
import { count, rate, span } from "./format";
import { Shape, Spark, State } from "./parts";
import { go, href } from "./route";
import { Rows, sorted, type Column } from "./rows";
import { F, type Figure } from "./series";

const fig = (q: Queue, f: Figure) => q.row.value[f]!;

/** failing is the part of what ended or came back in the last second that went wrong, or null. */
function failing(q: Queue): number | null {
  const wrong = fig(q, F.retried) + fig(q, F.expired) + fig(q, F.failed);
  const all = wrong + fig(q, F.completed);
  return all ? wrong / all : null;
}

/** drained is how long the backlog takes at the rate of now, in ms; Infinity if it does not shrink. */
function drained(q: Queue): number {
  const backlog = fig(q, F.ready);
  if (!backlog) return 0;
  const down = fig(q, F.started) - fig(q, F.in);
  return down > 0 ? (backlog / down) * 1000 : Infinity;
}

const number = (name: string, f: Figure, show: (n: number) => string, more: Partial<Column<Queue>> = {}): Column<Queue> => ({
  name, class: "n", by: (q) => fig(q, f),
  cell: (q) => (fig(q, f) ? show(fig(q, f)) : <span class="zero">0</span>), ...more,
});

const linked = (name: string, f: Figure, state: string, more: Partial<Column<Queue>> = {}): Column<Queue> => ({
  ...number(name, f, count, more),
  cell: (q) => {
    const n = fig(q, f);
    if (!n) return <span class="zero">0</span>;
    return <a href={href(["queue", q.command], state === "dlq" ? { tab: "dead" } : { tab: "tasks", state })}>{count(n)}</a>;
  },
});

const columns: Column<Queue>[] = [
  {
    name: "queue", by: (q) => q.command, class: "name",
    cell: (q) => (
      <>
        <a href={href(["queue", q.command])}>{q.command}</a>
        {fig(q, F.paused) ? <State of="paused" /> : null}
      </>
    ),
  },
  linked("ready", F.ready, "ready", { head: <><Shape of="ready" /> ready</> }),
  linked("delayed", F.delayed, "delayed", { head: <><Shape of="delayed" /> delayed</>, class: "n wide" }),
  linked("running", F.inProgress, "inProgress", { head: <><Shape of="inProgress" /> in progress</> }),
  linked("dead", F.dead, "dlq", { head: <><Shape of="dead" /> dead</> }),
  number("in", F.in, rate, { head: "in/s", title: "Tasks that came in the last second" }),
  number("done", F.completed, rate, { head: "done/s", title: "Tasks that completed in the last second" }),
  {
    name: "failing", class: "n", by: (q) => failing(q) ?? -1, title: "Retries, expiries and dead letters, of all that ended or came back in the last second",
    cell: (q) => {
      const part = failing(q);
      return part ? <span class="bad">{Math.round(part * 100)} %</span> : <span class="zero">{part === null ? "–" : "0 %"}</span>;
    },
  },
  number("wait", F.waitP99, span, { head: "wait p99", class: "n wide", title: "99 of 100 tasks had a worker in this time" }),
  number("run", F.runP99, span, { head: "run p99", class: "n wide", title: "99 of 100 deliveries took this time or less" }),
  {
    name: "oldest", class: "n", title: "How long the first ready task waits", by: (q) => (fig(q, F.oldest) ? at.peek() - fig(q, F.oldest) : 0),
    cell: (q) => (fig(q, F.oldest) ? span(at.value - fig(q, F.oldest)) : <span class="zero">–</span>),
  },
  {
    name: "drained", class: "n wide", head: "drained in", title: "Ready tasks ÷ (started − in), in the last second", by: drained,
    cell: (q) => {
      const ms = drained(q);
      return ms === 0 ? <span class="zero">–</span> : ms === Infinity ? <span class="warn">{fig(q, F.in) > fig(q, F.started) ? "grows" : "stands"}</span> : span(ms);
    },
  },
  { name: "trend", class: "trend wide", head: "done/s", cell: (q) => (at.value, <Spark values={column(q.series, F.completed)} tone="done" />) },
];

interface Props {
  /** Show only so many, the busiest. */
  most?: number;
  filter?: string;
  sort?: string;
  onSort?: (sort: string) => void;
  picked?: Signal<ReadonlySet<string>>;
}

export function QueueTable({ most, filter = "", sort = "-ready", onSort, picked }: Props) {
  // The order stays while the pointer is on the rows, so that none moves away below it.
  const held = useSignal<string[] | null>(null);
  let rows = queues.value.filter((q) => q.command.includes(filter));
  rows = sorted(rows, columns, sort);
  if (held.value) {
    const places = new Map(held.value.map((name, i) => [name, i]));
    rows.sort((a, b) => (places.get(a.command) ?? 1e9) - (places.get(b.command) ?? 1e9));
  }
  return (
    <div
      class="scroll"
      onPointerEnter={() => (held.value = rows.map((q) => q.command))}
      onPointerLeave={() => (held.value = null)}
    >
      <Rows
        rows={most ? rows.slice(0, most) : rows} columns={columns} id={(q) => q.command} label="Queues"
        sort={sort} onSort={onSort && ((s) => { held.value = null; onSort(s); })} picked={picked} open={(q) => go(["queue", q.command])}
      />
    </div>
  );
}
