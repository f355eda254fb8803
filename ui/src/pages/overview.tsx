// The first page: how much happens, what goes wrong, what needs somebody.
import { computed } from "@preact/signals";
import { at, history, loaded, oldest, own, range, total } from "../board";
import { Charts, plus } from "../charts";
import { plural, rate, span } from "../format";
import { Empty, Spark } from "../parts";
import { href } from "../route";
import { F, type Figure } from "../series";
import { QueueTable } from "../queuetable";
import { Needs } from "../needs";

export function Overview() {
  return <><h1 class="unseen">Overview</h1><Now /></>;
}

function Now() {
  if (!loaded.value) return <p class="muted pad" role="status">Waiting for the first figures.</p>;
  if (own.value.length === 0) {
    return (
      <Empty title="No queue yet">
        A queue begins with its first task: <code>codeq enqueue hello 1</code>, and <code>codeq work hello cat</code> in another
        terminal works on it. This page shows it as it happens.
      </Empty>
    );
  }
  return (
    <>
      <Needs />
      <Figures />
      <Charts of={total.series} />
      <section class="block">
        <header>
          <h2>Busiest queues</h2>
          <a href={href(["queues"])}>All {plural(own.value.length, "queue")}</a>
        </header>
        <QueueTable most={8} />
      </section>
    </>
  );
}

/** A point of a spark stands for 5 s or more, so they are drawn once in 5 s, or for another range. */
const fifth = computed(() => Math.floor(at.value / 5000) + range.value);
const sparks = computed(() => {
  void [fifth.value, history.value];
  const h = total.series, of = (f: Figure) => h.column(f, h.firstAt());
  return {
    came: <Spark values={of(F.in)} />, done: <Spark values={of(F.completed)} tone="done" />,
    wrong: <Spark values={plus(of(F.retried), of(F.expired), of(F.failed))} tone="dead" />, ready: <Spark values={of(F.ready)} tone="ready" />,
  };
});

function Figures() {
  const row = total.row.value, wrong: Figure[] = [F.retried, F.expired, F.failed];
  const first = oldest.value, bad = wrong.reduce((n, f) => n + row[f]!, 0);
  return (
    <section class="figures" aria-label="Now">
      <a href={href(["live"], { causes: "enqueue" })}>
        <span>In</span>
        <strong>{rate(row[F.in]!)}<small>/s</small></strong>
        {sparks.value.came}
      </a>
      <a href={href(["live"], { causes: "result" })}>
        <span>Completed</span>
        <strong>{rate(row[F.completed]!)}<small>/s</small></strong>
        {sparks.value.done}
      </a>
      <a href={href(["live"], { causes: "nack,abandon,lease_expired,timeout,session_gone,expired" })} class={bad ? "wrong" : ""}>
        <span>Going wrong</span>
        <strong>{rate(bad)}<small>/s</small></strong>
        <em>{rate(row[F.retried]!)} retried · {rate(row[F.expired]!)} expired · {rate(row[F.failed]!)} dead</em>
        {sparks.value.wrong}
      </a>
      <a href={first ? href(["queue", first.command], { tab: "tasks", state: "ready" }) : href(["queues"])}>
        <span>Oldest waiting</span>
        <strong>{first ? span(at.value - first.row.value[F.oldest]!) : "–"}</strong>
        <em>{first ? `in ${first.command}` : "no task is ready"}</em>
        {sparks.value.ready}
      </a>
    </section>
  );
}
