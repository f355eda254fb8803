import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const server = await Server.start();

test("an empty server says how to begin", async (t) => {
  const page = await view(t, `${server.origin}/`);
  await page.getByText("No queue yet").waitFor();
  assert.equal(page.url(), `${server.origin}/ui/`);
  await checkAccess(page);
});

test("the overview shows what happens", async (t) => {
  const page = await view(t, `${server.origin}/ui/`);
  for (let i = 0; i < 3; i++) await server.post("mail.send");
  await page.getByRole("link", { name: "mail.send" }).first().waitFor();
  await page.getByRole("cell", { name: "3", exact: true }).waitFor();
  await page.getByText("in mail.send").waitFor();
  assert.match(await page.locator(".dot").innerText(), /^live · \d/);
});

test("a chart is a table too", async (t) => {
  const page = await view(t, `${server.origin}/ui/`);
  await page.getByRole("button", { name: "Table" }).first().click();
  const table = page.getByRole("region", { name: "Throughput as a table" });
  await table.waitFor();
  for (const q of ["a", "b", "c"]) await server.post(q);
  await page.getByRole("row").filter({ has: page.getByRole("link", { name: "c", exact: true }) }).waitFor();
  // What all queues together had in a second comes from the server, in one row.
  await Promise.all(["a", "b", "c"].map((q) => server.ask("POST", "/tasks/batch", { tasks: Array.from({ length: 40 }, () => ({ command: q, payload: 1 })) })));
  await page.waitForFunction(() => {
    const came = [...document.querySelectorAll(".numbers tbody tr")].map((r) => Number(r.cells[3]?.textContent));
    return came.reduce((n, x) => n + (x || 0), 0) >= 120;
  });
});

test("the page is back after a kill, and says that it was away", async (t) => {
  const page = await view(t, `${server.origin}/ui/`, { expected: [/WebSocket connection|ERR_CONNECTION_REFUSED|Failed to load resource/] });
  await page.locator(".dot.live").waitFor();
  await server.kill();
  await page.locator(".dot.lost").waitFor();
  await page.getByRole("link", { name: "mail.send" }).first().waitFor(); // the last figures stay, and say how old they are
  assert.match(await page.locator(".dot").innerText(), /figures are \d+ s old/);
  await server.begin();
  await page.locator(".dot.live").waitFor();
  await server.post("mail.late");
  await page.getByRole("link", { name: "mail.late" }).first().waitFor();
});

test("sentences stay at their place for who is about to click, and worse ones come first otherwise", async (t) => {
  const page = await view(t, `${server.origin}/ui/`);
  const need = (command, severity, count) => ({ command, tenant: "default", severity, reason: "dead", state: "dlq", count, sentence: `${command} has ${count}` });
  let tell;
  await page.routeWebSocket(/events$/, (socket) => {
    const far = socket.connectToServer();
    far.onMessage((text) => socket.send(JSON.stringify(JSON.parse(text).filter((f) => f.id !== "server"))));
    tell = (...needs) => socket.send(JSON.stringify([{ type: "tick", id: "server", server: {}, needs }]));
  });
  await page.reload();
  await page.locator(".dot.live").waitFor();
  const shown = () => page.locator(".needs li > a:first-of-type").allInnerTexts();
  const sees = async (...want) => {
    await page.getByText(want.at(-1)).waitFor();
    assert.deepEqual(await shown(), want);
  };
  tell(need("a", "warning", 2), need("b", "warning", 1));
  await sees("a has 2", "b has 1");
  tell(need("c", "critical", 1), need("b", "warning", 9), need("a", "warning", 3));
  await page.getByText("b has 9").waitFor();
  await sees("c has 1", "a has 3", "b has 9");
  await page.getByText("b has 9").hover();
  tell(need("d", "critical", 1), need("c", "critical", 1), need("b", "warning", 8), need("a", "warning", 3));
  await sees("c has 1", "a has 3", "b has 8", "d has 1");
  tell(need("d", "critical", 1), need("c", "critical", 1), need("a", "warning", 3));
  await page.getByText("over", { exact: true }).waitFor();
  await sees("c has 1", "a has 3", "b has 8", "d has 1");
  await page.mouse.move(2, 300);
  tell(need("d", "critical", 2), need("c", "critical", 1), need("b", "warning", 7), need("a", "warning", 3));
  await page.getByText("b has 7").waitFor();
  await sees("c has 1", "d has 2", "a has 3", "b has 7");
});
