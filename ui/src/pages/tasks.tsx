// The tasks of a queue in one state.
import type { Queue } from "../board";
import { FilterForm } from "../filter";
import { count } from "../format";
import { Shape, stateWord, type StateName } from "../parts";
import { href, param } from "../route";
import { F, type Figure } from "../series";
import { states, type ListState } from "../task";
import { TaskList } from "../tasklist";

const chips: Record<ListState, [StateName, Figure]> = {
  ready: ["ready", F.ready], delayed: ["delayed", F.delayed], inProgress: ["inProgress", F.inProgress], dlq: ["dead", F.dead], done: ["done", F.done],
};

/** Tasks asks for its list before the figures of the queue have come. */
export function Tasks({ command, queue: q }: { command: string; queue?: Queue }) {
  const asked = param("state", "ready") as ListState, state = states.includes(asked) ? asked : "ready";
  return (
    <section>
      <div class="bar">
        <nav class="chips" aria-label="State">
          {states.map((s) => (
            <a key={s} href={href(["queue", command], { tab: "tasks", state: s })} aria-current={s === state ? "page" : undefined}>
              <Shape of={chips[s][0]} /> {stateWord(chips[s][0])} {q && <b>{count(q.row.value[chips[s][1]]!)}</b>}
              {q && s === "ready" && q.row.value[F.limited]! > 0 && <> + <Shape of="limited" /> {count(q.row.value[F.limited]!)} limited</>}
            </a>
          ))}
        </nav>
        <FilterForm without="command" />
      </div>
      <TaskList command={command} state={state} />
    </section>
  );
}
