// The settings of a queue: what holds, what is set, and what a change would change.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, Refused } from "../api";
import { begin, say } from "../jobs";
import { useLoad } from "../load";
import { Problem } from "../parts";
import type { Answers, QueueSettings } from "../protocol";
import { go } from "../route";

type Name = "maxAttempts" | "leaseSeconds" | "timeoutSeconds" | "ttlSeconds" | "retentionSeconds" | "dlqRetentionSeconds" | "maxInProgress" | "startsPerSecond";

const fields: [Name, string, string][] = [
  ["maxAttempts", "Attempts", "of tasks that are posted without a number of their own"],
  ["leaseSeconds", "Lease, s", "how long a worker has a task without a heartbeat"],
  ["timeoutSeconds", "Time limit, s", "how long one delivery may run, despite heartbeats"],
  ["ttlSeconds", "Expires after, s", "when a task is not worth doing any more"],
  ["retentionSeconds", "Keep ended, s", "how long ended tasks and results stay"],
  ["dlqRetentionSeconds", "Keep dead, s", "how long dead letters stay"],
  ["maxInProgress", "Most in progress", "how many tasks workers have at once, over all shards"],
  ["startsPerSecond", "Starts a second", "how many deliveries begin in any second at most"],
];
const backoff: ["baseSeconds" | "maxSeconds", string][] = [["baseSeconds", "First pause, s"], ["maxSeconds", "Longest pause, s"]];
const policies = ["fixed", "linear", "exponential", "exp_equal_jitter", "exp_full_jitter"] as const;

type Form = Record<string, string>;

/** formOf are the settings of a queue as texts; "" is what the server does without a setting. */
function formOf(q: Answers["GET /admin/queues/{command}"]): Form {
  const form: Form = { spread: q.spread ? "true" : "", policy: q.backoff?.policy ?? "" };
  for (const [name] of fields) form[name] = q[name]?.toString() ?? "";
  for (const [name] of backoff) form[name] = q.backoff?.[name]?.toString() ?? "";
  return form;
}

function settingsOf(form: Form): QueueSettings {
  const number = (name: string) => (form[name] === "" ? undefined : Number(form[name]));
  const s: QueueSettings = { spread: form.spread === "true" || undefined };
  for (const [name] of fields) s[name] = number(name);
  const b = { policy: (form.policy || undefined) as (typeof policies)[number] | undefined, baseSeconds: number("baseSeconds"), maxSeconds: number("maxSeconds") };
  if (b.policy || b.baseSeconds || b.maxSeconds) s.backoff = b;
  return s;
}

export function Settings({ command }: { command: string }) {
  const known = useLoad((signal) => ask("GET /admin/queues/{command}", { command, signal }), [command]);
  const form = useSignal<Form>({}), problem = useSignal("");
  useEffect(() => {
    if (known.value) form.value = formOf(known.value);
  }, [known.value]);
  if (!known.value) return known.error ? <Problem>{known.error}</Problem> : <p class="muted pad">Reading the settings.</p>;
  const before = formOf(known.value), holds = { ...known.value.effective, ...known.value.effective?.backoff } as Record<string, unknown>;
  const changed = Object.keys(before).filter((name) => form.value[name] !== undefined && form.value[name] !== before[name]);
  const set = (name: string, value: string) => (form.value = { ...form.value, [name]: value });
  const save = async () => {
    problem.value = "";
    try {
      await ask("PUT /admin/queues/{command}", { command }, settingsOf(form.value));
      say(`The settings of ${command} hold on every shard.`);
      known.again();
    } catch (e) {
      problem.value = (e as Refused).message;
    }
  };
  const field = (name: string, title: string, text: string) => (
    <label key={name} class={changed.includes(name) ? "changed" : ""}>
      <span>{title}</span>
      <input inputMode="numeric" placeholder={holds[name] === undefined ? "no end" : `${holds[name]}`} value={form.value[name] ?? ""} onInput={(e) => set(name, e.currentTarget.value.trim())} />
      <em>{text}</em>
    </label>
  );
  return (
    <section class="settings">
      <form class="card" onSubmit={(e) => { e.preventDefault(); void save(); }}>
        {fields.map(([name, title, text]) => field(name, title, text))}
        <label class={changed.includes("policy") ? "changed" : ""}>
          <span>Pauses grow</span>
          <select value={form.value.policy ?? ""} onChange={(e) => set("policy", e.currentTarget.value)}>
            <option value="">as the server does: {String(holds.policy)}</option>
            {policies.map((p) => <option key={p}>{p}</option>)}
          </select>
          <em>the pause before a retry</em>
        </label>
        {backoff.map(([name, title]) => field(name, title, ""))}
        <label class={changed.includes("spread") ? "changed" : ""}>
          <span>Spread</span>
          <input type="checkbox" checked={form.value.spread === "true"} onChange={(e) => set("spread", e.currentTarget.checked ? "true" : "")} />
          <em>over all shards, with an order on each instead of one</em>
        </label>
        {changed.length > 0 && (
          <ul class="diff" aria-label="What changes">
            {changed.map((name) => (
              <li key={name} class="mono">
                {name}: <del>{before[name] || `${holds[name] ?? "not set"} (server)`}</del> → <ins>{form.value[name] || "as the server does"}</ins>
              </li>
            ))}
          </ul>
        )}
        {problem.value && <Problem>{problem.value}</Problem>}
        <div class="buttons">
          <button class="main" disabled={changed.length === 0}>Set {changed.length ? changed.length : ""}</button>
          <button type="button" disabled={changed.length === 0} onClick={() => (form.value = before)}>As it was</button>
          <button type="button" class="bad" onClick={() => remove(command)}>Delete the queue</button>
        </div>
      </form>
    </section>
  );
}

function remove(command: string) {
  begin({
    title: `Delete the queue ${command}`, verb: "Delete", done: "removed", danger: true,
    text: "Its settings, its tasks, their results and its dead letters are gone then. A queue with tasks in progress is refused: pause it and let them end first.",
    step: async () => {
      const a = await ask("DELETE /admin/queues/{command}", { command, query: { purge: true } });
      return { done: 0, cursor: a.deleted ? undefined : "again" };
    },
    then: () => go(["queues"]),
  });
}
