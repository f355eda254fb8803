// Tasks of all queues, by what is known of them.
import { filter, FilterForm } from "../filter";
import { Empty, Shape, stateWord } from "../parts";
import { href, param, place } from "../route";
import { states, type ListState } from "../task";
import { TaskList } from "../tasklist";

export function Find() {
  const asked = param("state") as ListState, state = states.includes(asked) ? asked : undefined;
  const query = Object.fromEntries([...place.value.query.keys()].map((name) => [name, place.value.query.getAll(name)]));
  return (
    <>
      <div class="title">
        <h1>Find tasks</h1>
        <FilterForm />
      </div>
      <nav class="chips bar" aria-label="State">
        {[undefined, ...states].map((s) => (
          <a key={s} href={href(["find"], { ...query, state: s })} aria-current={s === state ? "page" : undefined}>
            {s ? <><Shape of={s === "dlq" ? "dead" : s} /> {stateWord(s === "dlq" ? "dead" : s)}</> : "in any state"}
          </a>
        ))}
      </nav>
      {filter().length || state ? <TaskList state={state} /> : (
        <Empty title="What do you know of the task?">
          A label or an id is looked up at once. For anything else the server looks at task after task, up to 20,000 of them for one request;
          the page says how many, and goes on when you ask it to.
        </Empty>
      )}
    </>
  );
}
