// The documents as `codeq docs` makes them, opened from a directory.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkAccess, program, view } from "./kit.mjs";

const dir = mkdtempSync(join(tmpdir(), "codeq-docs-"));
after(() => rmSync(dir, { recursive: true }));
execFileSync(program, ["docs", "--write", dir, "--quiet"]);
const home = `file://${dir}/index.html`;

test("the keyboard alone finds a section", async (t) => {
  const page = await view(t, home);
  await page.keyboard.press("/");
  await page.keyboard.type("webhooks of a tenant");
  await page.getByRole("link", { name: /^Webhooks › Webhooks of a tenant/ }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/docs\/webhooks\.html#webhooks-of-a-tenant$/);
  for (const word of ["storage_full", "--retention"]) {
    await page.keyboard.press("/");
    await page.locator(".search input").fill(word);
    await page.locator("#found a").first().waitFor();
    await page.keyboard.press("Escape");
  }
  await page.keyboard.press("/");
  await page.locator(".search input").fill("lease zzyzx");
  await page.getByText("No page has all of these words.").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#found").isVisible(), false);
});

test("one search finds what people come for", async (t) => {
  const page = await view(t, home);
  for (const [words, name] of [
    ["disk full", "disk-full"], ["disaster", "backup"], ["bytes of a task", "sizing"], ["export everything", "leaving"], ["support", "state"],
    ["postgres", "comparison"], ["migrating sidekiq", "guides/from-sidekiq"], ["take-back", "reference/"], ["metrics", "reference/metrics"],
  ]) {
    await page.keyboard.press("/");
    await page.locator(".search input").fill(words);
    await page.locator(`#found li:nth-child(-n + 3) a[href*="docs/${name}"]`).first().waitFor({ timeout: 30_000 });
    await page.keyboard.press("Escape");
  }
});

test("pages lead on, and a telephone shows the text first", async (t) => {
  const page = await view(t, home, { width: 390, height: 800 });
  assert.equal(await page.locator(".pages ul").first().isVisible(), false);
  await page.getByText("All pages").click();
  await page.getByRole("navigation", { name: "All pages" }).getByRole("link", { name: "Webhooks", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
  await page.locator("footer a[rel=next]").click();
  await page.waitForURL((url) => !url.pathname.endsWith("webhooks.html"));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert(wide <= 0, `the page is ${wide} pixels wider than the screen`);
});

test("served pages are for everybody, light and dark", async (t) => {
  const served = spawn(program, ["docs", "--quiet"], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    served.kill("SIGINT");
    await once(served, "exit");
  });
  const [address] = await once(served.stdout, "data");
  for (const dark of [false, true]) {
    await checkAccess(await view(t, `${String(address).trim()}docs/webhooks.html`, { dark }));
  }
});
