// Dead letters, grouped by the shape of their error.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ask } from "../api";
import { loaded, queues, type Queue } from "../board";
import { count, moment, plural } from "../format";
import { begin, type Step } from "../jobs";
import { changed, changesOf, exact, type Change } from "../json";
import { serverNow } from "../live";
import { useLoad } from "../load";
import { Empty, Problem, Spark, Time } from "../parts";
import type { Answers } from "../protocol";
import { href } from "../route";
import { F } from "../series";
import { newTask, visible } from "../task";

type Reason = Answers["GET /admin/queues/{command}/dlq/reasons"]["reasons"][number];

interface Group extends Reason {
  command: string;
}

export function Dead() {
  if (!loaded.value) return <p class="muted pad" role="status">Waiting for the first figures.</p>;
  const with_ = queues.value.filter((q) => q.row.value[F.dead]! > 0);
  return (
    <>
      <div class="title">
        <h1>Dead letters</h1>
        <span class="muted">{plural(with_.reduce((n, q) => n + q.row.value[F.dead]!, 0), "task")} in {plural(with_.length, "queue")}</span>
      </div>
      <Groups queues={with_} />
    </>
  );
}

/** fixed is the longest part of a shape in which nothing was folded, by which its tasks are found. */
export function fixed(shape: string): string {
  return shape.split(/#|"…"/).map((s) => s.trim()).reduce((a, b) => (b.length > a.length ? b : a), "");
}

export function Groups({ queues: all }: { queues: Queue[] }) {
  const groups = useSignal<Group[] | null>(null), problem = useSignal(""), readAt = useSignal(0), partial = useSignal(0);
  const names = all.map((q) => q.command).join();
  const read = async (signal?: AbortSignal) => {
    const found: Group[] = [];
    let older = 0;
    problem.value = "";
    for (const command of names.split(",").filter(Boolean)) {
      try {
        const a = await ask("GET /admin/queues/{command}/dlq/reasons", { command, signal, query: { limit: 2000 } });
        found.push(...a.reasons.map((r) => ({ ...r, command })));
        if (a.cursor) older++;
      } catch (e) {
        if ((e as Error).name === "AbortError") return;
        problem.value = (e as Error).message;
      }
    }
    groups.value = found.sort((a, b) => b.count - a.count);
    partial.value = older;
    readAt.value = serverNow();
  };
  useEffect(() => {
    const off = new AbortController();
    void read(off.signal);
    return () => off.abort();
  }, [names]);
  const counted = all.reduce((n, q) => n + q.row.value[F.dead]!, 0);
  if (counted === 0) return <Empty title="No dead letters">Every task that failed is tried again, or somebody has dealt with it.</Empty>;
  return (
    <section>
      <div class="bar">
        <span class="muted">
          {readAt.value > 0 && `as of ${moment(readAt.value)}`}
          {partial.value > 0 && `: the newest 2,000 of ${partial.value === 1 ? "a queue" : `${partial.value} queues`} that have more`}
        </span>
        <button type="button" onClick={() => read()}>Read again</button>
      </div>
      {problem.value && <Problem>{problem.value}</Problem>}
      <ul class="groups">
        {groups.value?.map((g) => <GroupRow key={g.command + g.cause + g.error} g={g} named={all.length > 1} again={() => read()} />)}
      </ul>
    </section>
  );
}

/** most are the words that occur most often, with their number. */
function most(words: (string | undefined)[]): [string, number][] {
  const all = new Map<string, number>();
  for (const w of words) if (w) all.set(w, (all.get(w) ?? 0) + 1);
  return [...all].sort((a, b) => b[1] - a[1]).slice(0, 6);
}

/** Details show what the newest tasks of a group have in common. */
function Details({ g }: { g: Group }) {
  const { command, cause } = g;
  const known = useLoad((signal) => ask("GET /admin/queues/{command}/tasks", { command, signal, query: { state: "dlq", cause, error: fixed(g.error), limit: 100 } }), [g.newestTaskId]);
  const all = known.value?.tasks;
  if (!all?.length) return <p class="muted">{known.error ?? (all ? "It has no task any more." : "Reading its newest tasks.")}</p>;
  const times = all.map((t) => Date.parse(t.updatedAt)), first = Math.min(...times), length = Math.max(1, Math.max(...times) - first);
  const values = new Array<number>(60).fill(0);
  for (const ms of times) values[Math.min(59, Math.floor(((ms - first) / length) * 60))]!++;
  return (
    <div class="details">
      <p>{known.value?.cursor ? `The newest ${all.length} ended` : "They ended"} between <Time ms={first} /> and <Time ms={first + length} /></p>
      <Spark values={values} tone="dead" />
      <p><span class="muted">Workers</span> {most(all.map((t) => t.workerId)).map(([w, n]) => <><a href={href(["find"], { worker: w, state: "dlq" })}>{w}</a> × {n} </>)}</p>
      <p class="labels">
        <span class="muted">Labels</span> {most(all.flatMap((t) => Object.entries(t.labels ?? {}).map(([k, v]) => `${k}=${v}`))).map(([l, n]) => (
          <><a href={href(["find"], { label: l, state: "dlq" })}>{visible(l)}</a>× {n} </>
        ))}
      </p>
    </div>
  );
}

function GroupRow({ g, named, again }: { g: Group; named: boolean; again: () => void }) {
  const open = useSignal(false);
  const text = fixed(g.error), command = g.command, cause = g.cause;
  const filter = { cause, error: text || undefined };
  const where = <>
    {text ? <>All dead letters of <b>{command}</b> with the cause <b>{cause.replaceAll("_", " ")}</b> whose error contains <q class="mono">{visible(text)}</q>.</>
      : <>This group has no text of its own, so it is all dead letters of <b>{command}</b> with the cause <b>{cause.replaceAll("_", " ")}</b>.</>}
  </>;
  const replay = () => begin({
    title: `Replay a group of ${command}`, verb: "Replay", done: "replayed", text: <p>{where} Each is ready again, with all its attempts.</p>, then: again,
    preview: () => ask("POST /admin/queues/{command}/dlq/replay", { command }, { ...filter, dryRun: true }),
    step: async (cursor) => {
      const a = await ask("POST /admin/queues/{command}/dlq/replay", { command }, { ...filter, limit: 500, cursor });
      return { done: a.replayed ?? 0, cursor: a.cursor };
    },
  });
  const purge = () => begin({
    title: `Remove a group of ${command} for ever`, verb: "Remove", done: "removed", danger: true, text: <p>{where} They are gone then, with their results and history.</p>, then: again,
    preview: () => ask("DELETE /admin/queues/{command}/dlq", { command, query: { ...filter, dryRun: true } }),
    step: async (cursor) => {
      const a = await ask("DELETE /admin/queues/{command}/dlq", { command, query: { ...filter, limit: 500, cursor } });
      return { done: a.purged ?? 0, cursor: a.cursor };
    },
  });
  return (
    <li>
      <strong class="n">{count(g.count)}</strong>
      <div>
        <p class="mono shape-of">{visible(g.error) || <span class="muted">no error text</span>}</p>
        <p class="muted">
          {named && <><a href={href(["queue", command], { tab: "dead" })}>{command}</a> · </>}
          {g.cause.replaceAll("_", " ")} · newest <Time ms={Date.parse(g.newestEndedAt)} /> · <a href={href(["task", g.newestTaskId])}>see it</a>
          {g.example && g.example !== g.error && <> · <span class="mono">{visible(g.example.slice(0, 200))}</span></>}
        </p>
        {open.value && <Details g={g} />}
      </div>
      <div class="buttons">
        <button type="button" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>Details</button>
        <a class="button" href={href(["queue", command], { tab: "tasks", state: "dlq", error: text })}>Its tasks</a>
        <button type="button" class="main" onClick={replay}>Replay</button>
        <EditGroup g={g} filter={filter} where={where} />
        <button type="button" onClick={purge}>Remove</button>
      </div>
    </li>
  );
}

/** hash tells edits apart. */
const hash = (text: string) => [...text].reduce((h, c) => Math.imul(h ^ c.codePointAt(0)!, 16_777_619) >>> 0, 2_166_136_261).toString(36);

const shown = (v: unknown) => (v === undefined ? "nothing" : visible(JSON.stringify(v).slice(0, 200)));

/** EditGroup posts each task of a group anew, with the changes that a person made in the payload of the newest. */
function EditGroup({ g, filter, where }: { g: Group; filter: { cause: Group["cause"]; error?: string }; where: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null), payload = useSignal(""), first = useSignal<unknown>(undefined), problem = useSignal("");
  const command = g.command;
  const open = async () => {
    problem.value = payload.value = "";
    dialog.current?.showModal();
    try {
      first.value = exact((await ask("GET /tasks/{id}", { id: g.newestTaskId })).payload);
      payload.value = JSON.stringify(first.value, null, 2);
    } catch (e) {
      problem.value = (e as Error).message;
    }
  };
  const next = () => {
    try {
      const changes = changesOf(first.value, exact(payload.value));
      problem.value = changes.length ? "" : "Nothing is changed: Replay does the same.";
      if (problem.value) return;
      dialog.current?.close();
      begin({
        title: `Post a group of ${command} anew`, verb: "Post them", done: "posted anew",
        text: (
          <>
            <p>{where}</p>
            <ul class="diff" aria-label="What changes">
              {changes.map((c) => <li class="mono" key={c.path.join()}>{visible(c.path.join(".")) || "payload"}: <del>{shown(c.before)}</del> → <ins>{shown(c.value)}</ins></li>)}
            </ul>
            <p>Each gets a new task with these changes and all attempts. The dead letters stay until somebody removes them. Who does the same twice posts nothing twice.</p>
          </>
        ),
        preview: () => ask("POST /admin/queues/{command}/dlq/replay", { command }, { ...filter, dryRun: true }),
        step: (cursor) => postAnew(g, filter, changes, cursor),
      });
    } catch (e) {
      problem.value = `The payload is no JSON: ${(e as Error).message}`;
    }
  };
  return (
    <>
      <button type="button" onClick={open}>Edit</button>
      <dialog ref={dialog} aria-label={`Edit a group of ${command}`}>
        <h2>The payload of the newest of {plural(g.count, "task")}</h2>
        <p class="muted">What you change here is changed in all of them: members that you set, add or take away. The others stay as they are in each.</p>
        <textarea class="mono" aria-label="Payload, any JSON" rows={12} cols={70} spellcheck={false} value={payload.value} onInput={(e) => (payload.value = e.currentTarget.value)} />
        {problem.value && <Problem>{problem.value}</Problem>}
        <div class="buttons">
          <button type="button" class="main" disabled={!payload.value} onClick={next}>See what changes</button>
          <button type="button" onClick={() => dialog.current?.close()}>Leave it</button>
        </div>
      </dialog>
    </>
  );
}

/** postAnew posts the tasks of one page of a group with the changes. Its key keeps a task from being posted twice. */
async function postAnew(g: Group, filter: object, changes: Change[], cursor?: string): Promise<Step> {
  const page = await ask("GET /admin/queues/{command}/tasks", { command: g.command, query: { ...filter, state: "dlq", limit: 100, cursor } });
  const mark = hash(JSON.stringify(changes)), refusals: string[] = [];
  const tasks = page.tasks.flatMap((t) => {
    try {
      const payload = changes.reduce((v, c) => changed(v, c.path, c.value), exact(t.payload));
      return [{ ...newTask(t, payload), idempotencyKey: `edit ${mark} of ${t.id}` }];
    } catch (e) {
      refusals.push((e as Error).message);
      return [];
    }
  });
  const { results } = tasks.length ? await ask("POST /tasks/batch", {}, { tasks }) : { results: [] };
  for (const r of results) if ("code" in r) refusals.push(r.error);
  const before = results.filter((r) => "replayed" in r && r.replayed).length;
  if (before) refusals.push(`${plural(before, "task")} had been posted with this change before.`);
  const done = results.filter((r) => !("code" in r)).length - before;
  return { done, refused: page.tasks.length - done - before, why: refusals[0], cursor: page.cursor };
}
