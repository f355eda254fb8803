// The settings of a queue.
import { ask } from "../api";
import { SettingsForm, type Field } from "../form";
import { begin } from "../jobs";
import { useLoad } from "../load";
import { Problem } from "../parts";
import { go } from "../route";

const fields: Field[] = [
  { path: "maxAttempts", title: "Attempts", text: "of tasks that are posted without a number of their own" },
  { path: "leaseSeconds", title: "Lease, s", text: "how long a worker has a task without a heartbeat" },
  { path: "timeoutSeconds", title: "Time limit, s", text: "how long one delivery may run, despite heartbeats" },
  { path: "ttlSeconds", title: "Expires after, s", text: "when a task is not worth doing any more" },
  { path: "retentionSeconds", title: "Keep ended, s", text: "how long ended tasks and results stay" },
  { path: "dlqRetentionSeconds", title: "Keep dead, s", text: "how long dead letters stay" },
  { path: "maxInProgress", title: "Most in progress", text: "how many tasks workers have at once, over all shards" },
  { path: "startsPerSecond", title: "Starts a second", text: "how many deliveries begin in any second at most" },
  { path: "perKey.inProgress", title: "In progress, a key", text: "how many tasks with the same concurrencyKey workers have at once" },
  { path: "perKey.startsPerSecond", title: "Starts a second, a key", text: "how many of their deliveries begin in any second at most" },
  { path: "target.url", title: "Target", text: "the URL to which the server posts the tasks; with none workers take them", is: "text" },
  { path: "target.window", title: "Target has", text: "how many tasks at once" },
  { path: "backoff.policy", title: "Pauses grow", text: "the pause before a retry", choices: ["fixed", "linear", "exponential", "exp_equal_jitter", "exp_full_jitter"] },
  { path: "backoff.baseSeconds", title: "First pause, s" },
  { path: "backoff.maxSeconds", title: "Longest pause, s" },
  { path: "spread", title: "Spread", text: "over all shards, with an order on each instead of one", choices: [] },
];

export function Settings({ command }: { command: string }) {
  const known = useLoad((signal) => ask("GET /admin/queues/{command}", { command, signal }), [command]);
  if (!known.value) return known.error ? <Problem>{known.error}</Problem> : <p class="muted pad">Reading the settings.</p>;
  return (
    <section class="settings">
      <SettingsForm
        fields={fields} of={known.value} holds={known.value.effective} none="no limit" done={`The settings of ${command} hold on every shard.`}
        save={(settings) => ask("PUT /admin/queues/{command}", { command }, settings).then(known.again)}
      >
        <button type="button" class="bad" onClick={() => remove(command)}>Delete the queue</button>
      </SettingsForm>
    </section>
  );
}

function remove(command: string) {
  begin({
    title: `Delete the queue ${command}`, verb: "Delete", done: "removed", danger: true,
    text: "Its settings, its tasks, their results and its dead letters are gone then. A queue with tasks in progress is refused: pause it and let them end first.",
    step: async () => {
      const a = await ask("DELETE /admin/queues/{command}", { command, query: { purge: true } });
      return { done: 0, cursor: a.deleted ? undefined : "again" };
    },
    then: () => go(["queues"]),
  });
}
