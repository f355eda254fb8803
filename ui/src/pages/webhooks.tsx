// The webhooks of a tenant: where outcomes are posted, whether they arrive, and what can be done if they do not.
import { useSignal } from "@preact/signals";
import { ask } from "../api";
import { SettingsForm, type Field } from "../form";
import { count, span } from "../format";
import { now, say } from "../jobs";
import { useLoad } from "../load";
import { serverNow, welcome } from "../live";
import { Empty, Problem, State, Time } from "../parts";
import type { Webhook, WebhookChange } from "../protocol";
import { go, href } from "../route";
import { visible } from "../task";
import { TaskList } from "../tasklist";
import { CopyText } from "../tree";
import { ServerTabs } from "./system";

const fields: Field[] = [
  { path: "url", title: "URL", text: "gets the outcomes by POST", is: "text" },
  { path: "commands", title: "Queues", text: "names, and prefixes such as build.*", is: "list" },
  { path: "statuses", title: "Outcomes", text: "COMPLETED, FAILED, CANCELLED", is: "list" },
];

/** Webhooks are all of the tenant, or one. */
export function Webhooks({ name }: { name?: string }) {
  return <><ServerTabs />{name ? <One key={name} name={name} /> : <All />}</>;
}

/** Health is whether what is posted arrives. */
function Health({ of: w }: { of: Webhook }) {
  if (w.state === "disabled") return <State of="failed" word={`disabled${w.reason ? `: ${w.reason}` : ""}`} />;
  if (!w.failures) return <State of="done" word="enabled" />;
  return <State of="failed" word={`${count(w.failures)} failed in a row${w.failingSince ? `, none arrived for ${span(serverNow() - Date.parse(w.failingSince))}` : ""}`} />;
}

function Actions({ of: w, again }: { of: Webhook; again: () => void }) {
  const { name } = w;
  const test = async () => {
    try {
      const a = await ask("POST /admin/webhooks/{name}/test", { name });
      say(a.status ? `${name} answered ${a.status} after ${a.ms} ms.` : `No answer from ${name}: ${a.problem}`, a.status < 200 || a.status > 299);
    } catch (e) {
      say((e as Error).message, true);
    }
    again();
  };
  return (
    <>
      <button type="button" onClick={test}>Test</button>
      {w.state === "disabled" && (
        <button type="button" class="main" onClick={async () => (await now(ask("POST /admin/webhooks/{name}/enable", { name }), `${name} is enabled: what waits for it is posted.`)) && again()}>Enable</button>
      )}
    </>
  );
}

function All() {
  const known = useLoad((signal) => ask("GET /admin/webhooks", { signal }), [welcome.value]), all = known.value?.webhooks;
  const open = (e: SubmitEvent) => {
    e.preventDefault();
    const name = new FormData(e.currentTarget as HTMLFormElement).get("name");
    if (name) go(["webhooks", String(name)]);
  };
  return (
    <section class="block">
      <header>
        <h2>Webhooks</h2>
        <a href={href(["queue", "codeq.webhook"], { tab: "tasks", state: "delayed" })}>What waits to be posted</a>
        <form class="join" onSubmit={open}><input name="name" placeholder="Name of a new one" aria-label="Name of a new webhook" /><button>Make</button></form>
      </header>
      {known.error && <Problem>{known.error}</Problem>}
      {all?.length === 0 && <Empty title="This tenant has no webhooks">Each gets the outcomes of all its tasks, or of some queues. A task can have one of its own besides.</Empty>}
      {all && all.length > 0 && (
        <div class="scroll">
          <table class="rows plain" aria-label="Webhooks">
            <thead><tr><th scope="col">name</th><th scope="col">state</th><th scope="col">URL</th><th scope="col" class="wide">gets</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
            <tbody>
              {all.map((w) => (
                <tr key={w.name}>
                  <td class="name"><a href={href(["webhooks", w.name])}>{w.name}</a></td><td><Health of={w} /></td><td class="mono text">{visible(w.url)}</td>
                  <td class="wide">{w.statuses?.join(", ").toLowerCase() ?? "every outcome"} of {w.commands?.join(", ") ?? "all queues"}</td>
                  <td class="acts"><Actions of={w} again={known.again} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function One({ name }: { name: string }) {
  const known = useLoad((signal) => ask("GET /admin/webhooks", { signal }), [name, welcome.value]);
  const secret = useSignal("");
  if (!known.value) return known.error ? <Problem>{known.error}</Problem> : <p class="muted pad">Reading the webhook.</p>;
  const w = known.value.webhooks.find((x) => x.name === name);
  const told = (a: Webhook) => {
    secret.value = a.secret ?? "";
    known.again();
  };
  return (
    <>
      <div class="title">
        <h2>{name}</h2>{w && <Health of={w} />}
        {w && <div class="buttons"><Actions of={w} again={known.again} /></div>}
      </div>
      {secret.value && <p class="card">Its secret is shown only now: <code>{secret.value}</code> <CopyText text={secret.value} /></p>}
      {w?.oldSecretUntil && <p class="muted note">The secret before signs as well until <Time ms={Date.parse(w.oldSecretUntil)} />.</p>}
      <section class="settings">
        <SettingsForm
          fields={fields} of={w ?? {}} holds={undefined} none="all" done={`The webhook ${name} is set.`}
          save={(change) => ask("PUT /admin/webhooks/{name}", { name }, { ...(change as WebhookChange), state: w?.state, version: w?.version }).then(told)}
        >
          {w && <button type="button" onClick={() => ask("POST /admin/webhooks/{name}/rotate", { name }).then(told, (e: Error) => say(e.message, true))}>Another secret</button>}
          {w && (
            <button
              type="button" class="bad"
              onClick={async () => (await now(ask("DELETE /admin/webhooks/{name}", { name }), `The webhook ${name} is removed. What waited for it is not posted.`)) && go(["webhooks"])}
            >
              Remove
            </button>
          )}
        </SettingsForm>
      </section>
      {w && (
        <section class="block">
          <header><h2>What it gets</h2></header>
          <TaskList command="codeq.webhook" only={[["label", `endpoint=${name}`]]} />
        </section>
      )}
    </>
  );
}
