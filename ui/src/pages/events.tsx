// What happens, as it happens: one line for each transition of a task.
import { signal, useSignal } from "@preact/signals";
import type { ComponentChild } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count, moment, shortId, span } from "../format";
import { onKey } from "../keys";
import { changed, serverNow, watch, welcome } from "../live";
import { Empty, Shape, shapePath, type StateName } from "../parts";
import type { EventFrame, GapFrame, Positions } from "../protocol";
import { href, param, setQuery } from "../route";
import { InSight, Still } from "../rows";

/** A line is drawn once: nothing in it changes. Those that are shown are counted. */
type Line = (EventFrame | GapFrame) & { count: number; key?: number; drawn?: ComponentChild };

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
    let lines: Line[] = [], came: (EventFrame | GapFrame)[] = [], counted = 0; // what is shown, and what came since
    let from: Record<string, number> | undefined; // what the page has of each shard, to go on there after a loss
    let of: string | undefined;
    let left = 0;
    sampled.value = 0;
    shown.value = [];
    problem.value = "";
    const add = (f: EventFrame | GapFrame) => {
      came.push(f);
      if (came.length > 2 * most) came = came.slice(-most); // nobody looks
      changed(show);
    };
    const show = () => {
      lines = [...came.map((f): Line => ({ ...f, count: counted++ })).reverse(), ...lines].slice(0, most);
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
          add(f);
        } else if (f.type === "gap") {
          if (from) from[f.shard] = f.to;
          if (f.reason === "sampled") left += f.missed;
          else add(f);
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
            <InSight rows={shown.value} height={28} body={body} draw={draw} />
          </table>
        </div>
      )}
    </>
  );
}

/** draw gives a new line the elements of the line that is drawn no more: to make and to drop thirty in a second is dear. */
function draw(l: Line, _: number, drawn: number): ComponentChild {
  const key = l.count % drawn;
  if (l.key !== key) l.drawn = undefined;
  l.key = key;
  return (l.drawn ??= l.type === "gap" ? <Gap key={key} of={l} /> : <Row key={key} of={l} />);
}

/** Row is drawn once for its elements, and for each event that they get its texts are set in them. */
function Row({ of: e }: { of: EventFrame }) {
  const line = useRef<EventLine>(null);
  line.current ??= new EventLine();
  line.current.show(e);
  return line.current.drawn;
}

class EventLine {
  private e: EventFrame | undefined;
  /** The elements that have texts, in the order of the row. To look for them in the row each time is dear. */
  private parts: Element[] = [];
  private of: StateName = "ready";
  readonly drawn = (
    <Still>
      <tr ref={(tr) => this.hold(tr)}>
        <td><span /><span class="muted" /></td>
        <td><Shape of="ready" /> <span /></td>
        <td class="name"><a /></td>
        <td class="mono"><a /></td>
        <td class="wide"><span /></td>
        <td class="n" title="How long it was where it came from"><span /></td>
        <td class="n wide bad"><span /></td>
      </tr>
    </Still>
  );

  show(e: EventFrame) {
    this.e = e;
    this.write();
  }

  private hold(tr: HTMLElement | null) {
    this.parts = tr ? [...tr.querySelectorAll("span,a,svg")] : [];
    this.write();
  }

  private write() {
    const e = this.e, [time, part, shape, cause, queue, task, worker, after, failed] = this.parts;
    if (!e || !time) return;
    time.setAttribute("title", e.at);
    text(time, moment(Date.parse(e.at), serverNow()));
    text(part!, `.${e.at.slice(20, 23)}`);
    const of = shapeOf(e);
    if (of !== this.of) {
      this.of = of;
      shape!.setAttribute("class", `shape ${of}`);
      shape!.firstElementChild!.setAttribute("d", shapePath(of));
    }
    text(cause!, wordOf[e.cause] ?? e.cause);
    if (text(queue!, e.command)) queue!.setAttribute("href", href(["queue", e.command]));
    text(task!, `…${shortId(e.task)}`);
    task!.setAttribute("href", href(["task", e.task]));
    task!.setAttribute("title", e.task);
    text(worker!, e.worker ?? "");
    text(after!, e.from ? `after ${span(e.spentMs)}` : "");
    text(failed!, e.attempts > 0 ? `failed ${e.attempts} ×` : "");
  }
}

/** text sets the text of an element that has nothing else in it, and reports whether it was another one. */
function text(of: Element, now: string): boolean {
  const had = of.firstChild;
  if (had?.nodeValue === now) return false;
  had ? (had.nodeValue = now) : of.append(now);
  return true;
}

const reasons = { evicted: "the server remembers them no more", restarted: "the server has restarted", slow: "this page reads too slowly", sampled: "too many in a second" };

const Gap = ({ of: g }: { of: GapFrame }) => (
  <tr class="gap">
    <td colSpan={7}>{count(g.missed)} {g.missed === 1 ? "event" : "events"} of shard {g.shard} not shown: {reasons[g.reason]}</td>
  </tr>
);
