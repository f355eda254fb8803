// Ctrl+K finds a page, a queue or a task. The key ? shows the keys.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { queues } from "./board";
import { taskId } from "./filter";
import { onKey } from "./keys";
import { menu } from "./menu";
import { go, type Query } from "./route";

interface Hit {
  name: string;
  what: string;
  go: () => void;
}

function hits(text: string): Hit[] {
  const word = text.trim();
  if (taskId.test(word)) return [{ name: word, what: "task", go: () => go(["task", word.toLowerCase()]) }];
  const find = (what: string, query: Query) => ({ name: word, what, go: () => go(["find"], query) });
  const fits = (name: string) => name.toLowerCase().includes(word.toLowerCase());
  return [
    ...menu.filter((p) => fits(p.name)).map((p) => ({ name: p.name, what: "page", go: () => go(p.path) })),
    ...queues.value.filter((q) => fits(q.command)).slice(0, 9).map((q) => ({ name: q.command, what: "queue", go: () => go(["queue", q.command]) })),
    ...(word.includes("=") ? [find("tasks with this label", { label: word })] : []),
    ...(word ? [find("tasks whose error contains it", { error: word }), find("tasks whose payload contains it", { payload: word })] : []),
  ];
}

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const at = useSignal(0), isOpen = useSignal(false);
  const open = () => {
    isOpen.value = true;
    text.value = "";
    at.value = 0;
    if (!dialog.current?.open) dialog.current?.showModal();
  };
  useEffect(() => onKey("Ctrl+K", open), []);
  const found = isOpen.value ? hits(text.value) : [];
  const choose = (h?: Hit) => {
    dialog.current?.close();
    h?.go();
  };
  const press = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) at.value = Math.max(0, Math.min(found.length - 1, at.value + step));
    else if (e.key === "Enter") choose(found[at.value]);
    else return;
    e.preventDefault();
  };
  return (
    <>
      <button type="button" class="find" onClick={open}>
        Go to <kbd>Ctrl K</kbd>
      </button>
      <dialog class="palette" ref={dialog} aria-label="Go to" onClose={() => (isOpen.value = false)} onClick={(e) => e.target === dialog.current && dialog.current?.close()}>
        <input
          type="text" placeholder="A queue, a page, a label, an id, or a text" aria-label="Find a queue, a page or tasks" role="combobox"
          aria-expanded="true" aria-controls="hits" aria-activedescendant={found[at.value] ? `hit${at.value}` : undefined} autocomplete="off" spellcheck={false}
          value={text.value} onInput={(e) => { text.value = e.currentTarget.value; at.value = 0; }} onKeyDown={press}
        />
        <ul id="hits" role="listbox" aria-label="Found">
          {found.map((h, i) => (
            <li key={h.what + h.name} id={`hit${i}`} role="option" aria-selected={i === at.value} onPointerMove={() => (at.value = i)} onClick={() => choose(h)}>
              {h.name} <span class="muted">{h.what}</span>
            </li>
          ))}
        </ul>
      </dialog>
    </>
  );
}

const keys: [string, string][] = [
  ["Ctrl K", "find a queue, a page or tasks"],
  ...menu.map((p): [string, string] => [`g ${p.key}`, `go to ${p.name}`]),
  ["/", "find tasks, or filter the rows"],
  ["j k", "next and previous row"],
  ["Enter", "open the row"],
  ["x", "choose the row"],
  ["space", "pause and go on"],
  ["?", "these keys"],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => onKey("?", () => dialog.current?.showModal()), []);
  return (
    <dialog class="help" ref={dialog} aria-labelledby="keys" onClick={(e) => e.target === dialog.current && dialog.current?.close()}>
      <h2 id="keys">Keys</h2>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>{key.split(" ").map((k) => <kbd key={k}>{k}</kbd>)}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}
