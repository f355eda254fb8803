// What tasks are found by: a form, and what it holds as chips that can be taken away. All of it stands in the address.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { onKey } from "./keys";
import { go, href, place, setQuery, type Query } from "./route";
import { visible } from "./task";

/** kinds have the name that the API gives them, what a person reads, and an example. */
const kinds = {
  label: ["label", "Label", "customer=acme"],
  error: ["error~", "Error contains", "timeout"],
  payload: ["payload~", "Payload contains", "ada@example.org"],
  worker: ["worker", "Worker", "its whole name"],
  olderThan: ["olderThan", "Older than", "1h30m"],
  attempts: ["attempts>", "Failed at least", "3"],
  command: ["command", "Queue", "billing.*"],
} as const;
export type Kind = keyof typeof kinds;
export type Filter = [kind: Kind, value: string][];

export const filter = (): Filter => [...place.value.query].filter(([name]) => name in kinds) as Filter;

/** grouped has the values of each kind, of which only labels can be several. */
function grouped(f: Filter, name: (k: Kind) => string): Query {
  const q: Record<string, string[]> = {};
  for (const [kind, value] of f) (q[name(kind)] ??= []).push(value);
  return q;
}

/** asked are the parameters of GET /admin/tasks. */
export const asked = (f: Filter) => grouped(f, (k) => kinds[k][0]) as Record<string, string[]>;

/** words say what a filter selects. */
export const words = (f: Filter) => f.map(([kind, value]) => `${kinds[kind][1].toLowerCase()} ${visible(value)}`).join(", ");

export const taskId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Labels are those of a task; each leads to the tasks that have it, too. */
export function Labels({ of }: { of?: Record<string, string> }) {
  return (
    <span class="labels">
      {Object.entries(of ?? {}).map(([name, value]) => (
        <a key={name} href={href(["find"], { label: `${name}=${value}` })} title={`Find all tasks with the label ${visible(name)}=${visible(value)}`}>
          {visible(name)}=<b>{visible(value)}</b>
        </a>
      ))}
    </span>
  );
}

export function FilterForm({ without }: { without?: Kind }) {
  const kind = useSignal<Kind>("label"), text = useSignal("");
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => onKey("/", () => field.current?.focus()), []);
  const all = filter();
  const set = (f: Filter) => setQuery({ ...Object.fromEntries(Object.keys(kinds).map((k) => [k, undefined])), ...grouped(f, (k) => k) });
  const add = (e: Event) => {
    e.preventDefault();
    const word = text.value.trim(), [, name = "", rest = ""] = /^(\w+):(.+)$/.exec(word) ?? [];
    if (taskId.test(word)) return go(["task", word.toLowerCase()]);
    const [k, value] = name in kinds && name !== without ? [name as Kind, rest.trim()] : [kind.value, word];
    if (!value) return;
    set([...all.filter(([other, v]) => (k === "label" ? other !== k || v !== value : other !== k)), [k, value]]);
    text.value = "";
  };
  return (
    <form class="bar" role="search" aria-label="Find tasks" onSubmit={add}>
      <span class="join">
        <select aria-label="Find by" value={kind.value} onChange={(e) => (kind.value = e.currentTarget.value as Kind)}>
          {(Object.keys(kinds) as Kind[]).filter((k) => k !== without).map((k) => <option key={k} value={k}>{kinds[k][1]}</option>)}
        </select>
        <input
          ref={field} type="search" placeholder={`${kinds[kind.value][2]}  ( / )`} aria-label={`${kinds[kind.value][1]}: the value, or the id of a task`} spellcheck={false}
          value={text.value} onInput={(e) => (text.value = e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key === "Escape") e.currentTarget.blur();
            if (e.key === "Backspace" && !text.value) set(all.slice(0, -1));
          }}
        />
        <button>Add</button>
      </span>
      {all.filter(([k]) => k !== without).map(([k, value]) => (
        <button
          type="button" class="chip" key={k + value} aria-label={`Take away: ${kinds[k][1]} ${value}`}
          onClick={() => set(all.filter(([other, v]) => other !== k || v !== value))}
        >
          {kinds[k][1]} <b>{visible(value)}</b> ✕
        </button>
      ))}
    </form>
  );
}
