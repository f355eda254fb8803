// The nodes of a cluster, as its leader sees them.
import { test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const node = await Server.node(), alone = await Server.start();

test("a node of a cluster shows the nodes, and a server alone says that it is none", async (t) => {
  const page = await view(t, `${node.origin}/ui/#/cluster`);
  const row = page.getByRole("table", { name: "Nodes" }).getByRole("row").nth(1);
  await row.getByText("leader").waitFor();
  await page.getByText("1 of 1 voter answer: if one more is lost, the cluster stops.").waitFor();
  await checkAccess(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccess(page);
  const other = await view(t, `${alone.origin}/ui/#/cluster`, { expected: [/404/] });
  await other.getByText("This server is alone").waitFor();
  await checkAccess(other);
});
