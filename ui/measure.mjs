// Measures what people wait for at the dashboard, by `make dashboard-bench`, and fails beyond a bar. With
// TASKS=2000000 it also posts so many tasks, which takes minutes, and measures how long pages take to load beside them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Server, view } from "./test/kit.mjs";

const server = await Server.start();
const at = (hash) => `${server.origin}/ui/#/${hash}`;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const post = (tasks) => server.ask("POST", "/tasks/batch", { tasks });

function bar(what, all, most, unit = "ms") {
  const [median, worst] = [all.sort((a, b) => a - b)[all.length >> 1], all.at(-1)].map((n) => n.toFixed(1));
  console.log(`${what}: median ${median}, worst ${worst} of at most ${most} ${unit}, ${all.length} times`);
  assert(worst <= most, `${what}: ${worst} ${unit} of at most ${most}`);
}

/** awaited notes when the page shows a text first. It runs in the page. */
function awaited(text) {
  window.shown = new Promise((done) => {
    const look = () => document.querySelector("main")?.textContent.includes(text) && done([Date.now(), performance.now()]);
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
  });
}

const { id } = await server.post("moved", 1, { delaySeconds: 3600 });
await server.post("listed");
const changes = {
  live: ["live", (n) => [`event.${n}x`, () => server.post(`event.${n}x`)]],
  task: [`task/${id}`, (n) => [`priority${1 + (n % 9)}failed`, () => server.ask("POST", `/admin/tasks/${id}/move`, { toPriority: 1 + (n % 9) })]],
  list: ["queue/listed?tab=tasks&state=ready", (n) => [`${n} new`, () => server.post("listed")]],
};
for (const [name, [hash, change]] of Object.entries(changes)) {
  test(`a change is on the page ${name} after its commit`, async (t) => {
    const page = await view(t, at(hash)), took = [];
    await sleep(2000); // it subscribes
    for (let n = 1; n <= 20; n++) {
      const [text, make] = change(n);
      await page.evaluate(awaited, text);
      await make();
      const answered = Date.now();
      took.push((await page.evaluate(() => window.shown))[0] - answered);
      await sleep(137 + 31 * (n % 5)); // not in step with what the server does
    }
    bar(`from the answer until the page ${name} shows it`, took, 300);
  });
}

for (const hash of ["live", "queues", ""]) {
  test(`a tick of the page ${hash || "overview"} with 500 queues that change`, async (t) => {
    const tick = Array.from({ length: 500 }, (_, n) => ({ command: `wide.q${n}`, payload: n }));
    const load = setInterval(() => post(tick), 1000);
    t.after(() => clearInterval(load));
    const page = await view(t, at(hash)), chrome = await page.context().newCDPSession(page);
    await page.locator("main").getByText("wide.q").first().waitFor();
    await sleep(3000); // the first drawing
    await chrome.send("Performance.enable", { timeDomain: "threadTicks" }); // what else runs on the machine does not count
    const metrics = async () => Object.fromEntries((await chrome.send("Performance.getMetrics")).metrics.map((m) => [m.name, m.value * 1000]));
    const before = await metrics();
    await sleep(20_000);
    const after = await metrics();
    console.log(`all work of ${hash || "overview"}: ${((after.TaskDuration - before.TaskDuration) / 20).toFixed(1)} ms a tick`);
    bar(`script of ${hash || "overview"}`, [(after.ScriptDuration - before.ScriptDuration) / 20], 4, "ms a tick");
  });
}

test("the page is live again after kill -9", async (t) => {
  const page = await view(t, at(""), { expected: [/WebSocket connection|ERR_CONNECTION_REFUSED|Failed to load resource/] }), took = [];
  for (const seconds of [0, 1, 2, 5, 15]) {
    await page.locator(".dot.live").waitFor();
    await server.kill();
    await page.locator(".dot.lost").filter({ hasText: "figures are" }).waitFor(); // it says that it was cut
    await sleep(seconds * 1000);
    await server.begin();
    const answers = Date.now();
    await page.locator(".dot.live").waitFor();
    took.push(Date.now() - answers);
    console.log(`live ${took.at(-1)} ms after a server that was away for ${seconds} s`);
  }
  bar("from the server's first answer until the page is live", took, 2000);
});

const task = (n) => ({ command: `many.q${n % 150}`, payload: { n }, ...(n % 2 && { delaySeconds: 2_592_000 }) });
test("many tasks are posted", async () => {
  let left = Number(process.env.TASKS ?? 0);
  const poster = async () => {
    while ((left -= 1000) >= 0) await post(Array.from({ length: 1000 }, (_, i) => task(i + left)));
  };
  await Promise.all(Array.from({ length: 8 }, poster));
  await post(Array.from({ length: 300 }, (_, n) => task(n)));
});

const pages = {
  overview: ["", "Busiest queues"], queues: ["queues", "drained in"], ready: ["queue/many.q6?tab=tasks&state=ready", '{"n":'],
  delayed: ["queue/many.q7?tab=tasks&state=delayed", '{"n":'], found: ["find?command=many.q7", '{"n":'],
};
for (const [name, [hash, text]] of Object.entries(pages)) {
  test(`the page ${name} is loaded beside them`, async (t) => {
    const page = await view(t, at(hash)), took = [];
    await page.addInitScript(awaited, text);
    for (let n = 0; n < 10; n++) {
      await page.reload();
      took.push((await page.evaluate(() => window.shown))[1]);
    }
    bar(`load of ${name}`, took, 300);
  });
}
