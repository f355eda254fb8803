// One task: where it is and why, what happened to it, what it has and gave.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ask, Refused } from "../api";
import { find } from "../board";
import { takeBack } from "../bulk";
import { Labels } from "../filter";
import { bytes } from "../format";
import { begin, each, now, say } from "../jobs";
import { exact } from "../json";
import { useLoad } from "../load";
import { api, serverNow, watch } from "../live";
import { Empty, Problem, State, Time } from "../parts";
import type { Artifact, ResultRecord, Task as TaskType } from "../protocol";
import { Output, Reports, Said } from "../reports";
import { go, href } from "../route";
import { F } from "../series";
import { Snippet } from "../snippet";
import { firstLine, newTask, stateOf, visible, why } from "../task";
import { Tree } from "../tree";
import { Waterfall } from "../waterfall";

interface Known {
  task: TaskType;
  result?: ResultRecord;
}

async function read(id: string, signal: AbortSignal): Promise<Known> {
  const task = await ask("GET /tasks/{id}", { id, signal });
  const over = task.lastKnownLocation === "NONE" || task.lastKnownLocation === "DLQ_SET";
  if (!over) return { task };
  const result = await ask("GET /tasks/{id}/result", { id, signal }).then((r) => r.result, () => undefined);
  return { task, result };
}

export function Task({ id }: { id: string }) {
  const known = useLoad((signal) => read(id, signal), [id]);
  const again = useRef(known.again), reports = useMemo(() => new Reports(), []);
  again.current = known.again;
  useEffect(() => {
    let timer = 0;
    const stop = watch("task", {
      ask: () => ({ id: "task", kind: "task", taskId: id }),
      take: (f) => {
        reports.take(f);
        if (f.type !== "event" && (f.type !== "gap" || f.of)) return;
        clearTimeout(timer);
        timer = window.setTimeout(() => again.current()); // the events of one message are read once
      },
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [id]);
  if (!known.value) {
    return known.error ? <Empty title="This task is not to be seen">{known.error}</Empty> : <p class="muted pad" role="status">Reading the task.</p>;
  }
  const { task: t, result } = known.value, said = reports.progress.value ?? t.progress, printed = t.printed || reports.output.value.length > 0;
  return (
    <>
      <div class="title">
        <h1>
          <State of={stateOf(t)} /> <span class="mono">{t.id}</span>
        </h1>
        <a href={href(["queue", t.command])}>{t.command}</a>
        <Actions task={t} />
      </div>
      {known.error && <Problem>{known.error}</Problem>}
      <p class="why">{why(t, serverNow(), find(t.command)?.shown[F.runP99])}</p>
      {t.error && <p class="error mono">{visible(t.error)}</p>}
      {said && <Said of={said} now={stateOf(t) === "inProgress" ? t.deliveries : 0} />}
      <section class="card">
        <Waterfall task={t} result={result} />
      </section>
      {printed && "payload" in t && <Output of={reports} />}
      <div class="sides">
        <div>
          {"payload" in t && <Tree title="Payload" text={t.payload} />}
          {"payload" in t && t.payload.length < 5000 && <Snippet of={t} />}
          {result?.artifacts?.length ? <Artifacts of={result.artifacts} id={t.id} /> : null}
          {result?.result !== undefined && <Tree title="Result" text={JSON.stringify(result.result)} />}
        </div>
        <Facts task={t} />
      </div>
    </>
  );
}

/** Artifacts are files of the server, and links that the worker gave: only those of the web lead anywhere. */
function Artifacts({ of: all, id }: { of: Artifact[]; id: string }) {
  return (
    <section class="card artifacts">
      <h2>Artifacts</h2>
      <ul>
        {all.map((a) => {
          const to = a.file ? new URL(`tasks/${id}/artifacts/${encodeURIComponent(a.name)}`, api).href : /^https?:\/\//i.test(a.url) ? a.url : undefined;
          return (
            <li key={a.name}>
              {to ? <a href={to} rel="noreferrer noopener" target={a.file ? undefined : "_blank"}>{visible(a.name)}</a> : <>{visible(a.name)} <span class="mono">{firstLine(a.url)}</span></>}
              <span class="muted">{[a.contentType, a.sizeBytes !== undefined && bytes(a.sizeBytes), !a.file && "elsewhere"].filter(Boolean).join(" · ")}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Facts({ task: t }: { task: TaskType }) {
  const time = (name: string, at?: string) => (at ? [[name, <Time ms={Date.parse(at)} />] as const] : []);
  const all = [
    ["priority", t.priority],
    ["failed", `${t.attempts} of ${t.maxAttempts}`],
    ["deliveries", t.deliveries],
    ...(t.workerId ? [["worker", <a href={href(["worker", t.workerId])}>{visible(t.workerId)}</a>] as const] : []),
    ...time("created", t.createdAt), ...time("changed", t.updatedAt), ...time("due", t.visibleAt),
    ...time("lease until", t.leaseUntil), ...time("run until", t.runUntil), ...time("expires", t.expiresAt),
    ...(t.timeoutSeconds ? [["time limit", `${t.timeoutSeconds} s`] as const] : []),
    ...(t.labels ? [["labels", <Labels of={t.labels} />] as const] : []),
    ...(t.concurrencyKey ? [["key", visible(t.concurrencyKey)] as const] : []),
    ...(t.webhook ? [["webhook", visible(t.webhook)] as const] : []),
    ["tenant", t.tenantId],
    ...(t.traceParent ? [["trace", visible(t.traceParent)] as const] : []),
  ] as const;
  return (
    <section class="card facts">
      <h2>Facts</h2>
      <dl>
        {all.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p><a href={new URL(`tasks/${t.id}`, api).href}>As JSON</a></p>
    </section>
  );
}

function Actions({ task: t }: { task: TaskType }) {
  const redeliver = () => ask("POST /admin/tasks/{id}/redeliver", { id }).then((a) => {
    say("It is posted again.");
    go(["task", a.id]);
  }, (e: Error) => say(e.message, true));
  const id = t.id, s = stateOf(t), waits = s === "ready" || s === "limited" || s === "delayed";
  return (
    <div class="buttons">
      {s === "delayed" && <button type="button" onClick={() => now(ask("POST /admin/tasks/{id}/run", { id }), "It is ready.")}>Run now</button>}
      {s === "dead" && <button type="button" class="main" onClick={() => now(ask("POST /admin/tasks/{id}/replay", { id }), "It is ready again.")}>Replay</button>}
      {waits && (
        <select
          aria-label="Priority" value={t.priority}
          onChange={(e) => now(ask("POST /admin/tasks/{id}/move", { id }, { toPriority: Number(e.currentTarget.value) }), "It has the new priority.")}
        >
          {[...Array(10).keys()].map((p) => <option key={p} value={p}>priority {p}</option>)}
        </select>
      )}
      {s === "inProgress" && (
        <button
          type="button" onClick={() => begin({ ...takeBack, title: `Take the task back from ${t.workerId ?? "its worker"}`, step: each([id], takeBack.one!) })}
        >
          Take back
        </button>
      )}
      {(waits || s === "inProgress") && <button type="button" onClick={() => now(ask("POST /tasks/{id}/cancel", { id }), "It is cancelled.")}>Cancel</button>}
      {t.command === "codeq.webhook" ? <button type="button" onClick={redeliver}>Post again</button> : <Copy task={t} />}
    </div>
  );
}

/** Copy posts a new task like this one, after the person has changed what is to be changed. */
export function Copy({ task }: { task: Partial<TaskType> & { command: string } }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const payload = useSignal("");
  const problem = useSignal("");
  const open = () => {
    payload.value = task.payload ?? "{}";
    problem.value = "";
    dialog.current?.showModal();
  };
  const send = async () => {
    try {
      const made = await ask("POST /tasks", {}, newTask(task, exact(payload.value)));
      dialog.current?.close();
      say("The new task is posted.");
      go(["task", made.id]);
    } catch (e) {
      problem.value = e instanceof Refused ? e.message : `The payload is no JSON: ${(e as Error).message}`;
    }
  };
  return (
    <>
      <button type="button" onClick={open}>{!task.id ? "Enqueue" : task.lastKnownLocation === "DLQ_SET" ? "Edit and replay as new" : "Copy as new"}</button>
      <dialog ref={dialog} aria-labelledby="copy">
        <h2 id="copy">A new task for {task.command}</h2>
        <textarea class="mono" aria-label="Payload, any JSON" rows={12} cols={70} spellcheck={false} value={payload.value} onInput={(e) => (payload.value = e.currentTarget.value)} />
        {task.id && <p class="muted">The task that you see stays as it is{task.lastKnownLocation === "DLQ_SET" ? ": a dead letter, until somebody removes it or its time is over" : ""}.</p>}
        {problem.value && <Problem>{firstLine(problem.value)}</Problem>}
        <div class="buttons">
          <button type="button" class="main" onClick={send}>Post it</button>
          <button type="button" onClick={() => dialog.current?.close()}>Leave it</button>
        </div>
      </dialog>
    </>
  );
}
