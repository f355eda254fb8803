import { render } from "preact";
import "./style.css";
import { begin } from "./board";
import { href, place } from "./route";
import { connect } from "./live";
import { Overview } from "./pages/overview";
import { Queues } from "./pages/queues";
import { Empty } from "./parts";
import { Shell } from "./shell";

function Page() {
  const [first] = place.value.path;
  switch (first) {
    case undefined:
      return <Overview />;
    case "queues":
      return <Queues />;
  }
  return <Empty title="There is no such page">It may be of a newer version. <a href={href([])}>Go to the overview</a>.</Empty>;
}

begin();
connect();
render(<Shell><Page /></Shell>, document.body);
