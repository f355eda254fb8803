// All queues.
import { useEffect, useRef } from "preact/hooks";
import { queues } from "../board";
import { plural } from "../format";
import { onKey } from "../keys";
import { QueueTable } from "../queuetable";
import { param, setQuery } from "../route";

export function Queues() {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => onKey("/", () => field.current?.focus()), []);
  const filter = param("q");
  return (
    <section class="block">
      <header>
        <h1>Queues</h1>
        <input
          ref={field} type="search" placeholder="Filter ( / )" aria-label="Filter queues by name" value={filter}
          onInput={(e) => setQuery({ q: e.currentTarget.value })} onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()}
        />
        <span class="muted">{plural(queues.value.filter((q) => q.command.includes(filter)).length, "queue")}</span>
      </header>
      <QueueTable filter={filter} sort={param("sort", "-ready")} onSort={(sort) => setQuery({ sort })} />
    </section>
  );
}
