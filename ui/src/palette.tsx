// Ctrl+K finds a page, a queue or a task. The key ? shows the keys.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { queues } from "./board";
import { onKey } from "./keys";
import { menu } from "./menu";
import { go } from "./route";

interface Hit {
  name: string;
  what: string;
  go: () => void;
}

const taskId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function hits(text: string): Hit[] {
  const word = text.trim();
  if (taskId.test(word)) return [{ name: word, what: "task", go: () => go(["task", word.toLowerCase()]) }];
  const fits = (name: string) => name.toLowerCase().includes(word.toLowerCase());
  return [
    ...menu.filter((p) => fits(p.name)).map((p) => ({ name: p.name, what: "page", go: () => go(p.path) })),
    ...queues.value.filter((q) => fits(q.command)).slice(0, 50).map((q) => ({ name: q.command, what: "queue", go: () => go(["queue", q.command]) })),
  ];
}

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const at = useSignal(0);
  const open = () => {
    text.value = "";
    at.value = 0;
    if (!dialog.current?.open) dialog.current?.showModal();
  };
  useEffect(() => onKey("Ctrl+K", open), []);
  const found = hits(text.value);
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
        Find <kbd>Ctrl K</kbd>
      </button>
      <dialog class="palette" ref={dialog} aria-label="Find" onClick={(e) => e.target === dialog.current && dialog.current?.close()}>
        <input
          type="text" placeholder="A queue, a page, or the id of a task" aria-label="Find a queue, a page or a task" role="combobox"
          aria-expanded="true" aria-controls="hits" aria-activedescendant={found[at.value] ? `hit${at.value}` : undefined} autocomplete="off" spellcheck={false}
          value={text.value} onInput={(e) => { text.value = e.currentTarget.value; at.value = 0; }} onKeyDown={press}
        />
        <ul id="hits" role="listbox" aria-label="Found">
          {found.slice(0, 12).map((h, i) => (
            <li key={h.what + h.name} id={`hit${i}`} role="option" aria-selected={i === at.value} onPointerMove={() => (at.value = i)} onClick={() => choose(h)}>
              {h.name} <span class="muted">{h.what}</span>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p class="muted pad">No queue or page has that in its name. A task is found by its whole id.</p>}
      </dialog>
    </>
  );
}

const keys: [string, string][] = [
  ["Ctrl K", "find a queue, a page or a task"],
  ...menu.map((p): [string, string] => [`g ${p.key}`, `go to ${p.name}`]),
  ["/", "filter the rows"],
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
