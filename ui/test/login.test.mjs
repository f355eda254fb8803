// A server with tokens: a pasted one becomes a cookie, and a credential that only looks changes nothing.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkAccess, Server, view } from "./kit.mjs";

const tokens = { boss: `cq_${"b".repeat(43)}`, guest: `cq_${"g".repeat(43)}` };
const dir = mkdtempSync(join(tmpdir(), "codeq-ui-"));
after(() => rmSync(dir, { recursive: true }));
const entry = (name, scopes) =>
  `- name: "${name}"\n  sha256: "${createHash("sha256").update(tokens[name]).digest("hex")}"\n  tenant: "acme"\n  subject: "${name}"\n` +
  `  scopes: [${scopes}]\n  commands: ["*"]\n`;
const file = join(dir, "tokens.yaml");
writeFileSync(file, entry("boss", '"admin", "producer", "worker"') + entry("guest", '"codeq:read"'), { mode: 0o600 });
const server = await Server.start("--tokens", file);
server.token = tokens.boss;
const expected = [/401|403|WebSocket/];

test("a wrong token is refused with the sentence of the server, a right one opens the page", async (t) => {
  await server.post("mail.send", { secret: "of the producer" });
  const page = await view(t, `${server.origin}/ui/`, { expected });
  await page.getByLabel("Token").fill("cq_wrong");
  await checkAccess(page);
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(tokens.boss);
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "mail.send" }).first().click();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("mail.send is paused").waitFor();
  assert.equal(await page.evaluate(() => document.cookie + JSON.stringify(localStorage) + location.href).then((s) => s.includes(tokens.boss)), false);
  await page.reload();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("mail.send goes on").waitFor();
  await page.getByRole("button", { name: /log out/ }).click();
  await page.getByLabel("Token").waitFor();
});

test("who only looks sees no payload and no action", async (t) => {
  const { id } = await server.post("mail.send", { secret: "of the producer" });
  const page = await view(t, `${server.origin}/ui/#/task/${id}`, { expected });
  await page.getByLabel("Token").fill(tokens.guest);
  await page.keyboard.press("Enter");
  await page.getByText(id).waitFor();
  await page.getByText("looks only").waitFor();
  assert.equal(await page.getByRole("button", { name: "Cancel" }).isVisible(), false);
  assert.equal((await page.content()).includes("of the producer"), false);
});
