// Tasks are found by what is known of them, and lists of tasks are live.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const server = await Server.start();
const at = (hash) => `${server.origin}/ui/#/${hash}`;
const acme = [];
for (let i = 0; i < 3; i++) acme.push((await server.post(`crm.${"abc"[i]}`, { n: i }, { labels: { customer: "acme", run: `r${i}` } })).id);
await server.post("crm.a", { n: 9 }, { labels: { customer: "other" } });
await server.bury("crm.dead", "timeout talking to 10.0.0.1");
await server.bury("crm.dead", "no such customer 17");

test("the page Find can be used by everybody, in both colours", async (t) => {
  for (const [hash, text] of [["find", "What do you know"], ["find?label=customer%3Dacme", "3 looked at, 3 found"], ["find?error=timeout&state=dlq", "timeout talking"]]) {
    const page = await view(t, at(hash));
    await page.locator("main").getByText(text).first().waitFor();
    await checkAccess(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await checkAccess(page);
  }
});

test("the keyboard alone finds tasks by a label and a text, and the address has it all", async (t) => {
  const page = await view(t, at("system"));
  await page.getByText("messages wait").waitFor();
  await page.keyboard.press("/");
  await page.getByRole("heading", { name: "Find tasks" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("customer=acme\n");
  await page.getByText("3 looked at, 3 found").waitFor();
  await page.keyboard.type("command:crm.b\n");
  await page.getByText("3 looked at, 1 found").waitFor();
  assert.match(page.url(), /find\?label=customer%3Dacme&command=crm.b$/);
  await page.reload();
  await page.getByText("3 looked at, 1 found").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.press("Backspace");
  await page.getByText("3 looked at, 3 found").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Facts" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("timeout");
  await page.keyboard.press("Enter");
  await page.getByText("timeout talking to 10.0.0.1", { exact: true }).waitFor();
});

test("a click on a label finds its tasks, and a chip takes a part of the filter away", async (t) => {
  const page = await view(t, at(`task/${acme[0]}`));
  await page.getByRole("link", { name: "customer=acme" }).click();
  await page.getByText("3 looked at, 3 found").waitFor();
  await page.getByRole("link", { name: "run=r1" }).click();
  await page.getByText("1 looked at, 1 found").waitFor();
  await page.getByRole("button", { name: "Take away: Label run=r1" }).click();
  await page.getByText("What do you know of the task?").waitFor();
});

test("a search goes on where it stopped, and says how many tasks it looked at", async (t) => {
  for (let i = 0; i < 3; i++) {
    const tasks = Array.from({ length: 1000 }, (_, n) => ({ command: "many.find", payload: i === 2 && n > 995 ? "needle" : n }));
    await server.ask("POST", "/tasks/batch", { tasks });
  }
  const page = await view(t, at("find?command=many.*&attempts=0"));
  await page.getByText("100 looked at, 100 found").waitFor();
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByText("200 looked at, 200 found").waitFor();
  await page.goto(at("find?command=many.*&payload=needle"));
  await page.getByText("3,000 looked at, 4 found").waitFor();
});

test("rows of a list change and leave at their place, and new ones wait until they are taken in", async (t) => {
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await server.post("live.list", i, { labels: { n: `${i}` } })).id);
  const page = await view(t, at("queue/live.list?tab=tasks&state=ready"));
  const row = (id) => page.getByRole("row").filter({ hasText: `…${id.slice(-8)}` });
  await row(ids[2]).waitFor();
  await row(ids[2]).getByText("2", { exact: true }).first().waitFor();
  await page.getByLabel(`Choose ${ids[2]}`).check();
  const before = await row(ids[2]).boundingBox();
  await server.ask("POST", `/tasks/${ids[0]}/cancel`);
  await row(ids[0]).getByText("left").waitFor();
  const late = (await server.post("live.list", 3, { priority: 9 })).id;
  await page.getByRole("button", { name: "▲ 1 new" }).waitFor();
  await server.ask("POST", `/admin/tasks/${ids[1]}/move`, { toPriority: 3 });
  await row(ids[1]).getByRole("cell", { name: "3", exact: true }).waitFor();
  assert.deepEqual(await row(ids[2]).boundingBox(), before);
  assert(await page.getByLabel(`Choose ${ids[2]}`).isChecked());
  await checkAccess(page);
  await page.getByRole("button", { name: "▲ 1 new" }).click();
  await row(late).waitFor();
  await row(ids[0]).waitFor({ state: "detached" });
  assert(await page.getByLabel(`Choose ${ids[2]}`).isChecked());
});

test("all tasks that fit are counted, then moved and cancelled, and the count is told", async (t) => {
  for (let i = 0; i < 150; i++) await server.post("bulk.all", i);
  const page = await view(t, at("queue/bulk.all?tab=tasks&state=ready"));
  await page.getByRole("button", { name: "Priority …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("150 tasks").waitFor();
  await dialog.getByLabel("New priority").selectOption("7");
  await checkAccess(page);
  await dialog.getByRole("button", { name: "Priority" }).click();
  await page.getByText("150 tasks moved.").waitFor();
  await page.getByRole("button", { name: "Cancel …" }).focus();
  await page.keyboard.press("Enter");
  await dialog.getByText("150 tasks").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("150 tasks cancelled.").waitFor();
  await page.getByText("No task is ready").waitFor();
});

test("tasks that a label selects are cancelled one by one, over all queues, and a refusal is told", async (t) => {
  for (let i = 0; i < 5; i++) await server.post(`lab.${i}`, i, { labels: { batch: "x" } });
  const page = await view(t, at("find?label=batch%3Dx&state=ready"), { expected: [/409/] });
  await page.getByRole("button", { name: "Cancel …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("5 tasks").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("5 tasks cancelled.").waitFor();
  const { id } = await server.post("lab.0", 1, { labels: { batch: "x" } });
  await page.getByRole("button", { name: "Read again" }).click();
  await page.getByLabel(`Choose ${id}`).check();
  await server.ask("POST", `/tasks/${id}/cancel`);
  await page.getByRole("group", { name: "With the chosen tasks" }).getByRole("button", { name: "Priority" }).click();
  await dialog.getByRole("button", { name: "Priority" }).click();
  await dialog.getByText("0 of 1 moved, 1 refused.").waitFor();
});

test("what a search found changes as the tasks do", async (t) => {
  const ids = [];
  for (let i = 0; i < 2; i++) ids.push((await server.post("follow.it", i, { labels: { follow: "me" } })).id);
  const page = await view(t, at("find?label=follow%3Dme&state=ready"));
  const row = (id) => page.getByRole("row").filter({ hasText: `…${id.slice(-8)}` });
  await page.getByText("and as its tasks change").waitFor();
  await server.ask("POST", `/admin/tasks/${ids[1]}/move`, { toPriority: 8 });
  await row(ids[1]).getByRole("cell", { name: "8", exact: true }).waitFor();
  await server.ask("POST", `/tasks/${ids[0]}/cancel`);
  await row(ids[0]).getByText("left").waitFor();
  await page.getByText("2 looked at, 2 found").waitFor();
});
