// Who works: the sessions of workers and producers.
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask } from "../api";
import { count, plural, span } from "../format";
import { begin } from "../jobs";
import { who } from "../login";
import { changed, serverNow, watch } from "../live";
import { Empty, State } from "../parts";
import type { Sessions } from "../protocol";
import { go, href, param, setQuery } from "../route";
import { Rows, sorted, type Column } from "../rows";
import { TaskList } from "../tasklist";

type Session = Sessions[number];

const sessions = signal<Session[] | undefined>(undefined);

/** room has for each queue how many sessions ask for it, and for how many tasks they have room. */
export const room = computed(() => {
  const all = new Map<string, [number, number]>();
  for (const s of sessions.value ?? []) {
    for (const c of s.commands) {
      const [n, free] = all.get(c) ?? [0, 0];
      all.set(c, [n + 1, free + (s.state === "live" ? Math.max(0, s.window - s.held) : 0)]);
    }
  }
  return all;
});

export function useSessions() {
  useEffect(() => {
    const all = new Map<string, Session>();
    return watch("workers", {
      ask: () => {
        all.clear();
        return { id: "workers", kind: "workers" };
      },
      take: (f) => {
        if (f.type !== "snapshot" && f.type !== "tick") return;
        for (const s of f.sessions ?? []) all.set(s.sessionId, s);
        if (f.type === "tick") for (const id of f.left ?? []) all.delete(id);
        changed(() => (sessions.value = [...all.values()]));
      },
    });
  }, []);
}

const since = (at?: string) => (at ? span(Math.max(0, serverNow() - Date.parse(at))) : "");
const nameOf = (s: Session) => s.workerId || s.subject;

const number = (n = 0) => (n ? count(n) : <span class="zero">0</span>);

const columns: Column<Session>[] = [
  { name: "worker", class: "name", by: nameOf, cell: (s) => <><a href={href(["worker", nameOf(s)])}>{nameOf(s)}</a> {s.workerId && s.workerId !== s.subject && who.value?.authentication && <span class="muted">{s.subject}</span>}</> },
  {
    name: "state", by: (s) => s.state,
    cell: (s) => s.state === "live" ? <State of="live" /> : s.state === "draining" ? <State of="paused" word="draining" />
      : <State of="failed" word={`lost, may resume${s.graceUntil ? ` for ${span(Math.max(0, Date.parse(s.graceUntil) - serverNow()))}` : ""}`} />,
  },
  { name: "queues", class: "text", cell: (s) => s.commands.map((c, i) => <>{i > 0 && ", "}<a href={href(["queue", c])}>{c}</a></>) },
  { name: "held", class: "n", by: (s) => s.held, cell: (s) => <><meter min={0} max={Math.max(1, s.window)} value={s.held} aria-label="Held of its window" /> {s.held} of {s.window}</> },
  { name: "completed", class: "n", by: (s) => s.completed ?? 0, cell: (s) => number(s.completed) },
  { name: "failed", class: "n", by: (s) => s.failed ?? 0, cell: (s) => (s.failed ? <span class="bad">{count(s.failed)} · {Math.ceil((100 * s.failed) / (s.failed + (s.completed ?? 0)))} %</span> : number()) },
  { name: "round", head: "round trip", class: "n wide", by: (s) => s.roundTripMs ?? 0, cell: (s) => (s.roundTripMs === undefined ? "" : `${s.roundTripMs} ms`) },
  { name: "seen", class: "n wide", head: "last heard", by: (s) => -Date.parse(s.lastSeenAt), cell: (s) => since(s.lastSeenAt) },
  { name: "connected", class: "n wide", by: (s) => -Date.parse(s.connectedAt), cell: (s) => since(s.connectedAt) },
];

const acts: Column<Session> = {
  name: "act", head: <span class="unseen">Actions</span>, class: "acts",
  cell: (s) => {
    const button = (verb: string, done: string, text: string, send: () => Promise<unknown>) => (
      <button
        type="button"
        onClick={() => begin({
          title: `${verb} the session of ${nameOf(s)}`, verb, done, what: "session", danger: true, text: <p>It has {plural(s.held, "task")}. {text}</p>,
          step: () => send().then(() => ({ done: 1 })),
        })}
      >
        {verb}
      </button>
    );
    const session = s.sessionId;
    return s.state !== "grace" && (
      <>
        {s.state === "live" && button("Drain", "drained", "It keeps what it has and gets no other task, until it connects again.", () => ask("POST /admin/sessions/{session}/drain", { session }))}{" "}
        {button("Disconnect", "disconnected", "Its worker may connect again at once and goes on. If it does not in 15 s, others get its tasks.", () => ask("POST /admin/sessions/{session}/disconnect", { session }))}
      </>
    );
  },
};

function Table({ rows, act }: { rows: Session[]; act?: boolean }) {
  const sort = param("sort", "worker");
  return (
    <div class="scroll">
      <Rows rows={sorted(rows, columns, sort)} columns={act ? [...columns, acts] : columns} id={(s) => s.sessionId} label="Sessions" sort={sort} open={(s) => go(["worker", nameOf(s)])} onSort={(s) => setQuery({ sort: s })} />
    </div>
  );
}

const note = "Workers that claim over HTTP have no session: their tasks in progress show who has them.";

export function Workers() {
  useSessions();
  const all = sessions.value;
  return (
    <>
      <div class="title">
        <h1>Workers</h1>
        {all && <span class="muted">{plural(all.length, "session")}, which hold {plural(all.reduce((n, s) => n + s.held, 0), "task")}</span>}
      </div>
      {!all ? <p class="muted pad" role="status">Waiting for the sessions.</p>
        : all.length === 0 ? <Empty title="No session is open"><code>codeq work QUEUE PROGRAM</code> opens one. {note}</Empty>
        : <><Table rows={all} /><p class="muted note">{note}</p></>}
    </>
  );
}

/** WorkersOf are the sessions that ask for one queue. */
export function WorkersOf({ command }: { command: string }) {
  useSessions();
  const all = sessions.value?.filter((s) => s.commands.includes(command));
  if (!all) return <p class="muted pad" role="status">Waiting for the sessions.</p>;
  if (all.length === 0) return <Empty title={`No session asks for ${command}`}>{note}</Empty>;
  return <Table rows={all} />;
}

/** Worker is one worker by its name: its sessions, and the tasks that it has. */
export function Worker({ name }: { name: string }) {
  useSessions();
  const all = sessions.value?.filter((s) => nameOf(s) === name);
  return (
    <>
      <div class="title"><h1>{name}</h1></div>
      {all && (all.length > 0 ? <Table rows={all} act /> : <p class="muted">It has no session now. {note}</p>)}
      <section class="block">
        <header>
          <h2>What it works on</h2>
          <a href={href(["find"], { worker: name })}>All tasks that it has or had last</a>
        </header>
        <TaskList state="inProgress" only={[["worker", name]]} />
      </section>
    </>
  );
}
