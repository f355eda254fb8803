// What the tests share: a server of their own on a free port, which can be killed and started again.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { Codeq } from "codeq";

export const program = process.env.CODEQ ?? new URL("../../../bin/codeq", import.meta.url).pathname;

export async function freePort() {
  const s = createServer().listen(0, "127.0.0.1");
  await once(s, "listening");
  const { port } = s.address();
  s.close();
  await once(s, "close");
  return port;
}

export class Server {
  static async start(...flags) {
    const s = new Server();
    s.dir = mkdtempSync(join(tmpdir(), "codeq-sdk-"));
    s.port = 0;
    s.flags = flags;
    after(async () => {
      await s.kill();
      rmSync(s.dir, { recursive: true, maxRetries: 5 });
    });
    await s.begin();
    return s;
  }

  async begin() {
    this.process = spawn(program, ["serve", "--json", "--listen", `127.0.0.1:${this.port}`, "--data", this.dir, ...this.flags], { stdio: ["ignore", "pipe", "pipe"] });
    this.log = "";
    this.process.stderr.on("data", (d) => (this.log += d));
    const ended = once(this.process, "exit").then(() => assert.fail(`the server ended: ${this.log}`));
    ended.catch(() => {}); // later it may
    const [line] = await Promise.race([once(this.process.stdout, "data"), ended]);
    this.url = JSON.parse(line).url;
    this.port = Number(new URL(this.url).port);
  }

  async end(signal) {
    if (this.process.exitCode !== null || this.process.signalCode) return;
    const ended = once(this.process, "exit");
    this.process.kill(signal);
    await ended;
  }

  kill() {
    return this.end("SIGKILL");
  }

  async admin(method, path, body) {
    const r = await fetch(`${this.url}/v1/codeq${path}`, { method, body: body && JSON.stringify(body) });
    const text = await r.text();
    assert(r.ok, `${method} ${path}: ${r.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** A client whose notices a test can read. */
  client(options = {}) {
    const notices = [];
    const client = new Codeq({ url: this.url, notice: (text) => notices.push(text), ...options });
    return Object.assign(client, { notices });
  }
}

/** Events of a worker that a test waits for. */
export class Events {
  all = [];
  #heard = [];

  push = (event) => {
    this.all.push(event);
    for (const check of this.#heard) check();
  };

  /** until resolves with the n-th event that fits. */
  until(fits, n = 1) {
    return new Promise((done, fail) => {
      const late = setTimeout(() => fail(new Error(`no such event; there were ${JSON.stringify(this.all.map((e) => e.type ?? e))}`)), 60_000);
      const check = () => {
        const found = this.all.filter(fits)[n - 1];
        if (found === undefined) return;
        clearTimeout(late);
        this.#heard = this.#heard.filter((c) => c !== check);
        done(found);
      };
      this.#heard.push(check);
      check();
    });
  }

  of(type, n = 1) {
    return this.until((e) => e.type === type, n);
  }
}

/** A promise that a test keeps itself. */
export function gate() {
  let open;
  const opened = new Promise((done) => (open = done));
  return { opened, open };
}

/** A proxy in front of a server, which a test can cut, hold and make refuse. */
export class Proxy {
  static async start(to) {
    const p = new Proxy();
    p.sockets = new Set();
    p.opened = 0;
    p.server = createServer((client) => {
      if (p.refusing) return client.destroy();
      p.opened++;
      const up = connect(to, "127.0.0.1");
      for (const [a, b, way] of [[client, up, "up"], [up, client, "down"]]) {
        p.sockets.add(a);
        a.on("error", () => {});
        a.on("close", () => (p.sockets.delete(a), b.destroy()));
        a.on("data", (d) => {
          if (p.held) return;
          const seen = p.see?.(way, d);
          if (seen !== true) b.write(seen || d); // else the test has swallowed it
        });
      }
    }).listen(0, "127.0.0.1");
    await once(p.server, "listening");
    p.url = `http://127.0.0.1:${p.server.address().port}`;
    after(() => (p.cut(), p.server.close()));
    return p;
  }

  /** cut breaks every connection. */
  cut() {
    for (const s of this.sockets) s.destroy();
  }
}
