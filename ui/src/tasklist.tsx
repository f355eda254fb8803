// A list of tasks. Without a filter it is live: rows change at their place, and what is new waits above until it is taken in.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask } from "./api";
import { find } from "./board";
import { All, Chosen } from "./bulk";
import { asked, filter, Labels, type Filter } from "./filter";
import { count, moment, shortId, span } from "./format";
import { again, changed, serverNow, watch } from "./live";
import { Empty, Problem, Shape, Time, stateWord } from "./parts";
import type { SubscribeFrame, Task } from "./protocol";
import { go, href } from "./route";
import { Rows, type Column } from "./rows";
import { F } from "./series";
import { firstLine, isLong, stateOf, visible, type ListState } from "./task";

const perPage = 100;
/** What a search may have looked at to be followed: to follow it, the server searches once more. */
const mostFollowed = 2000;

interface List {
  tasks: Task[];
  /** Those that are not in the list any more. They keep their place until new ones are taken in. */
  gone: ReadonlySet<string>;
  above: number;
  scanned: number;
  cursor?: string;
  readAt: number;
  /** Its rows change as the tasks do. */
  followed?: boolean;
}

const age = (at: string) => span(Math.max(0, serverNow() - Date.parse(at)));

function columnsOf(list: Signal<List | null>, state?: ListState, command?: string): Column<Task>[] {
  const id: Column<Task> = {
    name: "id", class: "mono", head: "task",
    cell: (t) => <><a href={href(["task", t.id])} title={t.id}><Shape of={stateOf(t)} /> …{shortId(t.id)}</a>{stateOf(t) === "limited" && <span class="left"> {stateWord("limited")}</span>}{list.value?.gone.has(t.id) && <span class="left"> left</span>}</>,
  };
  const queue: Column<Task>[] = command ? [] : [{ name: "queue", class: "name", cell: (t) => <a href={href(["queue", t.command])}>{t.command}</a> }];
  const attempts: Column<Task> = { name: "attempts", class: "n", head: "failed", cell: (t) => `${t.attempts}/${t.maxAttempts}` };
  const priority: Column<Task> = { name: "priority", class: "n wide", cell: (t) => t.priority };
  const worker: Column<Task> = { name: "worker", class: "name", cell: (t) => t.workerId ?? "" };
  const ended: Column<Task> = { name: "ended", cell: (t) => <Time ms={Date.parse(t.updatedAt)} /> };
  const own: Column<Task>[] = {
    ready: [{ name: "waits", class: "n", cell: (t: Task) => age(t.updatedAt) }, priority],
    delayed: [{ name: "due", class: "n", head: "due in", cell: (t: Task) => (t.visibleAt ? span(Math.max(0, Date.parse(t.visibleAt) - serverNow())) : "") }, priority],
    inProgress: [worker, { name: "runs", class: "n", cell: (t: Task) => <Runs task={t} /> }, { name: "lease", class: "n", head: "lease left", cell: (t: Task) => <Lease task={t} /> }],
    dlq: [{ name: "cause", cell: (t: Task) => t.dlqCause?.replaceAll("_", " ") }, worker, ended],
    done: [{ name: "status", cell: (t: Task) => t.status.toLowerCase() }, worker, ended],
    any: [{ name: "state", cell: (t: Task) => stateWord(stateOf(t)) }, { name: "created", cell: (t: Task) => <Time ms={Date.parse(t.createdAt)} /> }, worker],
  }[state ?? "any"];
  return [
    id, ...queue, ...own, attempts,
    { name: "error", class: "text", head: "last error", cell: (t) => <span class="bad">{firstLine(t.error)}</span> },
    ...(list.value?.tasks.some((t) => t.concurrencyKey) ? [{ name: "key", class: "name wide", cell: (t: Task) => visible(t.concurrencyKey ?? "") }] : []),
    { name: "labels", class: "text wide", cell: (t) => <Labels of={t.labels} /> },
    { name: "payload", class: "text mono wide", cell: (t) => firstLine(t.payload ?? "") },
  ];
}

/** Runs is how long a delivery runs, with a sign if that is much longer than those of its queue take. */
function Runs({ task: t }: { task: Task }) {
  const ms = serverNow() - Date.parse(t.updatedAt), p99 = find(t.command)?.row.value[F.runP99] ?? 0;
  if (!isLong(ms, p99)) return <>{age(t.updatedAt)}</>;
  return <span class="warn" title={`99 of 100 deliveries of this queue take ${span(p99)} or less`}><Shape of="failed" /> long: {age(t.updatedAt)}</span>;
}

function Lease({ task: t }: { task: Task }) {
  if (!t.leaseUntil) return null;
  const left = Date.parse(t.leaseUntil) - serverNow(), all = Date.parse(t.leaseUntil) - Date.parse(t.updatedAt);
  return <><meter min={0} max={all} value={Math.max(0, left)} aria-label="Lease left" /> {span(Math.max(0, left))}</>;
}

/** TaskList shows the tasks that the address selects, of one queue in one state, or of all. */
export function TaskList({ command, state, only = [] }: { command?: string; state?: ListState; only?: Filter }) {
  const f = [...filter(), ...only], isLive = f.length === 0 && !!command && !!state, key = JSON.stringify([command, state, f]);
  const list = useSignal<List | null>(null), problem = useSignal(""), busy = useSignal(false);
  const picked = useSignal<ReadonlySet<string>>(new Set());
  const off = useRef(new AbortController()), round = useSignal(0), shownKey = useRef("");

  const page = (cursor?: string) => {
    const signal = off.current.signal;
    if (isLive) return ask("GET /admin/queues/{command}/tasks", { command, signal, query: { state, limit: perPage, cursor } }).then((p) => ({ ...p, scanned: 0 }));
    return ask("GET /admin/tasks", { signal, query: { ...asked(f), ...(command ? { command: [command] } : {}), state, limit: perPage, cursor } });
  };
  /** tried is undefined if the server refused, which the page then says. */
  const tried = async (cursor?: string) => {
    try {
      const p = await page(cursor);
      problem.value = "";
      return p;
    } catch (e) {
      if ((e as Error).name !== "AbortError") problem.value = (e as Error).message;
    }
  };
  /** read reads one page: the first, or the next. */
  const read = async (cursor?: string): Promise<boolean> => {
    const p = await tried(cursor);
    if (p) {
      const old = cursor ? list.value : null, has = new Set(old?.tasks.map((t) => t.id));
      list.value = {
        tasks: [...(old?.tasks ?? []), ...p.tasks.filter((t) => !has.has(t.id))], gone: old?.gone ?? new Set(), above: old?.above ?? 0,
        scanned: (old?.scanned ?? 0) + p.scanned, cursor: p.cursor, readAt: old?.readAt ?? serverNow(),
      };
    }
    return !!p;
  };
  /** more goes on until it has as many again, or there is no more, or the person stops it. */
  const more = async () => {
    const until = (list.value?.tasks.length ?? 0) + perPage;
    busy.value = true;
    while (busy.value && list.value?.cursor && list.value.tasks.length < until && (await read(list.value.cursor))) if (isLive) break;
    busy.value = false;
  };

  useEffect(() => {
    off.current = new AbortController();
    busy.value = false;
    problem.value = "";
    if (shownKey.current !== key) {
      list.value = null;
      picked.value = new Set();
    }
    shownKey.current = key;
    let stop = isLive ? follow({ command, state }, list, tried) : undefined;
    if (!isLive) {
      const signal = off.current.signal;
      void read().then((ok) => {
        const l = list.value;
        if (!ok || !l || signal.aborted || l.scanned > mostFollowed) return;
        const { "attempts>": attempts, label, ...rest } = asked(f), one = Object.fromEntries(Object.entries(rest).map(([name, v]) => [name, v[0]]));
        const search = { ...one, label, "attempts>": attempts && Number(attempts[0]), state, ...(command ? { command } : {}) };
        stop = follow({ filter: search }, list, async () => ({ tasks: l.tasks, cursor: l.cursor }));
      });
    }
    return () => {
      stop?.();
      off.current.abort();
    };
  }, [key, round.value]);

  const l = list.value;
  const takeIn = () => void (isLive ? again("page") : round.value++);
  const none = () => (picked.value = new Set()), chosen = l?.tasks.filter((t) => picked.value.has(t.id)) ?? [];
  const word = state && stateWord(state === "dlq" ? "dead" : state);
  return (
    <section>
      {problem.value && <Problem>{problem.value}</Problem>}
      {l && (
        <div class="bar head">
          {l.above > 0 && <button type="button" class="new" onClick={takeIn}>▲ {count(l.above)}{l.above === perPage && " or more"} new</button>}
          {!isLive && <b>{l.scanned > 0 && `${count(l.scanned)} looked at, `}{count(l.tasks.length)} found</b>}
          {!isLive && <span class="muted">as of {moment(l.readAt)}{l.followed && ", and as its tasks change"}</span>}
          {l.cursor && !isLive && <More busy={busy} more={more} word="Go on" />}
          {(!isLive || l.gone.size > 0) && <button type="button" onClick={takeIn}>Read again</button>}
          {chosen.length > 0 ? <Chosen tasks={chosen} none={none} then={() => { none(); takeIn(); }} />
            : state && l.tasks.length > 0 && <All command={command} state={state} filter={f} then={takeIn} />}
        </div>
      )}
      {!l ? !problem.value && <p class="muted pad" role="status">Reading the tasks.</p>
        : l.tasks.length === 0 ? <Empty title={isLive ? `No task is ${word}` : l.cursor ? "None found yet" : "No task fits"} />
        : (
          <div class="scroll">
            <Rows
              rows={l.tasks} columns={columnsOf(list, state, command)} id={(t) => t.id} label={`Tasks${word ? `: ${word}` : ""}`}
              picked={state === "done" ? undefined : picked} open={(t) => go(["task", t.id])} tone={(t) => (l.gone.has(t.id) ? "gone" : "")}
            />
          </div>
        )}
      {l?.cursor && isLive && <p class="more"><More busy={busy} more={more} word="Further tasks" /></p>}
    </section>
  );
}

function More({ busy, more, word }: { busy: Signal<boolean>; more: () => void; word: string }) {
  return busy.value ? <button type="button" onClick={() => (busy.value = false)}>Stop</button> : <button type="button" class="main" onClick={more}>{word}</button>;
}

/** follow keeps the first page of a list live. Its rows come without payloads, which the list of the API adds. */
function follow(of: Pick<SubscribeFrame, "command" | "state" | "filter">, list: Signal<List | null>, first: () => Promise<{ tasks: Task[]; cursor?: string } | undefined>) {
  let rows: Task[] = [], gone = new Set<string>(), above = 0, whole = false, fresh = false, begun = false;
  const payloads = new Map<string, string>();
  let early: ReturnType<typeof first> | undefined = first(); // asked for while the rows come, and shown if it is the first
  void early.then((p) => {
    if (p && !begun && !of.filter) list.value = { ...p, gone, above, scanned: 0, readAt: serverNow(), followed: true };
  });
  const show = () => {
    const old = fresh && !of.filter ? null : list.value, mine = new Set(rows.map((t) => t.id));
    fresh = false;
    list.value = {
      scanned: list.value?.scanned ?? 0, readAt: list.value?.readAt ?? 0, followed: true, cursor: old?.cursor, gone, above,
      tasks: [...rows.map((t) => ({ ...t, payload: payloads.get(t.id) ?? t.payload })), ...(old?.tasks ?? []).filter((t) => !mine.has(t.id))],
    };
  };
  const fill = async () => {
    const p = await (early ?? first()), was = early;
    early = undefined;
    for (const t of p?.tasks ?? []) payloads.set(t.id, t.payload);
    if (was && rows.some((t) => !payloads.has(t.id))) void fill(); // a row has come since
    if (!of.filter && list.value) list.value = { ...list.value, cursor: p?.cursor };
    changed(show);
  };
  return watch("page", {
    ask: () => {
      whole = true; // what comes next is a new list
      return { id: "page", kind: "page", ...of, limit: perPage };
    },
    take: (f) => {
      if (f.type === "snapshot") {
        rows = whole ? (f.tasks ?? []) : [...rows, ...(f.tasks ?? [])];
        whole = !f.more;
        begun = true;
        above = f.above ?? 0;
        if (!whole) return;
        gone = new Set();
        fresh = true;
        show();
        void fill();
      } else if (f.type === "tick") {
        const changes = new Map(f.tasks?.map((t) => [t.id, t]));
        rows = rows.map((t) => changes.get(t.id) ?? t);
        gone = new Set([...gone, ...(f.left ?? [])].filter((id) => !changes.has(id)));
        above = f.above ?? above;
        if (rows.length === 0 && above > 0) again("page");
        changed(show);
      }
    },
  });
}
