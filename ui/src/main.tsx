import { render } from "preact";
import "./style.css";
import * as board from "./board";
import { onKey } from "./keys";
import { connect } from "./live";
import * as needs from "./needs";
import { Cluster } from "./pages/cluster";
import { Dead } from "./pages/dead";
import { Events } from "./pages/events";
import { Find } from "./pages/find";
import { Limits } from "./pages/limits";
import { Overview } from "./pages/overview";
import { Queue } from "./pages/queue";
import { Queues } from "./pages/queues";
import { System } from "./pages/system";
import { Task } from "./pages/task";
import { Webhooks } from "./pages/webhooks";
import { Worker, Workers } from "./pages/workers";
import { Empty } from "./parts";
import { go, href, place } from "./route";
import { Shell } from "./shell";

function Page() {
  const [first, name] = place.value.path;
  switch (first) {
    case undefined:
      return <Overview />;
    case "queues":
      return <Queues />;
    case "queue":
      if (name) return <Queue key={name} command={name} />;
      break;
    case "task":
      if (name) return <Task key={name} id={name} />;
      break;
    case "dead":
      return <Dead />;
    case "find":
      return <Find />;
    case "workers":
      return <Workers />;
    case "worker":
      if (name) return <Worker key={name} name={name} />;
      break;
    case "live":
      return <Events />;
    case "cluster":
      return <Cluster />;
    case "limits":
      return <Limits tenant={name} />;
    case "webhooks":
      return <Webhooks name={name} />;
    case "system":
      return <System />;
  }
  return <Empty title="There is no such page">It may be one of a newer version. <a href={href([])}>To the overview</a></Empty>;
}

onKey("/", () => go(["find"])); // on pages that have no field of their own
board.begin();
needs.begin();
connect();
render(<Shell><Page /></Shell>, document.body);
