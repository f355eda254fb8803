// The nodes of a cluster: who leads, who is behind or away, and how many may be lost.
import { ask } from "../api";
import { bytes, count, plural, span } from "../format";
import { second, welcome } from "../live";
import { useLoad } from "../load";
import { Empty, Problem, State, Time } from "../parts";
import type { ClusterNode, ClusterStatus } from "../protocol";
import { ServerTabs } from "./system";

/** eachSeconds is how often the leader is asked: it asks every node. */
const eachSeconds = 5;

export function Cluster() {
  const known = useLoad((signal) => ask("GET /admin/cluster", { signal }), [welcome.value, Math.floor(second.value / eachSeconds)]);
  const alone = known.error?.startsWith("this server is no node");
  return (
    <>
      <ServerTabs />
      {alone && <Empty title="This server is alone">A cluster of three loses none of its tasks with one of its machines: <code>codeq cluster init</code>.</Empty>}
      {known.error && !alone && <Problem>{known.error}</Problem>}
      {known.value && !alone && <Nodes of={known.value} />}
    </>
  );
}

function Nodes({ of: s }: { of: ClusterStatus }) {
  const mayLose = s.mayLose ? `${s.mayLose} may be lost` : "if one more is lost, the cluster stops";
  return (
    <section class="block">
      <header>
        <h2>Nodes</h2>
        <p class={s.mayLose ? "muted" : "bad"}>{s.reachable} of {plural(s.voters, "voter")} answer: {mayLose}. Term {count(s.term)}.</p>
      </header>
      <div class="scroll">
        <table class="rows plain" aria-label="Nodes">
          <thead>
            <tr>
              <th scope="col">node</th><th scope="col">state</th><th scope="col" class="n">entries behind</th><th scope="col" class="n">heard of the leader</th>
              <th scope="col" class="n">clock</th><th scope="col" class="n">free on its disk</th>
              <th scope="col" class="wide">snapshot</th><th scope="col" class="wide">version</th><th scope="col" class="wide">clients reach it at</th>
            </tr>
          </thead>
          <tbody>{s.nodes.map((n) => <Node key={n.node} of={n} />)}</tbody>
        </table>
      </div>
    </section>
  );
}

function Node({ of: n }: { of: ClusterNode }) {
  const role = n.reachable ? <State of={n.role === "leader" ? "live" : "done"} word={`${n.role}${n.voter ? "" : ", no vote yet"}`} /> : <State of="failed" word="away" />;
  return (
    <tr>
      <td class="mono" title={n.node}>{n.address}</td><td>{role}</td>
      <td class="n">{n.behind ? <span class="warn">{count(n.behind)}</span> : <span class="zero">{n.reachable ? 0 : "–"}</span>}</td>
      <td class="n">{n.lastContactMs ? `${span(n.lastContactMs)} ago` : <span class="zero">–</span>}</td>
      <td class="n">{n.clockAheadMs ? <span class="bad">{n.clockAheadMs > 0 ? "ahead by " : "behind by "}{span(Math.abs(n.clockAheadMs))}</span> : <span class="zero">–</span>}</td>
      <td class="n">{n.freeBytes ? bytes(n.freeBytes) : <span class="zero">–</span>}</td>
      <td class="wide">{n.snapshotAt ? <Time ms={Date.parse(n.snapshotAt)} /> : <span class="zero">–</span>}</td>
      <td class="wide">{n.version}</td><td class="wide mono">{n.url}</td>
    </tr>
  );
}
