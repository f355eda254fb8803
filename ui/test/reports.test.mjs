// What a worker says of its task while it works: progress and output on the page of the task.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const server = await Server.start();

/** begin makes a task that a worker has, and returns how that reports. */
async function begin(command, workerId = "renderer") {
  const { id } = await server.post(command);
  const { leaseToken } = await server.ask("POST", "/tasks/claim", { commands: [command], workerId });
  const send = (what, body) => server.ask("POST", `/tasks/${id}/${what}`, { ...body, leaseToken, workerId });
  return { id, url: `${server.origin}/ui/#/task/${id}`, send };
}

test("progress and output come while the worker works, as text whatever they are", async (t) => {
  const task = await begin("film.render"), page = await view(t, task.url);
  page.on("dialog", () => assert.fail("the page ran what a stranger sent"));
  await page.getByText("renderer has had it").waitFor();
  await task.send("progress", { percent: 40, note: "half <b>way</b> \u202e", data: { frame: "</script>" } });
  const progress = page.getByRole("region", { name: "Progress" }), output = page.getByRole("log", { name: "Output" });
  await progress.getByText("half <b>way</b> \\u202e").waitFor();
  await progress.getByText("40 %").waitFor();
  assert.equal(await progress.getByRole("progressbar").getAttribute("value"), "40");
  await progress.getByText('"frame": "</script>"').waitFor();
  await task.send("output", { text: "page 1\r\n\u001b[31m</script><img src=x onerror=alert(1)>\u001b[0m\u0007 \u202eabc\n" });
  await task.send("output", { text: "no space left\n", stream: "stderr" });
  await output.getByText("no space left").waitFor();
  assert.match(await output.innerText(), /^delivery 1, from \d\d:\d\d:\d\d\npage 1\n<\/script><img src=x onerror=alert\(1\)>\\u0007 \\u202eabc\nno space left\n$/);
  await checkAccess(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccess(page);
  await task.send("progress", { percent: 90 });
  await progress.getByText("90 %").waitFor();
  assert.equal(await progress.getByText("half").count(), 0);
  await task.send("nack", { reason: "full", delaySeconds: 0 });
  await server.ask("POST", "/tasks/claim", { commands: ["film.render"], workerId: "second" });
  await progress.getByText("said by delivery 1").waitFor();
  await progress.getByText("the delivery of now has said nothing yet").waitFor();
});

test("output stays at its end unless the person looks further up, and is bounded", async (t) => {
  const task = await begin("film.print"), page = await view(t, task.url);
  const output = page.getByRole("log", { name: "Output" });
  const lines = (n, from) => Array.from({ length: n }, (_, i) => `line ${from + i}\n`).join("");
  await task.send("output", { text: lines(200, 0) });
  await output.getByText("line 199").waitFor();
  const fromEnd = () => output.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight);
  assert((await fromEnd()) < 2);
  await task.send("output", { text: lines(100, 200) });
  await output.getByText("line 299").waitFor();
  assert((await fromEnd()) < 2);
  await output.evaluate((e) => (e.scrollTop = 100));
  await task.send("output", { text: lines(100, 300) });
  await output.getByText("line 399").waitFor();
  assert.equal(await output.evaluate((e) => e.scrollTop), 100);
  for (let n = 0; n < 17; n++) await task.send("output", { text: `${"x".repeat(16_000)} ${n}\n` });
  await output.getByText("What was printed before is gone").waitFor();
  await page.waitForFunction(() => document.querySelector("[role=log]").textContent.includes("x 16"));
  assert(await output.evaluate((e) => e.textContent.length < 270_000));
});

test("the page says what a restart of the server has lost of the output", async (t) => {
  const task = await begin("film.burn"), page = await view(t, task.url, { expected: [/WebSocket connection|ERR_CONNECTION_REFUSED|Failed to load resource/] });
  const output = page.getByRole("log", { name: "Output" });
  await task.send("output", { text: "before\n" });
  await output.getByText("before").waitFor();
  await server.kill();
  await server.begin();
  await page.locator(".dot.live").waitFor();
  await task.send("output", { text: "after\n" });
  await output.getByText("after").waitFor();
  assert.match(await output.innerText(), /before\nWhat was printed before the server started is gone\.\n(delivery 1, from .*\n)?after/);
  const later = await view(t, task.url);
  await later.getByRole("log", { name: "Output" }).getByText("after").waitFor();
  await later.getByText("What was printed before the server started is gone.").waitFor();
});
