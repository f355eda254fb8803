// The server itself.
import { ask } from "../api";
import { bytes, count, span } from "../format";
import { useLoad } from "../load";
import { serverNow, welcome } from "../live";
import { server } from "../needs";
import { Problem, Time } from "../parts";
import type { Server } from "../protocol";
import { href, place } from "../route";

const micros = (n: number) => (n < 1000 ? `${n} µs` : `${(n / 1000).toFixed(1)} ms`);

export function System() {
  const s = server.value;
  const config = useLoad((signal) => ask("GET /admin/config", { signal }), [welcome.value?.creationId]);
  return (
    <>
      <ServerTabs />
      {!s ? <p class="muted pad" role="status">Waiting for the figures of the server.</p> : <><Facts s={s} /><Shards s={s} /></>}
      <section class="block">
        <header><h2>Settings</h2></header>
        {config.error && <Problem>{config.error}</Problem>}
        {config.value && (
          <div class="scroll">
            <table class="rows plain" aria-label="Settings">
              <thead><tr><th scope="col">setting</th><th scope="col">value</th><th scope="col">from</th></tr></thead>
              <tbody>
                {config.value.settings.map((c) => (
                  <tr key={c.name}><td>{c.name}</td><td class="mono">{c.value ?? <span class="zero">–</span>}</td><td class="muted">{c.origin}</td></tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </>
  );
}

const tabs = { system: "Server", cluster: "Cluster", limits: "Limits of tenants", webhooks: "Webhooks" };

/** ServerTabs lead to the pages that belong to no queue. */
export function ServerTabs() {
  const here = place.value.path[0];
  return (
    <>
      <div class="title"><h1>System</h1></div>
      <nav class="tabs" aria-label="Parts of the system">
        {Object.entries(tabs).map(([path, name]) => <a key={path} href={href([path])} aria-current={path === here ? "page" : undefined}>{name}</a>)}
      </nav>
    </>
  );
}

function Facts({ s }: { s: Server }) {
  const w = welcome.value;
  const all: [string, preact.ComponentChildren][] = [
    ["Version", s.version],
    ["Runs", <>since <Time ms={Date.parse(s.startedAt)} />, {span(serverNow() - Date.parse(s.startedAt))}</>],
    ["Durability", `${s.durability} before every answer`],
    ["Commits", <>{count(s.commits)}/s in {count(s.syncs)} syncs/s{s.syncs > 0 && <>, {micros(s.syncMicros)} each</>}</>],
    ["Disk", s.diskGuard === "ok" ? `${s.diskFreeBytes === undefined ? "" : `${bytes(s.diskFreeBytes)} free, `}work is refused below ${bytes(2 * (s.diskReserveBytes ?? 0))}` : <span class="bad">{s.diskGuard}</span>],
    ["Sessions", count(s.sessions)],
    ["Watching", `${count(s.subscribers)}, this page among them`],
    ...(s.memoryBytes ? [["Memory", bytes(s.memoryBytes)] as [string, string]] : []),
    ["Database", <span class="mono">{w?.creationId}</span>],
  ];
  return (
    <section class="card facts row">
      <dl>{all.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
    </section>
  );
}

function Shards({ s }: { s: Server }) {
  return (
    <section class="block">
      <header><h2>Shards</h2></header>
      <div class="scroll">
        <table class="rows plain" aria-label="Shards">
          <thead>
            <tr>
              <th scope="col">shard</th><th scope="col" class="n">messages wait</th><th scope="col" class="n">of new work</th><th scope="col" class="n">taken at once</th>
              <th scope="col" class="n">waited</th><th scope="col" class="n">behind for</th><th scope="col" class="n wide">accepted</th><th scope="col" class="n">refused</th>
            </tr>
          </thead>
          <tbody>
            {s.shards?.map((x, i) => (
              <tr key={i}>
                <td>{i}</td><td class="n">{count(x.messages)}</td><td class="n">{count(x.newMessages)}</td><td class="n">{count(x.drained)}</td><td class="n">{micros(x.waitMicros)}</td>
                <td class="n">{x.backlogMs ? <span class="warn">{span(x.backlogMs)}</span> : <span class="zero">0</span>}</td>
                <td class="n wide">{count(x.accepted)}</td><td class="n">{x.refused ? <span class="bad">{count(x.refused)}</span> : <span class="zero">0</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
