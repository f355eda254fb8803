// What tenants may do at most, what they use of it and what was refused.
import { ask } from "../api";
import { SettingsForm, type Field } from "../form";
import { count } from "../format";
import { now } from "../jobs";
import { useLoad } from "../load";
import { welcome } from "../live";
import { Problem } from "../parts";
import type { LimitsFigures } from "../protocol";
import { go, href } from "../route";
import { ServerTabs } from "./system";

const rates: Field[] = [
  { path: "enqueuesPerSecond", title: "New tasks a second", text: "on the long run; a batch costs as many as it has tasks" },
  { path: "burst", title: "New tasks at once", text: "after a pause; without it as many as in a second" },
  { path: "claimsPerSecond", title: "Claims a second", text: "tasks that are asked for over HTTP" },
  { path: "sessions", title: "Sessions", text: "that are open at once" },
];
const fields: Field[] = [
  ...rates,
  { path: "pendingTasks", title: "Tasks that wait", text: "ready, delayed and between retries" },
  { path: "pendingBytes", title: "Bytes that wait", text: "payloads of the tasks that wait, together" },
  { path: "artifactBytes", title: "Bytes of artifacts", text: "files of its tasks, together" },
  { path: "weight", title: "Turns", text: "when each other tenant has one, 1 to 100" },
  ...rates.map((f) => ({ path: `perCredential.${f.path}`, title: `${f.title}, each`, text: "for each credential of the tenant" })),
];

/** Limits are those of a tenant, or of that of the person. */
export function Limits({ tenant = welcome.value?.tenantId }: { tenant?: string }) {
  return <><ServerTabs />{tenant && <Of tenant={tenant} />}</>;
}

function Of({ tenant }: { tenant: string }) {
  const all = useLoad((signal) => ask("GET /admin/limits", { signal }), [welcome.value]);
  const one = useLoad((signal) => ask("GET /admin/limits/{tenant}", { tenant, signal }), [tenant]);
  const again = () => {
    all.again();
    one.again();
  };
  const open = (e: SubmitEvent) => {
    e.preventDefault();
    const name = new FormData(e.currentTarget as HTMLFormElement).get("tenant");
    if (name) go(["limits", String(name)]);
  };
  const f = one.value;
  return (
    <>
      {all.value && all.value.limits.length > 0 && <Table of={all.value.limits} />}
      <section class="block settings">
        <header>
          <h2>{tenant}</h2>
          <form class="join" onSubmit={open}><input name="tenant" placeholder="Another tenant" aria-label="Name of another tenant" /><button>Show</button></form>
        </header>
        {one.error && <Problem>{one.error}</Problem>}
        {f && f.tenantId === tenant && (
          <SettingsForm
            key={tenant} fields={fields} of={f} holds={{ weight: 1 }} none="no limit" done={`The limits of ${tenant} hold.`}
            save={(limits) => ask("PUT /admin/limits/{tenant}", { tenant }, { ...limits, version: f.version }).then(again)}
          >
            {f.version && <button type="button" class="bad" onClick={async () => (await now(ask("DELETE /admin/limits/{tenant}", { tenant }), `${tenant} has no limits.`)) && again()}>Remove all limits</button>}
          </SettingsForm>
        )}
        <p class="muted note">Only who has the scope <code>codeq:admin:all</code> changes limits: no tenant raises its own. What does not fit is refused whole.</p>
      </section>
    </>
  );
}

const used = (n = 0, of?: number) => (of === undefined ? <span class="zero">–</span> : <><meter min={0} max={of} value={n} aria-label="Used" /> {count(n)} of {count(of)}</>);
const bound = (n?: number) => (n === undefined ? <span class="zero">–</span> : count(n));

function Table({ of: all }: { of: LimitsFigures[] }) {
  return (
    <div class="scroll">
      <table class="rows plain" aria-label="Tenants with limits">
        <thead>
          <tr>
            <th scope="col">tenant</th><th scope="col" class="n">new/s</th><th scope="col" class="n wide">claims/s</th><th scope="col" class="n">tasks that wait</th>
            <th scope="col" class="n">sessions</th><th scope="col" class="n wide">turns</th><th scope="col" class="n">refused</th>
          </tr>
        </thead>
        <tbody>
          {all.map((f) => {
            const refused = Object.values(f.refused ?? {}).reduce((n, x) => n + x, 0);
            return (
              <tr key={f.tenantId}>
                <td class="name"><a href={href(["limits", f.tenantId])}>{f.tenantId}</a></td><td class="n">{bound(f.enqueuesPerSecond)}</td><td class="n wide">{bound(f.claimsPerSecond)}</td>
                <td class="n">{used(f.used?.pendingTasks, f.pendingTasks)}</td><td class="n">{used(f.used?.sessions, f.sessions)}</td><td class="n wide">{f.weight ?? 1}</td>
                <td class="n">{refused ? <span class="bad" title={Object.entries(f.refused!).map(([name, n]) => `${name} ${n}`).join(", ")}>{count(refused)}</span> : <span class="zero">0</span>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
