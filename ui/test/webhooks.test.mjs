// Webhooks of a tenant: made, tested, enabled again, removed, and what they get.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { checkAccess, Server, until, view } from "./kit.mjs";

const server = await Server.start("--webhook-allow", "127.0.0.1");
let answer = 204;
const got = [];
const receiver = createServer((r, w) => {
  let body = "";
  r.on("data", (d) => (body += d)).on("end", () => {
    got.push({ headers: r.headers, body });
    w.writeHead(answer).end();
  });
}).listen(0, "127.0.0.1");
await once(receiver, "listening");
after(() => receiver.close());
const url = `http://127.0.0.1:${receiver.address().port}/hook`;
const at = (hash) => `${server.origin}/ui/#/${hash}`;

test("a webhook is made by keyboard alone, shows its secret once, is tested and gets outcomes", async (t) => {
  const page = await view(t, at("webhooks"));
  await page.getByText("This tenant has no webhooks").waitFor();
  await checkAccess(page);
  await page.getByLabel("Name of a new webhook").focus();
  await page.keyboard.type("billing");
  await page.keyboard.press("Enter");
  await page.getByLabel("URL").focus();
  await page.keyboard.type(url);
  await page.getByLabel("Queues").focus();
  await page.keyboard.type("order.*,build");
  await page.getByText("commands: all → order.*,build").waitFor();
  await checkAccess(page);
  await page.keyboard.press("Enter");
  await page.getByText(/whsec_/).first().waitFor();
  await page.getByText("The webhook billing is set.").waitFor();
  assert.deepEqual((await server.ask("GET", "/admin/webhooks/billing")).commands, ["order.*", "build"]);
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText(/billing answered 204 after \d+ ms/).waitFor();
  assert.equal(got.length, 1);
  const { id } = await server.post("order.new", 1);
  await server.ask("POST", `/tasks/${id}/cancel`);
  await page.reload();
  await page.getByRole("row").filter({ hasText: id.slice(0, 8) }).first().or(page.getByRole("table", { name: "Tasks" }).getByRole("row").nth(1)).first().waitFor();
  assert.equal(await page.getByText(/whsec_/).count(), 0);
  await page.emulateMedia({ colorScheme: "dark" });
  await checkAccess(page);
});

test("a webhook that answers 410 is disabled, says so, is enabled again, and a callback is posted again", async (t) => {
  answer = 410;
  const { id } = await server.post("order.gone", 1);
  await server.ask("POST", `/tasks/${id}/cancel`);
  const page = await view(t, at("webhooks"));
  await until(async () => (await server.ask("GET", "/admin/webhooks/billing")).state === "disabled");
  await page.reload();
  const row = page.getByRole("row").filter({ hasText: "billing" });
  await row.getByText(/disabled/).waitFor();
  await checkAccess(page);
  answer = 204;
  const before = got.length;
  await row.getByRole("button", { name: "Enable" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("billing is enabled: what waits for it is posted.").waitFor();
  await row.getByText("enabled", { exact: true }).waitFor();
  await until(() => got.length > before);
  await page.goto(at(`task/${id}`));
  await page.getByRole("link", { name: "see its attempts" }).click();
  await page.getByText("It completed").waitFor();
  const sent = got.length;
  await page.getByRole("button", { name: "Post again" }).click();
  await page.getByText("It is posted again.").waitFor();
  await until(() => got.length > sent);
  assert.equal(got.at(-1).headers["webhook-id"], got.at(-2).headers["webhook-id"]);
  await page.goto(at("webhooks/billing"));
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  await page.getByText("The webhook billing is removed.").waitFor();
  assert.deepEqual((await server.ask("GET", "/admin/webhooks")).webhooks, []);
});
