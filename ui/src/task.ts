// What a task is, in words.
import type { StateName } from "./parts";
import type { NewTask, Task } from "./protocol";
import { count, plural, span } from "./format";

/** The states that lists of tasks are of, as the API names them. */
export const states = ["ready", "delayed", "inProgress", "dlq", "done"] as const;
export type ListState = (typeof states)[number];

export function stateOf(t: Task): StateName {
  switch (t.lastKnownLocation) {
    case "PENDING_LIST":
      return "ready";
    case "DELAYED_ZSET":
      return "delayed";
    case "LIMITED":
      return "limited";
    case "INPROG_SET":
      return "inProgress";
    case "DLQ_SET":
      return "dead";
  }
  return t.status === "COMPLETED" ? "done" : t.status === "CANCELLED" ? "cancelled" : "failed";
}

/** newTask is the request for a task that is like another one but for its payload. */
export const newTask = ({ command, priority, maxAttempts, timeoutSeconds, labels, concurrencyKey, webhook }: Partial<Task> & { command: string }, payload: unknown): NewTask =>
  ({ command, payload, priority, maxAttempts, timeoutSeconds, labels, concurrencyKey, webhook });

/** causes of the end of a delivery, as people say them. */
export const causes: Record<string, string> = {
  result: "the worker ended it as failed", nack: "the worker gave it back as failed", abandon: "the worker gave it back",
  release: "released", lease_expired: "the lease ran out: no heartbeat came", timeout: "it ran for too long",
  session_gone: "the session of the worker ended", undelivered: "it did not arrive at the worker", cancel: "cancelled",
  taken_back: "taken back", run_now: "run before its time", move: "given another priority", replay: "replayed", callback: "its outcome is posted to the webhook",
};

/** isLong says that a delivery runs much longer than those of its queue. */
export const isLong = (ms: number, p99: number) => p99 > 0 && ms >= Math.max(10_000, 10 * p99);

/** why says why a task is where it is. p99 is how long 99 of 100 deliveries of its queue take, 0 if nobody knows. */
export function why(t: Task, now: number, p99 = 0): string {
  const w = t.waiting, until = w?.until ? span(Math.max(0, Date.parse(w.until) - now)) : "";
  switch (w?.reason) {
    case "delayed":
      return `It waits for its time, ${until ? `in ${until}` : "which comes soon"}${t.attempts ? `: the pause after failure ${t.attempts} of ${t.maxAttempts}` : ""}.`;
    case "suspect":
      return `It did not arrive at a worker three times in a row, so others go first${until ? `; its turn comes in ${until} at the latest` : ""}.`;
    case "paused":
      return "Its queue is paused: no worker gets a task of it until somebody resumes it.";
    case "storage_full":
      return "The disk of the server is nearly full, so no task is given to a worker.";
    case "limit":
      if (w.key) {
        return `Its key ${visible(w.key)} is at its limit: ` + (w.limit === "perKey.startsPerSecond" ? `at most ${count(w.of ?? 0)} of its tasks start in a second.`
          : `${plural(w.used ?? 0, "task")} of it ${w.used === 1 ? "is" : "are"} in progress, at most ${count(w.of ?? 0)} may be. Tasks of other keys pass it.`);
      }
      return w.limit === "startsPerSecond" ? `Its queue is at its limit: at most ${count(w.of ?? 0)} start in a second.`
        : `Its queue is at its limit: ${count(w.used ?? 0)} tasks are in progress, at most ${count(w.of ?? 0)} may be.`;
    case "no_worker":
      return "No worker is there for its queue: no session and no claim asks for it.";
    case "target":
      return `The target of its queue fails and gets no task: ${visible(w.problem ?? "")}${until ? `. It is tried again in ${until}` : ""}.`;
    case "behind":
      return w.behind ? `${count(w.behind)} ready ${w.behind === 1 ? "task goes" : "tasks go"} before it.` : "Other tasks of its queue go before it.";
    case "no_room":
      return "It is next, but every worker of its queue has as many tasks as it can hold.";
  }
  switch (stateOf(t)) {
    case "inProgress": {
      const ran = now - Date.parse(t.updatedAt), had = `${t.workerId ?? "A worker"} has had it for ${span(ran)}`;
      if (!isLong(ran, p99)) return `${had}.`;
      return `${had}, but 99 of 100 deliveries of this queue take ${span(p99)} or less. ` +
        "The worker still renews its lease, so it lives and may hang. Take back gives the task to another one.";
    }
    case "dead":
      return t.dlqCause === "exhausted" ? `It failed ${t.attempts} of ${t.maxAttempts} times and is not tried again by itself.`
        : t.dlqCause === "failed" ? "Its worker ended it as failed; it is not tried again by itself."
        : "It was released too often without a result; it is not tried again by itself.";
    case "cancelled":
      return t.cancelCause === "expired" ? "Its time was over before a worker could end it." : "It was cancelled.";
    case "done":
      return `It completed with ${t.deliveries > 1 ? `delivery ${t.deliveries}` : "its first delivery"}, ${span(Date.parse(t.updatedAt) - Date.parse(t.createdAt))} after it was created.`;
    case "limited":
      return `It would be ready, did other tasks of its key ${visible(t.concurrencyKey ?? "")} not hold it back.`;
    case "ready":
      return "It is ready.";
  }
  return "";
}

// Characters that show nothing, or change the order of what is around them.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** visible is text in which every character shows. */
export const visible = (text: string) => text.replace(hidden, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const firstLine = (text = "") => visible(text.split("\n", 1)[0]!.slice(0, 300));
