// Measures one worker process and one producer process of this SDK and of the Go SDK, in turn, each with a
// server of its own: node bench/bench.mjs [TASKS=100000] [WINDOW=256] [ROUNDS=3]. Needs `make build` and Go.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";

const [tasks = 100_000, window = 256, rounds = 3] = process.argv.slice(2).map(Number);
const home = new URL("..", import.meta.url).pathname;
const program = process.env.CODEQ ?? join(home, "../../bin/codeq");
const dir = mkdtempSync(join(tmpdir(), "codeq-bench-"));
const gopeer = join(dir, "gopeer");
const root = join(home, "../.."), source = mkdtempSync(join(root, "bin/gopeer-")); // in the module, where git does not look
copyFileSync(join(home, "bench/gopeer.go.txt"), join(source, "main.go"));
execFileSync("go", ["build", "-o", gopeer, `./${relative(root, source)}`], { cwd: root });
rmSync(source, { recursive: true });

function start(command, args, env = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const waiting = new Map();
  lines.on("line", (line) => (waiting.get(line) ?? waiting.get("*"))?.(line));
  return { child, line: (text) => new Promise((done) => waiting.set(text, done)), ended: once(child, "exit") };
}

/** measure returns tasks a second, from the first post to the last outcome. */
async function measure(peer, round) {
  const data = join(dir, `${peer.name}-${round}`);
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const server = spawn(program, ["serve", "--listen", `127.0.0.1:${port}`, "--data", data], { stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/readyz`).then((r) => r.ok, () => false))) await new Promise((done) => setTimeout(done, 50));
  const args = (role) => [...peer.args, role, "bench", String(tasks), String(window)];
  const worker = start(peer.command, args("worker"), { CODEQ_URL: url });
  while ((await (await fetch(`${url}/v1/codeq/admin/sessions`)).json()).sessions[0]?.window !== window) await new Promise((done) => setTimeout(done, 50));
  const done = worker.line("done");
  const producer = start(peer.command, args("producer"), { CODEQ_URL: url });
  await producer.line("began");
  const began = performance.now();
  const posted = producer.line("posted").then(() => performance.now() - began);
  await done;
  const took = performance.now() - began;
  await Promise.all([worker.ended, producer.ended]);
  server.kill();
  await once(server, "exit");
  rmSync(data, { recursive: true });
  return { rate: (tasks / took) * 1000, posts: (tasks / (await posted)) * 1000 };
}

const peers = [
  { name: "go", command: gopeer, args: [] },
  { name: "typescript", command: process.execPath, args: [...process.execArgv, join(home, "bench/peer.mjs")] },
];
try {
  for (let round = 1; round <= rounds; round++) {
    const [go, ts] = [await measure(peers[0], round), await measure(peers[1], round)];
    const text = (m) => `${Math.round(m.rate)} tasks/s (posted at ${Math.round(m.posts)}/s)`;
    console.log(`round ${round}: go ${text(go)}, typescript ${text(ts)}, ratio ${(ts.rate / go.rate).toFixed(2)}`);
  }
} finally {
  rmSync(dir, { recursive: true });
}
