// What the server says of itself once a second, and "Needs you": its sentences, the worst first.
import { signal, useSignal } from "@preact/signals";
import { ask } from "./api";
import { settle } from "./board";
import { now } from "./jobs";
import { changed, watch } from "./live";
import { State, type StateName } from "./parts";
import type { Needs as All, Server } from "./protocol";
import { href } from "./route";

/** server and needs are undefined until the server has said something. */
export const server = signal<Server | undefined>(undefined);
export const needs = signal<All | undefined>(undefined);

export function begin() {
  watch("server", {
    ask: () => ({ id: "server", kind: "server" }),
    take: (f) => {
      if (f.type !== "snapshot" && f.type !== "tick") return;
      changed(() => {
        server.value = f.server;
        needs.value = f.needs;
      });
    },
  });
}

const shapes: Record<All[number]["severity"], [StateName, string]> = {
  critical: ["dead", "critical"], warning: ["failed", "warning"], notice: ["live", "notice"],
};

/** what a person can do about it first. */
const verbs: Record<All[number]["reason"], string> = {
  no_worker: "See its workers", growing: "See the queue", slow: "See them", dead: "See why, and replay", paused: "Resume", set_aside: "See its tasks", disk: "See the server",
};

/** counted leads to the rows that a sentence counts, where to what a person can do about it. */
function counted(n: All[number]): string {
  if (!n.command) return href(["system"]);
  if (n.state === "dlq") return href(["queue", n.command], { tab: "dead" });
  return href(["queue", n.command], n.state ? { tab: "tasks", state: n.state } : {});
}

const where = (n: All[number]) =>
  n.command && n.reason === "no_worker" ? href(["queue", n.command], { tab: "workers" }) : n.command && n.reason === "growing" ? href(["queue", n.command]) : counted(n);

const idOf = (n: All[number]) => n.reason + n.tenant + n.command;

/** What was shown last, in its order, so that no sentence moves away from who is about to click. */
let order: string[] = [], shown = new Map<string, All[number]>();

/** steady puts sentences as they were: while the pointer is on them all of them, with those that are over, else those of one severity. New ones are below. */
function steady(now: All, held: boolean): All {
  const known = new Set(now.map(idOf)), all = held ? [...now, ...order.filter((id) => !known.has(id)).map((id) => shown.get(id)!)] : now;
  shown = new Map(all.map((n) => [idOf(n), n]));
  const places = new Map(order.map((id, i) => [id, i])), severities = Object.keys(shapes);
  const ranked = all.map((n) => ({ n, id: idOf(n), rank: held ? 0 : severities.indexOf(n.severity), place: places.get(idOf(n)) ?? 1e9 }));
  ranked.sort((a, b) => a.rank - b.rank || a.place - b.place);
  order = ranked.map((r) => r.id);
  return ranked.map((r) => r.n);
}

export function Needs() {
  const held = useSignal(false);
  if (!needs.value) return null;
  const all = steady(needs.value, held.value), known = new Set(needs.value.map(idOf));
  if (all.length === 0) {
    return <p class="needs none"><State of="done" word="Nothing needs you: every queue has workers, nothing is dead, and the disk has room." /></p>;
  }
  return (
    <section class="needs" aria-label="Needs you" onPointerEnter={() => (held.value = true)} onPointerLeave={() => (held.value = false)}>
      <h2>Needs you</h2>
      <ol>
        {all.slice(0, 8).map((n) => (
          <li key={idOf(n)} class={known.has(idOf(n)) ? n.severity : "over"}>
            <State of={shapes[n.severity][0]} word={shapes[n.severity][1]} />
            <a href={counted(n)}>{n.sentence}</a>
            {!known.has(idOf(n)) ? <span>over</span> : n.reason === "paused" && n.command
              ? <button type="button" onClick={() => now(ask("POST /admin/queues/{command}/resume", { command: n.command }).then(settle), `${n.command} goes on.`)}>Resume</button>
              : <a class="button" href={where(n)}>{verbs[n.reason]}</a>}
          </li>
        ))}
      </ol>
      {all.length > 8 && <p class="muted">And {all.length - 8} more, which are less bad.</p>}
    </section>
  );
}
