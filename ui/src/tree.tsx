// JSON as a tree that folds. The text is that of a stranger: it is shown as text, with every character visible.
import { useSignal } from "@preact/signals";
import { say } from "./jobs";
import { count } from "./format";
import { visible } from "./task";

const firstBytes = 64 << 10;
const firstMembers = 100;

export function CopyText({ text }: { text: string }) {
  const copy = () => navigator.clipboard.writeText(text).then(() => say("Copied."), () => say("The browser does not let the page copy.", true));
  return <button type="button" class="quiet" onClick={copy}>Copy</button>;
}

export function Tree({ title, text }: { title: string; text: string }) {
  const raw = useSignal(false);
  const whole = useSignal(text.length <= firstBytes);
  let value: unknown;
  let isJson = whole.value;
  try {
    if (whole.value) value = JSON.parse(text);
  } catch {
    isJson = false;
  }
  return (
    <section class="tree card">
      <header>
        <h2>{title}</h2>
        <span class="muted">{count(text.length)} characters</span>
        {isJson && <button type="button" class="quiet" aria-pressed={raw.value} onClick={() => (raw.value = !raw.value)}>{raw.value ? "Tree" : "Raw"}</button>}
        <CopyText text={text} />
      </header>
      <div class="json mono" tabIndex={0} role="group" aria-label={title}>
        {isJson && !raw.value ? <Node value={value} open /> : <pre>{visible(text.slice(0, whole.value ? undefined : firstBytes))}</pre>}
      </div>
      {!whole.value && <button type="button" onClick={() => (whole.value = true)}>Show all {count(text.length)} characters</button>}
    </section>
  );
}

function Node({ value, open = false }: { value: unknown; open?: boolean }) {
  const all = useSignal(false);
  if (value === null || typeof value !== "object") {
    return <span class={`v ${typeof value}`}>{visible(JSON.stringify(value))}</span>;
  }
  const members = Object.entries(value), isArray = Array.isArray(value);
  if (members.length === 0) return <span class="v">{isArray ? "[]" : "{}"}</span>;
  const shown = all.value ? members : members.slice(0, firstMembers);
  return (
    <details open={open}>
      <summary>{isArray ? `[${count(members.length)}]` : `{${count(members.length)}}`}</summary>
      <ul>
        {shown.map(([name, v]) => (
          <li key={name}>
            <span class="k">{isArray ? name : visible(JSON.stringify(name))}</span> <Node value={v} open={members.length <= 20} />
          </li>
        ))}
        {shown.length < members.length && (
          <li><button type="button" class="quiet" onClick={() => (all.value = true)}>{count(members.length - shown.length)} more</button></li>
        )}
      </ul>
    </details>
  );
}
