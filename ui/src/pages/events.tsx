// What happens, as it happens: one line for each transition of a task.
import { signal, useSignal } from "@preact/signals";
import type { ComponentChild } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count, shortId, span } from "../format";
import { onKey } from "../keys";
import { changed, watch, welcome } from "../live";
import { Empty, Shape, Time, type StateName } from "../parts";
import type { EventFrame, GapFrame, Positions } from "../protocol";
import { href, param, setQuery } from "../route";
import { InSight } from "../rows";

/** A line is drawn once: nothing in it changes. */
type Line = (EventFrame | GapFrame) & { key: string; drawn?: ComponentChild };

const most = 400;
const perSecond = 30;
const shown = signal<Line[]>([]);
/** How many events were left out because more than perSecond came. */
const sampled = signal(0);

const places: Record<string, StateName> = { PENDING_LIST: "ready", DELAYED_ZSET: "delayed", INPROG_SET: "inProgress", DLQ_SET: "dead", LIMITED: "limited" };

const shapeOf = (e: EventFrame): StateName =>
  places[e.to ?? ""] ?? (e.status === "COMPLETED" ? "done" : e.status === "FAILED" ? "failed" : "cancelled");

const wordOf: Record<string, string> = {
  enqueue: "came in", due: "is due", grant: "given to a worker", result: "ended", nack: "failed", abandon: "given back", release: "released",
  lease_expired: "lease ran out", timeout: "ran for too long", session_gone: "session ended", undelivered: "did not arrive", suspect: "goes after others",
  cancel: "cancelled", expired: "expired", retention: "removed after its retention", replay: "replayed", cleanup: "removed", purge: "purged",
  dlq_bound: "removed: too many dead letters", run_now: "run now", move: "other priority", queue_deleted: "removed with its queue", unreadable: "unreadable",
  taken_back: "taken back", key_full: "its key is at its limit", key_free: "its key has room",
};

const list = (name: string) => param(name).split(",").map((s) => s.trim()).filter(Boolean);

export function Events() {
  const commands = list("commands"), causes = list("causes"), filter = commands.join() + "/" + causes.join();
  const problem = useSignal("");
  const field = useRef<HTMLInputElement>(null), body = useRef<HTMLTableSectionElement>(null);
  useEffect(() => onKey("/", () => field.current?.focus()), []);
  useEffect(() => {
    let lines: Line[] = [], came: Line[] = []; // what is shown, and what came since
    let from: Record<string, number> | undefined; // what the page has of each shard, to go on there after a loss
    let of: string | undefined;
    let left = 0;
    sampled.value = 0;
    shown.value = [];
    problem.value = "";
    const add = (f: EventFrame | GapFrame, key: string) => {
      came.push({ ...f, key });
      if (came.length > 2 * most) came = came.slice(-most); // nobody looks
      changed(show);
    };
    const show = () => {
      lines = [...came.reverse(), ...lines].slice(0, most);
      came = [];
      shown.value = lines;
    };
    return watch("events", {
      ask: () => ({
        id: "events", kind: "events", commands: commands.length ? commands : undefined, causes: causes.length ? causes : undefined,
        maxPerSecond: perSecond, from: from && ({ ...from } as Positions), creationId: from && of,
      }),
      take: (f) => {
        if (f.type === "snapshot") {
          from = { ...(f.at as Record<string, number>) };
          of = welcome.value?.creationId;
        } else if (f.type === "event") {
          if (from) from[f.shard] = f.n;
          add(f, `${f.shard}-${f.n}`);
        } else if (f.type === "gap") {
          if (from) from[f.shard] = f.to;
          if (f.reason === "sampled") left += f.missed;
          else add(f, `gap-${f.shard}-${f.to}`);
          changed(() => (sampled.value = left));
        } else if (f.type === "error") {
          problem.value = f.error;
        }
      },
    });
  }, [filter]);

  return (
    <>
      <div class="title">
        <h1>Live</h1>
        <input
          ref={field} type="search" placeholder="Queues, such as mail.*  ( / )" aria-label="Only these queues, with commas" value={param("commands")}
          onChange={(e) => setQuery({ commands: e.currentTarget.value })}
        />
        <input
          type="search" placeholder="Causes, such as nack,grant" aria-label="Only these causes, with commas" value={param("causes")} list="causes"
          onChange={(e) => setQuery({ causes: e.currentTarget.value })}
        />
        <datalist id="causes">{Object.keys(wordOf).map((c) => <option key={c} value={c} />)}</datalist>
        <span class={sampled.value ? "warn" : "muted"}>
          {sampled.value ? `${count(sampled.value)} not shown: more than ${perSecond} in a second` : `Up to ${perSecond} in a second. Space holds the list.`}
        </span>
      </div>
      {problem.value && <p class="problem" role="alert">{problem.value}</p>}
      {shown.value.length === 0 ? <Empty title="Nothing has happened since this page is open" /> : (
        <div class="scroll">
          <table class="rows events" aria-label="Events, the newest first">
            <InSight rows={shown.value} height={28} body={body} draw={(l) => (l.drawn ??= l.type === "gap" ? <Gap key={l.key} of={l} /> : <Row key={l.key} of={l} />)} />
          </table>
        </div>
      )}
    </>
  );
}

function Row({ of: e }: { of: EventFrame }) {
  const at = Date.parse(e.at);
  return (
    <tr>
      <td><Time ms={at} /><span class="muted">.{e.at.slice(20, 23)}</span></td>
      <td><Shape of={shapeOf(e)} /> {wordOf[e.cause] ?? e.cause}</td>
      <td class="name"><a href={href(["queue", e.command])}>{e.command}</a></td>
      <td class="mono"><a href={href(["task", e.task])} title={e.task}>…{shortId(e.task)}</a></td>
      <td class="wide">{e.worker}</td>
      <td class="n">{e.from ? <span title="How long it was where it came from">after {span(e.spentMs)}</span> : ""}</td>
      <td class="n wide">{e.attempts > 0 && <span class="bad">failed {e.attempts} ×</span>}</td>
    </tr>
  );
}

const reasons = { evicted: "the server remembers them no more", restarted: "the server has restarted", slow: "this page reads too slowly", sampled: "too many in a second" };

const Gap = ({ of: g }: { of: GapFrame }) => (
  <tr class="gap">
    <td colSpan={7}>{count(g.missed)} {g.missed === 1 ? "event" : "events"} of shard {g.shard} not shown: {reasons[g.reason]}</td>
  </tr>
);
