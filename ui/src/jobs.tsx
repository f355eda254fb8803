// What a person has the server do: asked first, with a count where many tasks are meant, then done in
// bounded requests, one after the other, as the command line does it.
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { count, plural } from "./format";
import { Problem } from "./parts";
import type { Task } from "./protocol";

export interface Found {
  matched?: number;
  sample?: Task[];
  cursor?: string;
}

export interface Step {
  done: number;
  /** How many tasks the server refused, and the sentence of one refusal. */
  refused?: number;
  why?: string;
  cursor?: string;
}

export interface Job {
  title: string;
  /** The word of the button, and what it did to a number of tasks: "replayed". */
  verb: string;
  done: string;
  /** What is counted, if not tasks. */
  what?: string;
  text?: ComponentChildren;
  danger?: boolean;
  /** How many tasks it would be about. */
  preview?: () => Promise<Found>;
  /** One request. It is repeated with the cursor of its answer until there is none. */
  step: (cursor?: string) => Promise<Step>;
  then?: () => void;
}

const job = signal<Job | null>(null);
const said = signal<{ text: string; bad: boolean } | null>(null);
let quiet = 0;

/** begin asks the person about a job. */
export const begin = (j: Job) => void (job.value = j);

/** say tells a sentence for some seconds. */
export function say(text: string, bad = false) {
  said.value = { text, bad };
  clearTimeout(quiet);
  quiet = window.setTimeout(() => (said.value = null), bad ? 15_000 : 6000);
}

/** now does a single request without a question, and tells what came of it. */
export async function now(request: Promise<unknown>, done: string): Promise<boolean> {
  try {
    await request;
    say(done);
    return true;
  } catch (e) {
    say((e as Error).message, true);
    return false;
  }
}

/** each makes a step of a job that sends one request for each of some ids. Refusals are counted. */
export function each(ids: string[], send: (id: string) => Promise<unknown>, size = 20): Job["step"] {
  return async (cursor) => {
    const from = Number(cursor ?? 0), to = Math.min(ids.length, from + size);
    const all = await Promise.allSettled(ids.slice(from, to).map(send));
    const bad = all.filter((r) => r.status === "rejected");
    return { done: all.length - bad.length, refused: bad.length, why: (bad[0]?.reason as Error)?.message, cursor: to < ids.length ? String(to) : undefined };
  };
}

export function Jobs() {
  const j = job.value;
  return (
    <>
      {j && <Dialog key={j.title} job={j} />}
      <div class="said" role="status">
        {said.value && (
          <p class={said.value.bad ? "bad" : ""}>
            {said.value.text} <button type="button" class="quiet" aria-label="Hide this message" onClick={() => (said.value = null)}>✕</button>
          </p>
        )}
      </div>
    </>
  );
}

function Dialog({ job: j }: { job: Job }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const found = useSignal<Found | null>(null);
  const problem = useSignal("");
  const state = useSignal<"asks" | "runs" | "over">("asks");
  const done = useSignal(0), refused = useSignal(0);
  const stopped = useRef(false), failed = useRef(false);

  useEffect(() => {
    dialog.current?.showModal();
    j.preview?.().then((f) => (found.value = f), (e: Error) => (problem.value = e.message));
    const warn = (e: BeforeUnloadEvent) => state.value === "runs" && e.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);

  const run = async () => {
    state.value = "runs";
    problem.value = "";
    let cursor: string | undefined;
    try {
      do {
        const s = await j.step(cursor);
        done.value += s.done;
        refused.value += s.refused ?? 0;
        if (s.why) problem.value = s.why;
        cursor = s.cursor;
      } while (cursor && !stopped.current);
    } catch (e) {
      problem.value = (e as Error).message;
      failed.current = true;
    }
    state.value = "over";
    j.then?.();
    // Whoever has closed the dialog meanwhile is told the count, too.
    if (!problem.value && !stopped.current || !dialog.current?.open) {
      dialog.current?.close();
      say(`${plural(done.value, j.what ?? "task")} ${j.done}${end()}`, !!problem.value);
    }
  };
  const end = () => `${refused.value ? `, ${count(refused.value)} refused` : ""}${stopped.current ? ", then stopped." : failed.current ? ", then it failed." : "."}`;

  const f = found.value;
  return (
    <dialog class="job" ref={dialog} aria-labelledby="job" onClose={() => { stopped.current = true; job.value = null; }}>
      <h2 id="job">{j.title}</h2>
      {j.text && <div class="text">{j.text}</div>}
      {j.preview && state.value === "asks" && !problem.value && (
        <p class="matched">
          {f ? <><b>{f.cursor ? "At least " : ""}{plural(f.matched ?? 0, "task")}</b> {(f.matched ?? 0) === 1 ? "fits" : "fit"} now.</> : "Counting …"}
        </p>
      )}
      {f?.sample && f.sample.length > 0 && state.value === "asks" && (
        <ul class="sample">
          {f.sample.slice(0, 3).map((t) => <li key={t.id} class="mono">{t.id.slice(-12)} {(t.error ?? t.payload).slice(0, 90)}</li>)}
        </ul>
      )}
      {state.value !== "asks" && (
        <p class="matched" role="status">
          <b>{count(done.value)}</b>{f?.matched ? ` of ${count(f.matched)}` : ""} {j.done}{state.value === "runs" ? " …" : end()}
        </p>
      )}
      {state.value === "runs" && <p class="muted">This page sends the requests. If you close it, the rest is not done.</p>}
      {problem.value && <Problem>{problem.value}</Problem>}
      <div class="buttons">
        {state.value === "asks" && (
          <button type="button" class={j.danger ? "main danger" : "main"} disabled={!!j.preview && (!f || f.matched === 0)} onClick={run}>{j.verb}</button>
        )}
        {state.value === "runs" && <button type="button" onClick={() => (stopped.current = true)}>Stop</button>}
        {state.value !== "runs" && <button type="button" onClick={() => dialog.current?.close()}>{state.value === "over" ? "Close" : "Leave it"}</button>}
      </div>
    </dialog>
  );
}
