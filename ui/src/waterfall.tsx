// The life of a task on one line of time: waiting, each delivery, the pauses between, now.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { span } from "./format";
import { serverNow } from "./live";
import { Time } from "./parts";
import type { ResultRecord, Task } from "./protocol";
import { href } from "./route";
import { causes, firstLine, stateOf, visible } from "./task";

interface Bar {
  name: string;
  from: number;
  to: number;
  tone: string;
  text: string;
  error?: string;
  /** The task that this line is about, if that is another one. */
  task?: string;
}

/** bars are the parts of the life of a task that the server remembers, in their order. */
function bars(t: Task, result: ResultRecord | undefined, now: number): Bar[] {
  const all: Bar[] = [];
  const over = t.lastKnownLocation === "NONE" || t.lastKnownLocation === "DLQ_SET";
  let at = Date.parse(t.createdAt);
  let before = 0;
  const wait = (to: number, first: boolean) => {
    if (to > at) all.push({ name: first ? "waiting" : "pause", from: at, to, tone: "wait", text: first ? "for a worker" : "before the next try" });
  };
  for (const h of t.history ?? []) {
    const to = Date.parse(h.to), who = h.by ? ` by ${visible(h.by)}` : "";
    if (!h.delivery || !h.from) {
      // What a person did between two deliveries, or the server after the last one.
      wait(to, before === 0);
      all.push({ task: h.callback, name: h.callback ? "webhook" : "a person", from: to, to, tone: "run", text: `${causes[h.cause] ?? h.cause}${who}` });
      at = to;
      continue;
    }
    const from = Date.parse(h.from);
    if (h.delivery > before + 1) {
      all.push({ name: "earlier", from: at, to: from, tone: "unknown", text: `${h.delivery - before - 1} earlier deliveries, of which nothing is kept` });
    } else {
      wait(from, before === 0);
    }
    const ended = h.exitCode !== undefined ? `, exit code ${h.exitCode}` : h.signal ? `, signal ${h.signal}` : "";
    all.push({ name: `delivery ${h.delivery}`, from, to, tone: "dead", text: `${h.workerId ? `${h.workerId}: ` : ""}${causes[h.cause] ?? h.cause}${who}${ended}`, error: h.error });
    at = to;
    before = h.delivery;
  }
  const last = Date.parse(t.updatedAt);
  if (stateOf(t) === "inProgress") {
    wait(last, before === 0);
    all.push({ name: `delivery ${t.deliveries}`, from: last, to: now, tone: "run", text: `${t.workerId ?? "a worker"} works on it` });
  } else if (over && last > at) {
    const end = result ? Date.parse(result.completedAt) : last;
    all.push({
      name: t.deliveries > before ? `delivery ${t.deliveries}` : "waiting", from: at, to: end, tone: t.status === "COMPLETED" ? "done" : "wait",
      text: t.deliveries > before ? `waiting and work together; ${t.workerId ?? "a worker"} ended it` : "until it ended",
    });
  } else if (!over) {
    wait(now, before === 0);
  }
  return all;
}

export function Waterfall({ task, result }: { task: Task; result?: ResultRecord }) {
  const tick = useSignal(0);
  const over = task.lastKnownLocation === "NONE" || task.lastKnownLocation === "DLQ_SET";
  useEffect(() => {
    if (over) return;
    const timer = setInterval(() => tick.value++, 1000);
    return () => clearInterval(timer);
  }, [over]);
  void tick.value;
  const all = bars(task, result, Math.max(serverNow(), Date.parse(task.updatedAt)));
  const from = Date.parse(task.createdAt), length = Math.max(1, (all.at(-1)?.to ?? from) - from);
  const x = (ms: number) => `${Math.min(99.6, ((ms - from) / length) * 100)}%`;
  return (
    <ol class="waterfall" aria-label="What happened, in its order">
      {all.map((b, i) => (
        <li key={i} class={b.tone}>
          <span class="what">{b.name}</span>
          <span class="lane"><i style={{ left: x(b.from), width: `max(3px, ${((b.to - b.from) / length) * 100}%)` }} /></span>
          <span class="long">{span(b.to - b.from)}</span>
          <span class="text"><Time ms={b.from} /> {b.text}{b.task && <>: <a href={href(["task", b.task])}>see its attempts</a></>}{b.error && <b class="bad">{firstLine(b.error)}</b>}</span>
        </li>
      ))}
    </ol>
  );
}
