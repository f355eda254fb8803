// The first page: how much happens, what goes wrong, what needs somebody.
import { Chart } from "../chart";
import { at, column, history, loaded, oldest, queues, range, sum } from "../board";
import { count, plural, rate, span } from "../format";
import { Empty, Spark } from "../parts";
import { href, param, setQuery } from "../route";
import { F, ranges, type Figure, type Range, type Series } from "../series";
import { QueueTable } from "../queuetable";
import { Needs } from "../needs";

const plus = (...columns: (number | null)[][]) =>
  columns[0]!.map((first, i) => (first === null ? null : columns.reduce((n, c) => n + (c[i] ?? 0), 0)));

export function Overview() {
  return <><h1 class="unseen">Overview</h1><Now /></>;
}

function Now() {
  if (!loaded.value) return <p class="muted pad" role="status">Waiting for the first figures.</p>;
  if (queues.value.length === 0) {
    return (
      <Empty title="No queue yet">
        A queue begins with its first task: <code>codeq enqueue hello 1</code>, and <code>codeq work hello cat</code> in another
        terminal works on it. This page shows it as it happens.
      </Empty>
    );
  }
  const h = history();
  return (
    <>
      <Needs />
      <Figures h={h} />
      <Charts h={h} />
      <section class="block">
        <header>
          <h2>Busiest queues</h2>
          <a href={href(["queues"])}>All {plural(queues.value.length, "queue")}</a>
        </header>
        <QueueTable most={8} />
      </section>
    </>
  );
}

function Figures({ h }: { h: Series }) {
  const wrong: Figure[] = [F.retried, F.expired, F.failed];
  const first = oldest.value;
  return (
    <section class="figures" aria-label="Now">
      <a href={href(["queues"], { sort: "-in" })}>
        <span>In</span>
        <strong>{rate(sum(F.in))}<small>/s</small></strong>
        <Spark values={column(h, F.in)} />
      </a>
      <a href={href(["queues"], { sort: "-done" })}>
        <span>Completed</span>
        <strong>{rate(sum(F.completed))}<small>/s</small></strong>
        <Spark values={column(h, F.completed)} tone="done" />
      </a>
      <a href={href(["queues"], { sort: "-failing" })} class={sum(...wrong) ? "wrong" : ""}>
        <span>Going wrong</span>
        <strong>{rate(sum(...wrong))}<small>/s</small></strong>
        <em>{rate(sum(F.retried))} retried · {rate(sum(F.expired))} expired · {rate(sum(F.failed))} dead</em>
        <Spark values={plus(...wrong.map((f) => column(h, f)))} tone="dead" />
      </a>
      <a href={first ? href(["queue", first.command], { tab: "tasks", state: "ready" }) : href(["queues"])}>
        <span>Oldest waiting</span>
        <strong>{first ? span(at.value - first.row.value[F.oldest]!) : "–"}</strong>
        <em>{first ? `in ${first.command}` : "no task is ready"}</em>
        <Spark values={column(h, F.ready)} tone="ready" />
      </a>
    </section>
  );
}

function Charts({ h }: { h: Series }) {
  const times = h.times(), c = (f: Figure) => column(h, f), log = param("scale") === "log";
  return (
    <section class="block">
      <header>
        <h2>Over time</h2>
        <Ranges />
      </header>
      <div class="charts">
        <Chart
          title="Throughput" note="a second" times={times} show={rate}
          lines={[
            { label: "completed", tone: "done", values: c(F.completed), filled: true, stacked: true },
            { label: "going wrong", tone: "dead", values: plus(c(F.retried), c(F.expired), c(F.failed)), filled: true, stacked: true },
            { label: "in", tone: "accent", values: c(F.in) },
          ]}
        />
        <Chart
          title="Backlog" note="tasks" times={times} show={count} log={log}
          lines={[
            { label: "in progress", tone: "accent", values: c(F.inProgress), filled: true, stacked: !log },
            { label: "ready", tone: "ready", values: c(F.ready), filled: true, stacked: !log },
            { label: "delayed", tone: "delayed", values: c(F.delayed), filled: true, stacked: !log },
            { label: "dead", tone: "dead", values: c(F.dead), filled: true, stacked: !log },
          ]}
        />
        <Chart
          title="Wait" note="from ready to a worker, slowest queue" times={times} show={span}
          lines={[{ label: "p50", tone: "ready", values: c(F.waitP50) }, { label: "p99", tone: "accent", values: c(F.waitP99) }]}
        />
        <Chart
          title="Run" note="of a delivery, slowest queue" times={times} show={span}
          lines={[{ label: "p50", tone: "ready", values: c(F.runP50) }, { label: "p99", tone: "accent", values: c(F.runP99) }]}
        />
      </div>
    </section>
  );
}

export function Ranges() {
  const log = param("scale") === "log";
  return (
    <div class="choices">
      <div role="group" aria-label="Range">
        {(Object.keys(ranges) as Range[]).map((r) => (
          <button type="button" key={r} aria-pressed={range.value === r} onClick={() => setQuery({ range: r === "5m" ? undefined : r })}>{r}</button>
        ))}
      </div>
      <button type="button" aria-pressed={log} onClick={() => setQuery({ scale: log ? undefined : "log" })}>log</button>
    </div>
  );
}
