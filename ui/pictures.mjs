// Makes the pictures of the documents, docs/images, by `make pictures`: a demo runs for WARM seconds, which fill
// the charts, then a browser visits its pages in both colours. The numbers in the pictures differ each time.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { small } from "./png.mjs";
import { Server, view } from "./test/kit.mjs";

const images = new URL("../docs/images/", import.meta.url).pathname;
const mostBytes = 150_000;
const server = await Server.demo();
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** stuck is the task of the demo that never ends: the oldest that is in progress in its queue. */
async function stuck() {
  const { tasks } = await server.ask("GET", "/admin/queues/import.csv/tasks?state=inProgress");
  return tasks.sort((a, b) => (a.updatedAt < b.updatedAt ? -1 : 1))[0].id;
}

async function take(page, name) {
  const png = small(await page.screenshot({ scale: "css", animations: "disabled" }));
  assert(png.length <= mostBytes, `${name}.png would have ${png.length} bytes`);
  writeFileSync(`${images}${name}.png`, png);
}

test("pictures", async (t) => {
  mkdirSync(images, { recursive: true });
  await sleep((process.env.WARM ?? 330) * 1000);
  const pages = {
    overview: ["", "Needs you"], queues: ["queues", "webhook.partner"], queue: ["queue/webhook.partner", "Throughput"],
    task: [`task/${await stuck()}`, "works on it"], dead: ["dead", "certificate of partner"], workers: ["workers", "import.csv-1"],
    find: ["find?error=has+no+address&state=dlq", "has no address"],
    live: ["live", "given to a worker"], system: ["system", "messages wait"], limits: ["limits", "Tasks that wait"],
    settings: ["queue/webhook.partner?tab=settings", "In progress, a key"],
  };
  for (const colours of ["light", "dark"]) {
    const page = await view(t, `${server.origin}/ui/`, { dark: colours === "dark" });
    for (const [name, [hash, text]] of Object.entries(pages)) {
      await page.goto(`${server.origin}/ui/#/${hash}`);
      await page.locator("main").getByText(text).first().waitFor();
      await sleep(1500); // figures come once a second
      await take(page, `${name}-${colours}`);
    }
  }
  const phone = await view(t, `${server.origin}/ui/`, { width: 390, height: 844 });
  await phone.getByText("Needs you").waitFor();
  await sleep(1500); // figures come once a second
  await take(phone, "overview-phone");
});
