// One queue: now, its tasks, its dead letters, its settings.
import { at, column, find, isSystem, loaded, type Queue as QueueType } from "../board";
import { Charts } from "../charts";
import { count, rate, span } from "../format";
import { Heat } from "../heat";
import { Empty, Spark, State } from "../parts";
import { QueueActions } from "../queueactions";
import { href, param } from "../route";
import { F } from "../series";
import { Groups } from "./dead";
import { Settings } from "./settings";
import { Tasks } from "./tasks";
import { WorkersOf } from "./workers";

const tabs = ["now", "tasks", "dead", "workers", "settings"] as const;

export function Queue({ command }: { command: string }) {
  const q = find(command);
  if (!q && loaded.value) {
    return (
      <Empty title={`There is no queue ${command}`}>
        It begins with its first task, or with settings. <a href={href(["queues"])}>All queues</a>
      </Empty>
    );
  }
  const tab = param("tab", "now"), dead = q?.row.value[F.dead];
  return (
    <>
      <div class="title">
        <h1>{command}</h1>
        {q?.row.value[F.paused] === 1 && <State of="paused" />}
        {q && <div class="buttons"><QueueActions of={q} /></div>}
      </div>
      <nav class="tabs" aria-label={`Parts of ${command}`}>
        {tabs.filter((t) => t !== "settings" || !isSystem(command)).map((t) => (
          <a key={t} href={href(["queue", command], t === "now" ? {} : { tab: t })} aria-current={t === tab ? "page" : undefined}>
            {t}{t === "dead" && dead ? <b class="bad"> {count(dead)}</b> : null}
          </a>
        ))}
      </nav>
      {tab === "tasks" ? <Tasks command={command} queue={q} /> : tab === "workers" ? <WorkersOf command={command} /> : tab === "settings" ? <Settings command={command} />
        : !q ? <p class="muted pad" role="status">Waiting for the first figures.</p> : tab === "dead" ? <Groups queues={[q]} /> : <Now q={q} />}
    </>
  );
}

function Now({ q }: { q: QueueType }) {
  const row = q.row.value, tasks = (state: string) => href(["queue", q.command], { tab: "tasks", state });
  const age = row[F.oldest] ? at.value - row[F.oldest]! : 0;
  return (
    <>
      <section class="figures five" aria-label="Now">
        <a href={tasks("ready")}>
          <span><State of="ready" /></span>
          <strong>{count(row[F.ready]!)}</strong>
          <em>{[age && `the first waits ${span(age)}`, row[F.limited]! > 0 && `${count(row[F.limited]!)} more wait for their key`].filter(Boolean).join(" · ")}</em>
          <Spark values={column(q.series, F.ready)} tone="ready" />
        </a>
        <a href={tasks("delayed")}>
          <span><State of="delayed" /></span>
          <strong>{count(row[F.delayed]!)}</strong>
          <Spark values={column(q.series, F.delayed)} tone="delayed" />
        </a>
        <a href={tasks("inProgress")}>
          <span><State of="inProgress" /></span>
          <strong>{count(row[F.inProgress]!)}</strong>
          <em>{rate(row[F.started]!)}/s started</em>
          <Spark values={column(q.series, F.inProgress)} />
        </a>
        <a href={tasks("done")}>
          <span><State of="done" /></span>
          <strong>{rate(row[F.completed]!)}<small>/s</small></strong>
          <em>{count(row[F.done]!)} kept</em>
          <Spark values={column(q.series, F.completed)} tone="done" />
        </a>
        <a href={href(["queue", q.command], { tab: "dead" })} class={row[F.dead] ? "wrong" : ""}>
          <span><State of="dead" /></span>
          <strong>{count(row[F.dead]!)}</strong>
          <em>{rate(row[F.retried]!)}/s retried</em>
          <Spark values={column(q.series, F.dead)} tone="dead" />
        </a>
      </section>
      <Charts of={q.series}><Heat command={q.command} /></Charts>
      <section class="block">
        <header><h2>Who works on it</h2></header>
        <WorkersOf command={q.command} />
      </section>
    </>
  );
}
