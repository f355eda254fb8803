// The four charts of one queue, or of all.
import type { ComponentChildren } from "preact";
import { column, range } from "./board";
import { Chart } from "./chart";
import { count, rate, span } from "./format";
import { param, setQuery } from "./route";
import { F, ranges, type Figure, type Range, type Series } from "./series";

export const plus = (...columns: (number | null)[][]) =>
  columns[0]!.map((first, i) => (first === null ? null : columns.reduce((n, c) => n + (c[i] ?? 0), 0)));

/** Charts show a series, and what else stands beside it. */
export function Charts({ of, children }: { of: Series; children?: ComponentChildren }) {
  const times = of.times(), c = (f: Figure) => column(of, f), log = param("scale") === "log";
  const isLimited = c(F.limited).some(Boolean);
  return (
    <section class="block">
      <header>
        <h2>Over time</h2>
        <Ranges />
      </header>
      <div class="charts">
        <Chart
          title="Throughput" note="a second" times={times} show={rate}
          lines={() => [
            { label: "completed", tone: "done", values: c(F.completed), filled: true, stacked: true },
            { label: "going wrong", tone: "dead", values: plus(c(F.retried), c(F.expired), c(F.failed)), filled: true, stacked: true },
            { label: "in", tone: "accent", values: c(F.in) },
          ]}
        />
        <Chart
          title="Backlog" note="tasks" times={times} show={count} log={log}
          lines={() => [
            { label: "in progress", tone: "accent", values: c(F.inProgress), filled: true, stacked: !log },
            { label: "ready", tone: "ready", values: c(F.ready), filled: true, stacked: !log },
            { label: "delayed", tone: "delayed", values: c(F.delayed), filled: true, stacked: !log },
            { label: "dead", tone: "dead", values: c(F.dead), filled: true, stacked: !log },
            ...(isLimited ? [{ label: "limited", tone: "limited", values: c(F.limited), filled: true, stacked: !log }] : []),
          ]}
        />
        <Chart
          title="Wait" note="from ready to a worker" times={times} show={span} isTime
          lines={() => [{ label: "p50", tone: "ready", values: c(F.waitP50) }, { label: "p99", tone: "accent", values: c(F.waitP99), band: true }]}
        />
        <Chart
          title="Run" note="of a delivery" times={times} show={span} isTime
          lines={() => [{ label: "p50", tone: "ready", values: c(F.runP50) }, { label: "p99", tone: "accent", values: c(F.runP99), band: true }]}
        />
        {children}
      </div>
    </section>
  );
}

function Ranges() {
  const log = param("scale") === "log";
  return (
    <div class="choices">
      <div role="group" aria-label="Range">
        {(Object.keys(ranges) as Range[]).map((r) => (
          <button type="button" key={r} aria-pressed={range.value === r} onClick={() => setQuery({ range: r === "5m" ? undefined : r })}>{r}</button>
        ))}
      </div>
      <button type="button" aria-pressed={log} title="Logarithmic scale of the backlog" onClick={() => setQuery({ scale: log ? undefined : "log" })}>log</button>
    </div>
  );
}
