// Each page, and each action by mouse or by keyboard.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const server = await Server.start();
const dead = [];
for (const reason of ["no such customer 17", "no such customer 18", "no such customer 19", "timeout talking to 10.0.0.9:443"]) {
  dead.push(await server.bury("billing.invoice", reason));
}
const delayed = (await server.post("billing.invoice", { order: 1 }, { delaySeconds: 600 })).id;
const ready = (await server.post("mail.send", { to: "ada@example.org", tags: ["a", "b"] })).id;
const at = (hash) => `${server.origin}/ui/#/${hash}`;

const pages = {
  overview: ["", "Needs you"], queues: ["queues", "mail.send"], queue: ["queue/billing.invoice", "Throughput"],
  tasks: ["queue/billing.invoice?tab=tasks&state=dlq", "no such customer 17"], dead: ["dead", "no such customer #"],
  "dead letters of a queue": ["queue/billing.invoice?tab=dead", "no such customer #"], settings: ["queue/billing.invoice?tab=settings", "Attempts"],
  task: [`task/${dead[0]}`, "It failed 1 of 1 times"], find: ["find?error=customer", "no such customer 17"], worker: ["worker/gravedigger", "It has no session now"], workers: ["workers", "No session is open"], live: ["live", "Nothing has happened"],
  system: ["system", "messages wait"], limits: ["limits", "Tasks that wait"],
};

for (const [name, [hash, text]] of Object.entries(pages)) {
  test(`the page ${name} can be used by everybody, in both colours`, async (t) => {
    const page = await view(t, at(hash));
    await page.locator("main").getByText(text).first().waitFor();
    await checkAccess(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await checkAccess(page);
  });
}

test("every page fits a telephone", async (t) => {
  const page = await view(t, at(""), { width: 390, height: 844 });
  for (const [name, [hash, text]] of Object.entries(pages)) {
    await page.goto(at(hash));
    await page.locator("main").getByText(text).first().waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(wide <= 390, `${name} is ${wide} pixels wide`);
  }
});

test("on a telephone nothing lies over a number, and the names stay when the rows are pushed aside", async (t) => {
  const page = await view(t, at("queues"), { width: 390, height: 844 });
  const name = page.getByRole("link", { name: "billing.invoice" }).first();
  await name.waitFor();
  const hidden = () => page.evaluate(() => [...document.querySelectorAll(".rows tbody td.n")].filter((cell) => {
    const box = cell.getBoundingClientRect(), seen = document.elementFromPoint(box.right - 2, (box.top + box.bottom) / 2);
    return box.width > 0 && box.left > 180 && box.right < 389 && seen && !cell.contains(seen) && !seen.contains(cell);
  }).length);
  assert.equal(await hidden(), 0);
  await page.evaluate(() => { for (const e of document.querySelectorAll("*")) if (e.scrollWidth > e.clientWidth + 50) e.scrollLeft = 200; });
  assert((await name.boundingBox()).x >= 0, "the name has gone");
});

test("each sentence of the overview leads to what can be done about it", async (t) => {
  const page = await view(t, at(""));
  assert.match(await page.title(), /overview · codeq$/);
  const need = page.getByRole("listitem").filter({ hasText: /billing\.invoice has \d dead letter/ });
  await need.getByRole("link", { name: "See why, and replay" }).click();
  await page.getByText("timeout talking to #").waitFor();
  assert.match(await page.title(), /billing.invoice · codeq$/);
});

test("a queue is paused and resumed by mouse", async (t) => {
  const page = await view(t, at("queue/mail.send"));
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("mail.send is paused: no worker").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("mail.send goes on").waitFor();
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
});

test("the keyboard alone finds a queue, opens a task and cancels it", async (t) => {
  const page = await view(t, at(""));
  await page.getByText("Needs you").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("mail");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "mail.send" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await page.getByRole("heading", { name: "Queues" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("mail");
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "mail.send" }).first().waitFor(); // before it comes, no other is there either
  await page.getByRole("link", { name: "billing.invoice" }).waitFor({ state: "detached" });
  await page.keyboard.press("j");
  await page.locator("tr.at").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "mail.send" }).waitFor();
  await page.goto(at("queue/mail.send?tab=tasks&state=ready"));
  await page.getByText(`…${ready.slice(-8)}`).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByText("No worker is there for its queue").waitFor();
  await page.getByRole("button", { name: "Cancel" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("It was cancelled.").waitFor();
  assert.equal((await server.ask("GET", `/tasks/${ready}`)).status, "CANCELLED");
});

test("a delayed task is run now, and the page shows the event", async (t) => {
  const page = await view(t, at(`task/${delayed}`));
  await page.getByText("It waits for its time").waitFor();
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByText("No worker is there for its queue").waitFor();
});

test("a group of dead letters is counted, then replayed", async (t) => {
  const page = await view(t, at("dead"));
  const row = page.getByRole("listitem").filter({ hasText: "no such customer #" });
  await row.getByRole("button", { name: "Replay" }).click();
  const dialog = page.getByRole("dialog", { name: "Replay a group of billing.invoice" });
  await dialog.getByText("3 tasks").waitFor();
  await dialog.getByRole("button", { name: "Replay" }).click();
  await page.getByText("3 tasks replayed.").waitFor();
  await row.waitFor({ state: "detached" });
  assert.equal((await server.ask("GET", "/admin/queues/billing.invoice")).dlq, 1);
});

test("chosen tasks are cancelled one by one", async (t) => {
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await server.post("bulk.a", i)).id);
  const page = await view(t, at("queue/bulk.a?tab=tasks&state=ready"));
  await page.getByLabel(`Choose ${ids[0]}`).check();
  await page.getByLabel(`Choose ${ids[2]}`).check();
  await page.getByRole("group", { name: "With the chosen tasks" }).getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByText("2 tasks cancelled.").waitFor();
  assert.deepEqual(await Promise.all(ids.map(async (id) => (await server.ask("GET", `/tasks/${id}`)).status)), ["CANCELLED", "PENDING", "CANCELLED"]);
});

test("settings show what would change, and a refusal has the sentence of the server", async (t) => {
  const page = await view(t, at("queue/billing.invoice?tab=settings"), { expected: [/400/] });
  await page.getByLabel("Attempts").fill("0");
  await page.getByText("maxAttempts: 5 (server) → 0").waitFor();
  await page.getByRole("button", { name: "Set 1" }).click();
  await page.getByRole("alert").filter({ hasText: "maxAttempts" }).waitFor();
  await page.getByLabel("Attempts").fill("7");
  await page.getByRole("button", { name: "Set 1" }).click();
  await page.getByText("hold on every shard").waitFor();
  assert.equal((await server.ask("GET", "/admin/queues/billing.invoice")).maxAttempts, 7);
});

test("events come while they happen", async (t) => {
  const page = await view(t, at("live?commands=tail.*"));
  await page.getByText("Nothing has happened").waitFor();
  await page.waitForFunction(() => document.querySelector(".dot.live"));
  await server.post("tail.one");
  await page.getByRole("cell", { name: "came in" }).waitFor();
  await page.getByRole("link", { name: "tail.one" }).waitFor();
});

test("what strangers sent is shown as text", async (t) => {
  const evil = { html: "</script><img src=x onerror=alert(1)>", turned: "abc\u202edcba", control: "a\u0007b", "<b>key</b>": "\u0000" };
  const task = await server.post("evil.queue", evil);
  const big = await server.post("evil.queue", "x".repeat((1 << 20) - 2));
  const id = await server.bury("evil.queue", "<script>alert(1)</script>\u202e\u0007");
  const page = await view(t, at(`task/${task.id}`));
  page.on("dialog", () => assert.fail("the page ran what a stranger sent"));
  for (const text of ['"</script><img src=x onerror=alert(1)>"', '"abc\\u202edcba"', '"a\\u0007b"']) {
    await page.getByText(text).first().waitFor(); // in the tree
    await page.getByRole("group", { name: "As curl" }).getByText(text).waitFor();
  }
  await page.goto(at(`task/${big.id}`));
  await page.getByRole("button", { name: "Show all 1,048,576 characters" }).click();
  await page.goto(at(`task/${id}`));
  await page.getByText("<script>alert(1)</script>\\u202e\\u0007").first().waitFor();
});

test("limits of a tenant are set, shown with what they use, and removed", async (t) => {
  const page = await view(t, at("limits"), { expected: [/429|409/] });
  await page.getByLabel(/^Tasks that wait/).fill("1");
  await page.getByLabel("Sessions, each").fill("20");
  await page.getByText("perCredential.sessions: no limit → 20").waitFor();
  await page.getByRole("button", { name: "Set 2" }).click();
  await page.getByText("The limits of default hold.").waitFor();
  const table = page.getByRole("table", { name: "Tenants with limits" });
  await table.getByText(/ of 1$/).waitFor();
  await checkAccess(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccess(page);
  const { pendingTasks, perCredential, version } = await server.ask("GET", "/admin/limits/default");
  assert.deepEqual([pendingTasks, perCredential], [1, { sessions: 20 }]);
  // Somebody else changes them meanwhile: the page does not undo that.
  await server.ask("PUT", "/admin/limits/default", { weight: 3, version });
  await page.getByLabel("Turns").fill("5");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Remove all limits" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("default has no limits.").waitFor();
  await table.waitFor({ state: "detached" });
});

test("how long tasks waited is a map, of what the server remembers and of what happens now", async (t) => {
  for (let n = 0; n < 3; n++) {
    await server.post("heat.one", n);
    await server.ask("POST", "/tasks/claim", { commands: ["heat.one"], workerId: "stove" });
  }
  const page = await view(t, at("queue/heat.one"));
  const map = page.getByRole("figure").filter({ hasText: "How long tasks waited" });
  await map.getByRole("button", { name: "Table" }).focus();
  await page.keyboard.press("Enter");
  const given = () => map.locator("tbody td.n").allInnerTexts().then((all) => all.reduce((n, s) => n + (Number(s) || 0), 0));
  const sees = (n) => page.waitForFunction((n) => [...document.querySelectorAll(".numbers tbody td.n")].reduce((sum, d) => sum + (Number(d.textContent) || 0), 0) === n, n);
  await sees(3);
  await server.post("heat.one", 4);
  await server.ask("POST", "/tasks/claim", { commands: ["heat.one"], workerId: "stove" });
  await sees(4);
  assert.equal(await given(), 4);
  await checkAccess(page);
});

test("a chart shows the figures of the time under the pointer, in every chart", async (t) => {
  const page = await view(t, at(""));
  const chart = page.getByRole("img", { name: "Throughput over time" });
  await chart.waitFor();
  const painted = () => chart.evaluate((c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v > 0).length);
  await page.waitForFunction(() => document.querySelector("canvas").width > 200);
  assert((await painted()) > 500, "the chart is empty");
  await chart.hover({ position: { x: 300, y: 60 } });
  await page.locator(".legend li.muted").nth(3).waitFor();
  const times = await page.locator(".legend li.muted").allInnerTexts();
  assert.match(times[0], /^\d\d:\d\d:\d\d$/);
  assert(times.every((s) => s === times[0]), `the charts show ${times}`);
  await page.mouse.move(2, 2);
  await page.locator(".legend li.muted").first().waitFor({ state: "detached" });
});
