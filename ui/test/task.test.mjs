// What can be done with one task, one group of dead letters, one worker.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const server = await Server.start();
const at = (hash) => `${server.origin}/ui/#/${hash}`;
const dead = [];
for (const n of [1, 2, 3]) dead.push(await server.bury("film.cut", `no such film ${n}`, { labels: { studio: n < 3 ? "ufa" : "mgm" } }));

test("the page tells how to post a task again, and what it tells works", async (t) => {
  const { id } = await server.post("film.make", { title: "it's \"Metropolis\" \u202e\n" }, { labels: { studio: "ufa" }, priority: 3 });
  const page = await view(t, at(`task/${id}?as=TypeScript`));
  const code = await page.getByRole("group", { name: "As TypeScript" }).innerText();
  await new Function(`return (async () => { ${code} })()`)();
  const found = await server.ask("GET", "/admin/tasks?label=studio%3Dufa&command=film.make");
  assert.equal(found.tasks.length, 2);
  const [a, b] = found.tasks;
  assert.deepEqual([JSON.parse(a.payload), a.priority, a.labels, a.maxAttempts], [JSON.parse(b.payload), b.priority, b.labels, b.maxAttempts]);
  for (const language of ["curl", "Go", "Python"]) {
    await page.getByRole("button", { name: language, exact: true }).click();
    await page.getByRole("group", { name: `As ${language}` }).getByText("Metropolis").waitFor();
  }
  await checkAccess(page);
});

test("a dead letter is edited and posted as a new task, by keyboard alone", async (t) => {
  const page = await view(t, at(`task/${dead[0]}`));
  await page.getByRole("button", { name: "Edit and replay as new" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("stays as it is: a dead letter").waitFor();
  await checkAccess(page);
  await page.getByLabel("Payload, any JSON").focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"why":"mended"}');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByText("The new task is posted.").waitFor();
  await page.getByText("No worker is there for its queue").waitFor();
  await page.getByRole("link", { name: "studio=ufa" }).waitFor();
  assert.equal((await server.ask("GET", `/tasks/${dead[0]}`)).status, "FAILED");
});

test("a group of dead letters shows when it began, who worked on it and its labels", async (t) => {
  const page = await view(t, at("dead"));
  const group = page.getByRole("listitem").filter({ hasText: "no such film #" });
  await group.getByRole("button", { name: "Details" }).click();
  await group.getByText(/They ended between/).waitFor();
  await group.getByText("gravedigger").waitFor();
  await group.getByText("× 2").waitFor();
  await checkAccess(page);
  await group.getByRole("link", { name: "studio=ufa" }).click();
  await page.getByText(/looked at, 2 found/).waitFor();
});

test("a worker has a page with the tasks that it has", async (t) => {
  const { id } = await server.post("film.show", 1);
  await server.ask("POST", "/tasks/claim", { commands: ["film.show"], workerId: "projector" });
  const page = await view(t, at("worker/projector"));
  await page.getByText("It has no session now").waitFor();
  await page.getByText(`…${id.slice(-8)}`).waitFor();
  await checkAccess(page);
});

test("a completed task says with which delivery", async (t) => {
  const { id } = await server.post("film.done", 1);
  const claimed = await server.ask("POST", "/tasks/claim", { commands: ["film.done"], workerId: "cutter" });
  await server.ask("POST", `/tasks/${id}/result`, { status: "COMPLETED", result: { cut: true }, leaseToken: claimed.leaseToken, workerId: "cutter" });
  const page = await view(t, at(`task/${id}`));
  await page.getByText("It completed with its first delivery").waitFor();
  await page.getByText('"cut"').waitFor();
});

test("what a task has made is a list of links, of files of the server and of the web alone", async (t) => {
  const { id } = await server.post("film.files", 1);
  const { leaseToken } = await server.ask("POST", "/tasks/claim", { commands: ["film.files"], workerId: "cutter" });
  const artifacts = [
    { name: "a b/<i>cut</i>.txt", contentBase64: btoa("forty frames"), contentType: "text/plain" }, { name: "poster", url: "https://files.example/poster.png" },
    { name: "plan", url: "JavaScript:alert(1)" },
  ];
  await server.ask("POST", `/tasks/${id}/result`, { status: "COMPLETED", result: {}, artifacts, leaseToken, workerId: "cutter" });
  const page = await view(t, at(`task/${id}`));
  const file = page.getByRole("link", { name: "a b/<i>cut</i>.txt" });
  assert.equal(await (await page.request.get(await file.evaluate((a) => a.href))).text(), "forty frames");
  await page.getByText("text/plain · 12 bytes").waitFor();
  assert.equal(await page.getByRole("link", { name: "poster" }).getAttribute("href"), "https://files.example/poster.png");
  await page.getByText("JavaScript:alert(1)").waitFor();
  assert.equal(await page.getByRole("link", { name: "plan" }).count(), 0);
  await checkAccess(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccess(page);
});

test("a task is taken back from its worker, and the page says who did it", async (t) => {
  const { id } = await server.post("film.stuck", 1);
  await server.ask("POST", "/tasks/claim", { commands: ["film.stuck"], workerId: "hangs" });
  const page = await view(t, at(`task/${id}`));
  await page.getByRole("button", { name: "Take back" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Take the task back from hangs" });
  await dialog.getByText("no attempt counts").waitFor();
  await checkAccess(page);
  await dialog.getByRole("button", { name: "Take back" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("1 task taken back.").waitFor();
  await page.getByText("hangs: taken back by anonymous").waitFor();
  assert.equal((await server.ask("GET", `/tasks/${id}`)).lastKnownLocation, "PENDING_LIST");
});

test("what people did between deliveries stands in the life of a task", async (t) => {
  const { id } = await server.post("film.later", 1, { delaySeconds: 600 });
  await server.ask("POST", `/admin/tasks/${id}/run`);
  await server.ask("POST", `/admin/tasks/${id}/move`, { toPriority: 8 });
  const page = await view(t, at(`task/${id}`));
  await page.getByText("run before its time by anonymous").waitFor();
  await page.getByText("given another priority by anonymous").waitFor();
  await checkAccess(page);
});

test("a session is drained, then disconnected", async (t) => {
  server.work(t, "film.run", "runner", "cat");
  const page = await view(t, at("workers"));
  await page.getByRole("link", { name: "runner" }).click();
  await page.getByRole("button", { name: "Drain" }).click();
  const dialog = page.getByRole("dialog", { name: "Drain the session of runner" });
  await dialog.getByText("It has 0 tasks.").waitFor();
  await checkAccess(page);
  await dialog.getByRole("button", { name: "Drain" }).click();
  await page.getByText("1 session drained.").waitFor();
  await page.getByRole("cell", { name: "draining" }).waitFor();
  const { width, height } = page.viewportSize();
  await page.setViewportSize({ width: 390, height });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await page.setViewportSize({ width, height });
  await page.getByRole("button", { name: "Disconnect" }).focus();
  await page.keyboard.press("Enter");
  await dialog.or(page.getByRole("dialog")).getByRole("button", { name: "Disconnect" }).click();
  await page.getByText("1 session disconnected.").waitFor();
  await page.getByRole("cell", { name: "live" }).waitFor(); // it has connected again
});

test("a group of dead letters is posted anew with a change, without touching a digit of the rest, by keyboard alone", async (t) => {
  for (const n of [1, 2, 3]) await server.bury("film.print", `no such printer ${n}`, { labels: { copy: `${n}` }, priority: 4 + n });
  const page = await view(t, at("dead"));
  const group = page.getByRole("listitem").filter({ hasText: "no such printer #" });
  await group.getByRole("button", { name: "Edit" }).focus();
  await page.keyboard.press("Enter");
  const edit = page.getByRole("dialog", { name: "Edit a group of film.print" });
  const text = edit.getByLabel("Payload, any JSON");
  await page.waitForFunction(() => document.querySelector("dialog[open] textarea").value.includes("why"));
  await checkAccess(page);
  await text.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"why":"no such printer 3","printer":{"id":12345678901234567890}}');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const job = page.getByRole("dialog", { name: "Post a group of film.print anew" });
  await job.getByText('printer: nothing → {"id":12345678901234567890}').waitFor();
  await job.getByText("3 tasks").waitFor();
  await checkAccess(page);
  await job.getByRole("button", { name: "Post them" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("3 tasks posted anew.").waitFor();
  const { tasks } = await server.ask("GET", "/admin/queues/film.print/tasks?state=ready");
  assert.deepEqual(tasks.map((x) => [x.payload, x.priority, x.labels.copy]), [3, 2, 1].map((n) => [`{"why":"no such printer ${n}","printer":{"id":12345678901234567890}}`, 4 + n, `${n}`]));
  assert.equal((await server.ask("GET", "/admin/queues/film.print")).dlq, 3);
  // Once more: nothing is posted twice.
  await group.getByRole("button", { name: "Edit" }).click();
  await page.waitForFunction(() => document.querySelector("dialog[open] textarea").value.includes("why"));
  await text.fill('{"why":"no such printer 3","printer":{"id":12345678901234567890}}');
  await edit.getByRole("button", { name: "See what changes" }).click();
  await job.getByRole("button", { name: "Post them" }).click();
  await job.getByText("0 of 3 posted anew.").waitFor();
  await job.getByText("3 tasks had been posted with this change before.").waitFor();
  assert.equal((await server.ask("GET", "/admin/queues/film.print")).ready, 3);
});
