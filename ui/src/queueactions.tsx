// What can be done with a queue, or with several.
import { ask } from "./api";
import { isSystem, settle, type Queue } from "./board";
import { plural } from "./format";
import { begin, each, now } from "./jobs";
import { Copy } from "./pages/task";
import { F } from "./series";

const set = (command: string, to: "pause" | "resume") => ask(`POST /admin/queues/{command}/${to}`, { command }).then(settle);

export function QueueActions({ of: q }: { of: Queue }) {
  const command = q.command, paused = q.row.value[F.paused] === 1;
  return (
    <>
      <button
        type="button"
        onClick={() => now(set(command, paused ? "resume" : "pause"),
          paused ? `${command} goes on: workers get its tasks again.` : `${command} is paused: no worker gets a task of it. Those that work go on.`)}
      >
        {paused ? "Resume" : "Pause"}
      </button>
      {!isSystem(command) && <Copy task={{ command }} />}
      {q.row.value[F.dead]! > 0 && <button type="button" onClick={() => replay(command)}>Replay dead letters</button>}
    </>
  );
}

function replay(command: string) {
  begin({
    title: `Replay the dead letters of ${command}`, verb: "Replay", done: "replayed",
    text: "Each has all its attempts again and is ready at the tail, the oldest first. Those that their worker ended as failed are among them.",
    preview: () => ask("POST /admin/queues/{command}/dlq/replay", { command }, { dryRun: true, cause: "all" }),
    step: async (cursor) => {
      const a = await ask("POST /admin/queues/{command}/dlq/replay", { command }, { cause: "all", limit: 1000, cursor });
      return { done: a.replayed ?? 0, cursor: a.cursor };
    },
  });
}

/** ChosenQueues offers what can be done with several queues. */
export function ChosenQueues({ of: all, none }: { of: Queue[]; none: () => void }) {
  const button = (verb: string, done: string, to: "pause" | "resume", text: string) => {
    const fit = all.filter((q) => (q.row.value[F.paused] === 1) === (to === "resume"));
    return fit.length > 0 && (
      <button
        type="button"
        onClick={() => begin({
          title: `${verb} ${plural(fit.length, "queue")}`, verb, done, what: "queue", then: none,
          text: <p>{text} {fit.slice(0, 20).map((q) => q.command).join(", ")}{fit.length > 20 && ` and ${fit.length - 20} more`}</p>,
          step: each(fit.map((q) => q.command), (command) => set(command, to)),
        })}
      >
        {verb} {fit.length < all.length && fit.length}
      </button>
    );
  };
  return (
    <span class="all" role="group" aria-label="With the chosen queues">
      <b>{plural(all.length, "queue")} chosen</b>
      {button("Pause", "paused", "pause", "No worker gets a task of them; those that work go on:")}
      {button("Resume", "resumed", "resume", "Workers get their tasks again:")}
      <button type="button" class="quiet" onClick={none}>Choose none</button>
    </span>
  );
}
