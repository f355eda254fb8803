// What can be done with many tasks: with those that a person has chosen, one request for each, and
// with all that a filter selects, in the bounded requests that the command line sends too.
import { ask } from "./api";
import { asked, words, type Filter } from "./filter";
import { count, plural } from "./format";
import { begin, each, type Found, type Job } from "./jobs";
import type { Task } from "./protocol";
import { stateOf, states, type ListState } from "./task";

interface Action {
  verb: string;
  done: string;
  danger?: boolean;
  states: ListState[];
  text?: string;
  /** For one task. The server removes dead letters by a filter only. */
  one?: (id: string) => Promise<unknown>;
  /** For those of a queue in a state. Nobody takes back all tasks at once but one by one. */
  many?: (command: string, state: ListState, filter: object) => Promise<Found & { done?: number }>;
}

let toPriority = 5; // what the dialog of a job asks for

export const takeBack: Action = {
  verb: "Take back", done: "taken back", danger: true, states: ["inProgress"], one: (id) => ask("POST /admin/tasks/{id}/take-back", { id }),
  text: "It is ready at its old place, and no attempt counts. Its worker is told to stop, and a result that it sends later is refused.",
};

const actions: Action[] = [
  {
    verb: "Run now", done: "made ready", states: ["delayed"], one: (id) => ask("POST /admin/tasks/{id}/run", { id }),
    many: (command, _, f) => ask("POST /admin/queues/{command}/tasks/run", { command }, f).then((a) => ({ ...a, done: a.ready })),
  },
  {
    verb: "Priority", done: "moved", states: ["ready", "delayed"], one: (id) => ask("POST /admin/tasks/{id}/move", { id }, { toPriority }),
    many: (command, state, f) =>
      ask("POST /admin/queues/{command}/tasks/move", { command }, { ...f, state: state as "ready", toPriority }).then((a) => ({ ...a, done: a.moved })),
  },
  {
    verb: "Cancel", done: "cancelled", danger: true, states: ["ready", "delayed", "inProgress"], one: (id) => ask("POST /tasks/{id}/cancel", { id }),
    text: "A worker that has one of them is told to stop.",
    many: (command, state, f) => ask("POST /admin/queues/{command}/tasks/cancel", { command }, { ...f, state: state as "ready" }).then((a) => ({ ...a, done: a.cancelled })),
  },
  takeBack,
  {
    verb: "Replay", done: "replayed", states: ["dlq"], one: (id) => ask("POST /admin/tasks/{id}/replay", { id }), text: "Each has all its attempts again and is ready, the oldest first.",
    many: (command, _, f) => ask("POST /admin/queues/{command}/dlq/replay", { command }, { cause: "all", ...f }).then((a) => ({ ...a, done: a.replayed })),
  },
  {
    verb: "Remove", done: "removed", danger: true, states: ["dlq"], text: "They are gone then, with their results and history.",
    many: (command, _, f) => ask("DELETE /admin/queues/{command}/dlq", { command, query: f as Record<string, string> }).then((a) => ({ ...a, done: a.purged })),
  },
];

const listOf = (t: Task): ListState => {
  const s = stateOf(t);
  return s === "dead" ? "dlq" : s === "limited" ? "ready" : states.includes(s as ListState) ? (s as ListState) : "done";
};

const textOf = (a: Action) => a.verb === "Priority" ? (
  <p>
    <label>
      New priority <select onChange={(e) => (toPriority = Number(e.currentTarget.value))}>
        {[...Array(10).keys()].map((p) => <option key={p} selected={p === toPriority}>{p}</option>)}
      </select>
    </label> 9 goes first.
  </p>
) : a.text;

/** Chosen offers what can be done with the chosen tasks, and with how many of them. */
export function Chosen({ tasks, none, then }: { tasks: Task[]; none: () => void; then: () => void }) {
  return (
    <div class="all" role="group" aria-label="With the chosen tasks">
      <b>{plural(tasks.length, "task")} chosen</b>
      {actions.map((a) => {
        const fit = tasks.filter((t) => a.states.includes(listOf(t)));
        if (!a.one || fit.length === 0) return null;
        const go = () => begin({
          ...a, title: `${a.verb}: ${plural(fit.length, "chosen task")}`, text: textOf(a), then,
          preview: async () => ({ matched: fit.length, sample: fit }), step: each(fit.map((t) => t.id), a.one!),
        });
        return <button type="button" key={a.verb} onClick={go}>{a.verb} {fit.length < tasks.length && count(fit.length)}</button>;
      })}
      <button type="button" class="quiet" onClick={none}>Choose none</button>
    </div>
  );
}

/** ago is when it was, of a time such as 1h30m; without a unit it is seconds. */
function ago(text: string): string {
  let ms = 0;
  for (const [, n, unit] of text.matchAll(/([\d.]+)(d|h|m|s|)/g)) ms += Number(n) * { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 }[unit || "s"]!;
  return new Date(Date.now() - ms).toISOString();
}

/** known is a filter as the bulk requests have it, undefined if they have nothing like it. */
function known(f: Filter): object | undefined {
  const q: Record<string, string | number> = {};
  for (const [kind, value] of f) {
    if (kind === "label" || kind === "payload") return undefined;
    if (kind === "error" || kind === "worker") q[kind] = value;
    if (kind === "attempts") q.minAttempts = Number(value);
    if (kind === "olderThan") q.createdBefore = ago(value);
  }
  return q;
}

/** one by one: the filter finds tasks, a page at a time, and each gets a request of its own. */
function found(a: Action, command: string | undefined, state: ListState, f: Filter): Pick<Job, "preview" | "step"> {
  const find = (cursor?: string) => ask("GET /admin/tasks", { query: { ...asked(f), ...(command ? { command } : {}), state, limit: 100, cursor } });
  return {
    preview: async () => {
      const page = await find();
      return { matched: page.tasks.length, sample: page.tasks, cursor: page.cursor };
    },
    step: async (cursor) => {
      const page = await find(cursor), all = page.tasks.map((t) => t.id);
      return { ...(await each(all, a.one!, all.length)()), cursor: page.cursor };
    },
  };
}

/** All offers what can be done with all tasks that the filter selects, also those that are not on the page. */
export function All({ command, state, filter: f, then }: { command?: string; state: ListState; filter: Filter; then: () => void }) {
  const q = known(f), queue = command ?? f.find(([kind]) => kind === "command")?.[1];
  const direct = q && queue && !queue.includes("*");
  const fit = actions.filter((a) => a.states.includes(state) && (direct || a.one));
  if (fit.length === 0) return null;
  return (
    <span class="all">
      All {f.length ? "that fit" : "of them"}, also those not shown:
      {fit.map((a) => {
        const many = direct && a.many;
        const go = () => begin({
          ...a, title: `${a.verb} all tasks${queue ? ` of ${queue}` : ""}${f.length ? " that fit" : ""}`, text: <>{f.length > 0 && <p>{words(f)}</p>}{textOf(a)}</>, then,
          ...(many ? {
            preview: () => many(queue, state, { ...q, dryRun: true }),
            step: async (cursor?: string) => {
              const r = await many(queue, state, { ...q, limit: 1000, cursor });
              return { done: r.done ?? 0, cursor: r.cursor };
            },
          } : found(a, command, state, f)),
        });
        return <button type="button" key={a.verb} onClick={go}>{a.verb} …</button>;
      })}
    </span>
  );
}
