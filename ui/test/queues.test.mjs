// The page of all queues: groups, pins, several at once, and what to do with one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const server = await Server.start();
for (const q of ["billing.mail", "billing.pdf", "billing.tax", "media.cut", "solo"]) await server.post(q, q);
await server.post("billing.pdf");
await server.ask("PUT", "/admin/queues/solo", { spread: true });
const dead = await server.bury("media.cut", "no such film");
const at = (hash) => `${server.origin}/ui/#/${hash}`;
const names = (page) => page.locator("tbody tr:not(.space) .name").allInnerTexts().then((all) => all.map((s) => s.match(/[a-z]+(\.[a-z*]+)?/)[0]));

test("queues whose names begin alike stand in a group that folds, by mouse and by keyboard", async (t) => {
  const page = await view(t, at("queues?sort=queue"));
  const group = page.getByRole("button", { name: /billing\.\*/ });
  await group.waitFor();
  assert.deepEqual(await names(page), ["billing.*", "billing.mail", "billing.pdf", "billing.tax", "media.cut", "solo"]);
  await page.getByRole("row").filter({ has: group }).getByRole("link", { name: "4", exact: true }).waitFor(); // ready, together
  await page.getByText("spread", { exact: true }).waitFor();
  await checkAccess(page);
  await group.click();
  await page.getByRole("link", { name: "billing.pdf" }).waitFor({ state: "detached" });
  assert.match(page.url(), /fold=billing/);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "billing.pdf" }).waitFor();
  await page.getByRole("button", { name: "Groups" }).click();
  await group.waitFor({ state: "detached" });
  await page.getByRole("button", { name: /ready/ }).click();
  assert.equal(await page.getByRole("columnheader", { name: /ready/ }).getAttribute("aria-sort"), "descending");
});

test("a pinned queue is on top, also after a reload", async (t) => {
  const page = await view(t, at("queues?sort=queue"));
  await page.getByRole("button", { name: "Keep solo on top" }).click();
  await page.mouse.move(0, 0);
  await page.waitForFunction(() => document.querySelector("tbody .name").textContent.includes("solo"));
  await page.reload();
  await page.waitForFunction(() => document.querySelector("tbody .name")?.textContent.includes("solo"));
});

test("chosen queues are paused and resumed together", async (t) => {
  const page = await view(t, at("queues?sort=queue"));
  await page.getByLabel("Choose billing.*").check();
  assert(await page.getByLabel("Choose billing.tax").isChecked());
  const chosen = page.getByRole("group", { name: "With the chosen queues" });
  await chosen.getByText("3 queues chosen").waitFor();
  await chosen.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("dialog").getByText("billing.mail, billing.pdf, billing.tax").waitFor();
  await checkAccess(page);
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByText("3 queues paused.").waitFor();
  assert.equal((await server.ask("GET", "/admin/queues/billing.tax")).paused, true);
  await page.locator("h1").click();
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByRole("button", { name: "Resume" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("3 queues resumed.").waitFor();
  assert.equal((await server.ask("GET", "/admin/queues/billing.tax")).paused, false);
});

test("each queue has its actions in its row", async (t) => {
  const page = await view(t, at("queues"));
  await page.getByRole("button", { name: "What to do with media.cut" }).click();
  const dialog = page.getByRole("dialog", { name: "media.cut" });
  await dialog.getByRole("button", { name: "Pause" }).click();
  await dialog.getByRole("button", { name: "Resume" }).click();
  await checkAccess(page);
  await dialog.getByRole("button", { name: "Replay dead letters" }).click();
  const job = page.getByRole("dialog", { name: "Replay the dead letters of media.cut" });
  await job.getByText("1 task").waitFor();
  await job.getByRole("button", { name: "Replay" }).click();
  await page.getByText("1 task replayed.").waitFor();
  assert.equal((await server.ask("GET", `/tasks/${dead}`)).status, "PENDING");
  await dialog.getByRole("link", { name: "Settings" }).click();
  await page.getByLabel("Attempts").waitFor();
});

test("a queue that works as fast in each second has no second without work", async (t) => {
  const page = await view(t, at("system")), totalSlot = 2 ** 32 - 1;
  let slot, tick;
  await page.routeWebSocket(/events$/, (socket) => {
    const far = socket.connectToServer();
    tick = (ms, ...rows) => socket.send(JSON.stringify([{ type: "tick", id: "queues", t: ms, queues: rows }]));
    far.onMessage((text) => {
      if (slot !== undefined) return; // from here on the test tells the figures
      socket.send(text);
      for (const f of JSON.parse(text)) for (const q of f.queues ?? []) if (q[2] === "solo") slot = q[0];
    });
  });
  await page.goto(at("queue/solo"));
  await page.reload();
  await page.getByRole("button", { name: "Table" }).first().click();
  const second = Math.ceil(Date.now() / 1000) * 1000 + 1000;
  const figures = [1, 0, 0, 0, 0, 5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0], of = (s) => [s, ...figures];
  const rows = page.getByRole("region", { name: "Throughput as a table" }).locator("tbody tr");
  tick(second, of(slot), of(totalSlot));
  for (const n of [1, 2, 3]) tick(second + n * 1000, [totalSlot, n, ...figures.slice(1)]); // the row of the queue is as it was
  tick(second + 4000, [slot, ...figures.map((n, i) => (i > 4 ? 0 : n))]);
  await rows.nth(3).waitFor();
  assert.deepEqual((await rows.locator("td:nth-child(2)").allInnerTexts()).slice(0, 4), ["5", "5", "5", "5"]);
});

test("a task that its concurrency key holds back says so, in its list, its queue and by itself", async (t) => {
  await server.ask("PUT", "/admin/queues/sync.crm", { perKey: { inProgress: 1 } });
  const ids = [];
  for (const key of ["customer 7", "customer 7", "customer 8"]) ids.push((await server.post("sync.crm", 1, { concurrencyKey: key })).id);
  await server.ask("POST", "/tasks/claim", { commands: ["sync.crm"], workerId: "crm" });
  const page = await view(t, at("queue/sync.crm"));
  await page.getByRole("figure").filter({ hasText: "Backlog" }).getByText("limited 1").waitFor();
  await checkAccess(page);
  await page.goto(at("queues"));
  await page.getByRole("link", { name: "1 limited" }).click();
  await page.getByRole("link", { name: /ready 1 \+ 1 limited/ }).waitFor();
  const row = page.getByRole("row").filter({ hasText: "waits for its key" });
  await row.getByText("customer 7").waitFor();
  await checkAccess(page);
  await row.getByRole("link").first().focus();
  await page.keyboard.press("Enter");
  await page.getByText("Its key customer 7 is at its limit: 1 task of it is in progress, at most 1 may be.").waitFor();
  await checkAccess(page);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("It was cancelled.").waitFor();
  assert.equal((await server.ask("GET", `/tasks/${ids[1]}`)).status, "CANCELLED");
});

test("the limits of a key are settings of the queue, by keyboard alone", async (t) => {
  await server.post("sync.erp");
  const page = await view(t, at("queue/sync.erp?tab=settings"), { expected: [/400/] });
  await page.getByLabel("In progress, a key").focus();
  await page.keyboard.type("many");
  await page.getByLabel("Starts a second, a key").focus();
  await page.keyboard.type("5");
  await page.getByText("perKey.inProgress: no limit → many").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "inProgress" }).waitFor();
  await page.getByLabel("In progress, a key").fill("2");
  await page.keyboard.press("Enter");
  await page.getByText("hold on every shard").waitFor();
  assert.deepEqual((await server.ask("GET", "/admin/queues/sync.erp")).perKey, { inProgress: 2, startsPerSecond: 5 });
});

test("queues of the server itself are shown to who asks for them", async (t) => {
  const { id } = await server.post("solo.hook", 1, { webhook: "http://127.0.0.1:1/" });
  await server.ask("POST", `/tasks/${id}/cancel`);
  const page = await view(t, at("queues"));
  await page.getByRole("button", { name: "Of the server" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "codeq.webhook" }).count(), 0);
  await page.getByRole("button", { name: "Of the server" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "codeq.webhook" }).click();
  await page.getByRole("heading", { name: "codeq.webhook" }).waitFor();
  assert.deepEqual(await page.locator(".tabs a").allInnerTexts().then((all) => all.map((s) => s.split(" ")[0].toLowerCase())), ["now", "tasks", "dead", "workers"]);
  assert.equal(await page.getByRole("button", { name: "Enqueue" }).count(), 0);
  await page.goto(at(`task/${id}`));
  await page.getByRole("link", { name: "see its attempts" }).click();
  await page.locator("main").getByRole("link", { name: "codeq.webhook" }).waitFor();
});

test("rows that were out of sight are whole when they come back, and change then as before", async (t) => {
  await server.ask("POST", "/tasks/batch", { tasks: Array.from({ length: 90 }, (_, n) => ({ command: `many.q${n + 10}`, payload: n })) });
  const page = await view(t, at("queues?sort=queue&flat=1"));
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "many.q10", exact: true }) });
  await row.waitFor();
  const cells = () => row.getByRole("cell").allInnerTexts();
  await page.waitForFunction(() => [...document.querySelectorAll("tr")].find((r) => r.textContent.includes("many.q10"))?.cells[2].textContent === "1");
  const before = await cells();
  for (const y of [1e6, 0, 1e6, 0]) {
    await page.evaluate((y) => scrollTo(0, y), y);
    await (y ? page.getByRole("link", { name: "many.q99", exact: true }) : row).waitFor();
  }
  assert.deepEqual((await cells()).slice(0, 6), before.slice(0, 6));
  await server.post("many.q10");
  await row.getByRole("link", { name: "2", exact: true }).waitFor();
});
