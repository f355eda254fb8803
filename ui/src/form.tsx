// A form of settings: what holds, what is set, and what a change would change.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { say } from "./jobs";
import { Problem } from "./parts";

export interface Field {
  /** Its name in the API, with a dot before a member of a member. */
  path: string;
  title: string;
  text?: string;
  /** It is one of these words, or with [] on or off; else a number. */
  choices?: readonly string[];
  /** It is no number but a text, or several with commas between them. */
  is?: "text" | "list";
}

type Form = Record<string, string>;

const at = (of: unknown, path: string): unknown => path.split(".").reduce((v, name) => (v as Record<string, unknown> | null | undefined)?.[name], of);

/** formOf are settings as texts; "" is what the server does without a setting. */
const formOf = (fields: Field[], of: unknown): Form =>
  Object.fromEntries(fields.map(({ path }) => [path, (at(of, path) || "").toString()]));

/** settingsOf are the settings that a form has. What is no number is sent as it is, so that the server says so. */
function settingsOf(fields: Field[], form: Form): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const { path, choices, is } of fields) {
    const text = form[path], [first = "", second] = path.split(".");
    if (!text) continue;
    const value = is === "list" ? text.split(/[\s,]+/).filter(Boolean) : is || choices?.length ? text : choices ? true : Number.isNaN(Number(text)) ? text : Number(text);
    all[first] = second ? { ...(all[first] as object | undefined), [second]: value } : value;
  }
  return all;
}

interface Props {
  fields: Field[];
  /** What is set, what holds, and the word for what has no value. */
  of: unknown;
  holds: unknown;
  none: string;
  /** save sends all settings. done is said then. */
  save: (settings: Record<string, unknown>) => Promise<unknown>;
  done: string;
  children?: ComponentChildren;
}

export function SettingsForm({ fields, of, holds, none, save, done, children }: Props) {
  const form = useSignal<Form>({}), problem = useSignal("");
  useEffect(() => {
    form.value = formOf(fields, of);
  }, [of]);
  const before = formOf(fields, of), changed = fields.filter(({ path }) => (form.value[path] ?? before[path]) !== before[path]);
  const set = (path: string, value: string) => (form.value = { ...form.value, [path]: value });
  const send = async (e: Event) => {
    e.preventDefault();
    try {
      await save(settingsOf(fields, form.value));
      problem.value = "";
      say(done);
    } catch (e) {
      problem.value = (e as Error).message;
    }
  };
  return (
    <form class="card" onSubmit={send}>
      {fields.map((f) => {
        const value = form.value[f.path] ?? "", now = at(holds, f.path);
        return (
          <label key={f.path} class={changed.includes(f) ? "changed" : ""}>
            <span>{f.title}</span>
            {!f.choices ? <input inputMode={f.is ? "text" : "numeric"} placeholder={now == null ? (f.is ? "none" : none) : `${now}`} value={value} onInput={(e) => set(f.path, e.currentTarget.value.trim())} />
              : f.choices.length === 0 ? <input type="checkbox" checked={value === "true"} onChange={(e) => set(f.path, e.currentTarget.checked ? "true" : "")} />
              : (
                <select value={value} onChange={(e) => set(f.path, e.currentTarget.value)}>
                  <option value="">{String(now)} (server)</option>
                  {f.choices.map((c) => <option key={c}>{c}</option>)}
                </select>
              )}
            <em>{f.text}</em>
          </label>
        );
      })}
      {changed.length > 0 && (
        <ul class="diff" aria-label="What changes">
          {changed.map(({ path }) => (
            <li key={path} class="mono">
              {path}: <del>{before[path] || (at(holds, path) == null ? none : `${at(holds, path)} (server)`)}</del> → <ins>{form.value[path] || "as the server does"}</ins>
            </li>
          ))}
        </ul>
      )}
      {problem.value && <Problem>{problem.value}</Problem>}
      <div class="buttons">
        <button class="main" disabled={changed.length === 0}>Set {changed.length || ""}</button>
        <button type="button" disabled={changed.length === 0} onClick={() => (form.value = before)}>As it was</button>
        {children}
      </div>
    </form>
  );
}
