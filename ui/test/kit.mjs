// What the browser tests share: a server of their own on a free port, and a page that fails on any
// error in its console.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { chromium } from "playwright-core";

export const program = process.env.CODEQ ?? new URL("../../bin/codeq", import.meta.url).pathname;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"], // CI runs as root
});
after(() => browser.close());

async function freePort() {
  const s = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => s.once("listening", done));
  const { port } = s.address();
  await new Promise((done) => s.close(done));
  return port;
}

/** A server with a directory of its own. It can be killed and started again on the same port. */
export class Server {
  static async start(...flags) {
    return this.over(mkdtempSync(join(tmpdir(), "codeq-ui-")), ...flags);
  }

  /** The first node of a cluster. */
  static async node() {
    const dir = mkdtempSync(join(tmpdir(), "codeq-ui-"));
    const [code] = await once(spawn(program, ["cluster", "init", "--data", dir, "--address", `127.0.0.1:${await freePort()}`], { stdio: "ignore" }), "exit");
    assert.equal(code, 0);
    return this.over(dir);
  }

  static async over(dir, ...flags) {
    const s = new Server();
    s.dir = dir;
    s.port = 0;
    s.flags = flags;
    after(async () => {
      await s.kill();
      rmSync(s.dir, { recursive: true });
    });
    await s.begin();
    return s;
  }

  /** A server that `codeq demo` starts, fills and removes. */
  static async demo() {
    const s = new Server();
    const demo = spawn(program, ["demo", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
    after(async () => {
      demo.kill("SIGINT");
      if (demo.exitCode === null) await once(demo, "exit");
    });
    s.origin = JSON.parse((await once(demo.stdout, "data"))[0]).url;
    return s;
  }

  async begin() {
    this.process = spawn(program, ["serve", "--json", "--listen", `127.0.0.1:${this.port}`, "--data", this.dir, ...this.flags], { stdio: ["ignore", "pipe", "ignore"] });
    const ended = once(this.process, "exit").then(() => assert.fail("the server ended"));
    ended.catch(() => {}); // later it may
    const [line] = await Promise.race([once(this.process.stdout, "data"), ended]);
    this.origin = JSON.parse(line).url;
    this.port = Number(new URL(this.origin).port);
  }

  kill() {
    const ended = new Promise((done) => this.process.exitCode !== null || this.process.signalCode ? done() : this.process.once("exit", done));
    this.process.kill("SIGKILL");
    return ended;
  }

  async ask(method, path, body) {
    const r = await fetch(`${this.origin}/v1/codeq${path}`, {
      method, body: body && JSON.stringify(body), headers: this.token ? { Authorization: `Bearer ${this.token}` } : {},
    });
    const text = await r.text();
    assert(r.ok, `${method} ${path}: ${r.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  post(command, payload = 1, more = {}) {
    return this.ask("POST", "/tasks", { command, payload, ...more });
  }

  /** A worker with a session, which runs a program for each task until the test is over. */
  work(t, command, name, ...shell) {
    const worker = spawn(program, ["work", command, "--name", name, ...shell], { stdio: "ignore", env: { ...process.env, CODEQ_URL: this.origin } });
    t.after(() => worker.kill("SIGKILL"));
  }

  /** bury makes a dead letter with an error. */
  async bury(command, reason, more = {}) {
    await this.post(command, { why: reason }, { maxAttempts: 1, priority: 9, ...more });
    const t = await this.ask("POST", "/tasks/claim", { commands: [command], workerId: "gravedigger" });
    await this.ask("POST", `/tasks/${t.id}/nack`, { reason, leaseToken: t.leaseToken, workerId: "gravedigger" });
    return t.id;
  }
}

/** view opens a page of the dashboard. errors are what its console said. */
export async function view(t, url, { dark = false, width = 1440, height = 900, expected = [] } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  const errors = [];
  page.on("console", (m) => /error|warning/.test(m.type()) && errors.push(`${m.text()} ${m.location().url}`));
  page.on("pageerror", (e) => errors.push(e.stack));
  page.on("request", (r) => new URL(r.url()).origin !== new URL(url).origin && errors.push(`a request to ${r.url()}`));
  page.on("websocket", (s) => new URL(s.url()).host !== new URL(url).host && errors.push(`a socket to ${s.url()}`));
  page.setDefaultTimeout(60_000);
  await page.goto(url);
  t.after(async () => {
    await page.close();
    assert.deepEqual(errors.filter((e) => !expected.some((x) => x.test(e))), []);
  });
  return page;
}

/** until waits for what has no event. */
export async function until(holds) {
  for (let i = 0; !(await holds()); i++) {
    assert(i < 600, `it did not happen: ${holds}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** checkAccess fails for what people with a screen reader, a keyboard or weak eyes cannot use. */
export async function checkAccess(page) {
  await page.evaluate(axe); // not as a script element, which the policy of the page forbids
  const found = await page.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")}`), []);
}
