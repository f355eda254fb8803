// All queues.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ask } from "../api";
import { isSystem, own, queues, type Queue } from "../board";
import { plural } from "../format";
import { onKey } from "../keys";
import { useLoad } from "../load";
import { welcome } from "../live";
import { ChosenQueues, QueueActions } from "../queueactions";
import { QueueTable } from "../queuetable";
import { href, param, setQuery } from "../route";
import { room, useSessions } from "./workers";

export function Queues() {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => onKey("/", () => field.current?.focus()), []);
  useSessions();
  const known = useLoad((signal) => ask("GET /admin/queues", { signal }), [welcome.value, queues.value.length]);
  const picked = useSignal<ReadonlySet<string>>(new Set()), acting = useSignal<Queue | null>(null);
  const filter = param("q"), flat = param("flat"), system = !!param("system"), fit = (system ? queues : own).value.filter((q) => q.command.includes(filter));
  const chosen = fit.filter((q) => picked.value.has(q.command));
  const spread = new Set(known.value?.queues.filter((q) => q.spread).map((q) => q.command));
  return (
    <section class="block">
      <header>
        <h1>Queues</h1>
        <span class="muted">{plural(fit.length, "queue")}</span>
        {chosen.length > 0 && <ChosenQueues of={chosen} none={() => (picked.value = new Set())} />}
        {own.value.length < queues.value.length && (
          <button type="button" aria-pressed={system} title="Queues of the server itself, such as that of webhooks" onClick={() => setQuery({ system: system ? undefined : 1 })}>
            Of the server
          </button>
        )}
        <button type="button" aria-pressed={!flat} title="Queues whose names begin alike stand together" onClick={() => setQuery({ flat: flat ? undefined : 1 })}>Groups</button>
        <input
          ref={field} type="search" placeholder="Filter ( / )" aria-label="Filter queues by name" value={filter}
          onInput={(e) => setQuery({ q: e.currentTarget.value })} onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()}
        />
      </header>
      <QueueTable
        filter={filter} system={system} sort={param("sort", "-ready")} onSort={(sort) => setQuery({ sort })} picked={picked}
        beside={{ spread, room: room.value, act: (q) => (acting.value = q) }}
      />
      {acting.value && <Act of={acting.value} close={() => (acting.value = null)} />}
    </section>
  );
}

function Act({ of: q, close }: { of: Queue; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="act" onClose={(e) => e.target === dialog.current && close()} onClick={(e) => e.target === dialog.current && dialog.current?.close()}>
      <h2 id="act">{q.command}</h2>
      <div class="buttons">
        <QueueActions of={q} />
        {!isSystem(q.command) && <a class="button" href={href(["queue", q.command], { tab: "settings" })}>Settings</a>}
        <button type="button" class="quiet" onClick={() => dialog.current?.close()}>Close</button>
      </div>
    </dialog>
  );
}
