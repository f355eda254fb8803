// The tasks of a queue in one state.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask } from "../api";
import type { Queue } from "../board";
import { count, moment, plural, shortId, span } from "../format";
import { begin, each } from "../jobs";
import { onKey } from "../keys";
import { serverNow } from "../live";
import { Empty, Problem, Shape, Time, stateWord, type StateName } from "../parts";
import type { Task } from "../protocol";
import { go, href, param, setQuery } from "../route";
import { Rows, type Column } from "../rows";
import { F, type Figure } from "../series";
import { firstLine, stateOf, states, type ListState } from "../task";

const chips: Record<ListState, [StateName, Figure]> = {
  ready: ["ready", F.ready], delayed: ["delayed", F.delayed], inProgress: ["inProgress", F.inProgress], dlq: ["dead", F.dead], done: ["done", F.done],
};

const age = (at: string) => span(Math.max(0, serverNow() - Date.parse(at)));

function columnsOf(state: ListState): Column<Task>[] {
  const id: Column<Task> = {
    name: "id", class: "mono", head: "task",
    cell: (t) => <a href={href(["task", t.id])} title={t.id}><Shape of={stateOf(t)} /> …{shortId(t.id)}</a>,
  };
  const attempts: Column<Task> = { name: "attempts", class: "n", head: "failed", cell: (t) => `${t.attempts}/${t.maxAttempts}` };
  const error: Column<Task> = { name: "error", class: "text", head: "last error", cell: (t) => <span class="bad">{firstLine(t.error)}</span> };
  const priority: Column<Task> = { name: "priority", class: "n wide", cell: (t) => t.priority };
  const worker: Column<Task> = { name: "worker", cell: (t) => t.workerId ?? "" };
  const payload: Column<Task> = { name: "payload", class: "text mono wide", cell: (t) => firstLine(t.payload ?? "") };
  switch (state) {
    case "ready":
      return [id, { name: "waits", class: "n", cell: (t) => age(t.updatedAt) }, priority, attempts, error, payload];
    case "delayed":
      return [id, { name: "due", class: "n", head: "due in", cell: (t) => (t.visibleAt ? span(Math.max(0, Date.parse(t.visibleAt) - serverNow())) : "") }, priority, attempts, error, payload];
    case "inProgress":
      return [id, worker, { name: "runs", class: "n", cell: (t) => age(t.updatedAt) }, { name: "lease", class: "n", head: "lease left", cell: (t) => <Lease task={t} /> }, attempts, error, payload];
    case "dlq":
      return [id, { name: "cause", cell: (t) => t.dlqCause?.replaceAll("_", " ") }, attempts, worker, { name: "ended", cell: (t) => <Time ms={Date.parse(t.updatedAt)} /> }, error, payload];
    case "done":
      return [id, { name: "status", cell: (t) => t.status.toLowerCase() }, { name: "ended", cell: (t) => <Time ms={Date.parse(t.updatedAt)} /> }, worker, attempts, error, payload];
  }
}

function Lease({ task: t }: { task: Task }) {
  if (!t.leaseUntil) return null;
  const left = Date.parse(t.leaseUntil) - serverNow(), all = Date.parse(t.leaseUntil) - Date.parse(t.updatedAt);
  return <><meter min={0} max={all} value={Math.max(0, left)} aria-label="Lease left" /> {span(Math.max(0, left))}</>;
}

/** actions are what can be done with tasks in a state: their word, what they did, and the request for one. */
function actions(state: ListState): [verb: string, done: string, send: (id: string) => Promise<unknown>, danger: boolean][] {
  const cancel = ["Cancel", "cancelled", (id: string) => ask("POST /tasks/{id}/cancel", { id }), true] as [string, string, (id: string) => Promise<unknown>, boolean];
  switch (state) {
    case "ready":
    case "inProgress":
      return [cancel];
    case "delayed":
      return [["Run now", "made ready", (id) => ask("POST /admin/tasks/{id}/run", { id }), false], cancel];
    case "dlq":
      return [["Replay", "replayed", (id) => ask("POST /admin/tasks/{id}/replay", { id }), false]];
    case "done":
      return [];
  }
}

export function Tasks({ queue: q }: { queue: Queue }) {
  const asked = param("state", "ready") as ListState, state = states.includes(asked) ? asked : "ready";
  const error = param("error"), worker = param("worker"), command = q.command;
  const tasks = useSignal<Task[] | null>(null), cursor = useSignal<string | undefined>(undefined);
  const problem = useSignal(""), readAt = useSignal(0);
  const picked = useSignal<ReadonlySet<string>>(new Set());
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => onKey("/", () => field.current?.focus()), []);

  const read = async (from?: string, signal?: AbortSignal) => {
    try {
      const page = await ask("GET /admin/queues/{command}/tasks", { command, signal, query: { state, error, worker, limit: 100, cursor: from } });
      tasks.value = from ? [...(tasks.value ?? []), ...page.tasks] : page.tasks;
      cursor.value = page.cursor;
      problem.value = "";
      if (!from) readAt.value = serverNow();
    } catch (e) {
      if ((e as Error).name !== "AbortError") problem.value = (e as Error).message;
    }
  };
  useEffect(() => {
    const off = new AbortController();
    tasks.value = null;
    picked.value = new Set();
    void read(undefined, off.signal);
    return () => off.abort();
  }, [command, state, error, worker]);

  const change = (verb: string, done: string, send: (id: string) => Promise<unknown>, danger: boolean) => {
    const ids = [...picked.value];
    begin({
      title: `${verb} ${plural(ids.length, "chosen task")} of ${command}`, verb, done, danger, step: each(ids, send),
      then: () => {
        picked.value = new Set();
        void read();
      },
    });
  };

  return (
    <section>
      <div class="bar">
        <nav class="chips" aria-label="State">
          {states.map((s) => (
            <a key={s} href={href(["queue", command], { tab: "tasks", state: s })} aria-current={s === state ? "page" : undefined}>
              <Shape of={chips[s][0]} /> {stateWord(chips[s][0])} <b>{count(q.row.value[chips[s][1]]!)}</b>
            </a>
          ))}
        </nav>
        <input
          ref={field} type="search" placeholder="Error contains ( / )" aria-label="Only tasks whose error contains" value={error}
          onChange={(e) => setQuery({ error: e.currentTarget.value })} onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()}
        />
        <input type="search" placeholder="Worker" aria-label="Only tasks of a worker" value={worker} onChange={(e) => setQuery({ worker: e.currentTarget.value })} />
        <span class="muted">{readAt.value > 0 && `as of ${moment(readAt.value)}`}</span>
        <button type="button" onClick={() => read()}>Read again</button>
      </div>
      {problem.value && <Problem>{problem.value}</Problem>}
      {picked.value.size > 0 && (
        <div class="bar bulk" role="group" aria-label="With the chosen tasks">
          <b>{plural(picked.value.size, "task")} chosen</b>
          {actions(state).map(([verb, done, send, danger]) => (
            <button type="button" key={verb} onClick={() => change(verb, done, send, danger)}>{verb}</button>
          ))}
          <button type="button" class="quiet" onClick={() => (picked.value = new Set())}>Choose none</button>
        </div>
      )}
      {tasks.value?.length === 0 && !cursor.value ? (
        <Empty title={error || worker ? "No task fits" : `No task is ${stateWord(chips[state][0])}`} />
      ) : (
        <div class="scroll">
          <Rows
            rows={tasks.value ?? []} columns={columnsOf(state)} id={(t) => t.id} label={`Tasks: ${stateWord(chips[state][0])}`}
            picked={state === "done" ? undefined : picked} open={(t) => go(["task", t.id])}
          />
        </div>
      )}
      {cursor.value && (
        <p class="more">
          <button type="button" onClick={() => read(cursor.value)}>Further tasks</button>
          {(error || worker) && <span class="muted"> A page looks at up to 5,000 tasks; {count(tasks.value?.length ?? 0)} found so far.</span>}
        </p>
      )}
    </section>
  );
}
