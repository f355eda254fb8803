import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { Server, program } from "./kit.mjs";

const run = promisify(execFile);
const home = new URL("..", import.meta.url).pathname;
const tsc = join(home, "node_modules/typescript/bin/tsc");
const dir = mkdtempSync(join(tmpdir(), "codeq-pack-"));
after(() => rmSync(dir, { recursive: true }));

const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", dir], { cwd: home });
const [pack] = Object.values(JSON.parse(stdout.slice(stdout.search(/^[[{]/m))));

/** An empty directory in which the package is installed, and what a user would add. */
const app = join(dir, "app");
mkdirSync(app);
await run("npm", ["init", "-y"], { cwd: app });
await run("npm", ["pkg", "set", "type=module"], { cwd: app });
await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--omit=peer", join(dir, pack.filename)], { cwd: app });
for (const name of ["ws", "@types", "undici-types"]) symlinkSync(join(home, "node_modules", name), join(app, "node_modules", name));

const readme = readFileSync(join(home, "README.md"), "utf8");
const blocks = [...readme.matchAll(/(?:<!-- (file|run): (\S+) -->\n)?```(\w+)\n([\s\S]*?)```/g)].map(([, what, name, language, text]) => ({ what, name, language, text }));

test("the package holds what it exports and nothing else", () => {
  const files = pack.files.map((f) => f.path).sort();
  const modules = ["client", "clock", "errors", "http", "index", "job", "lane", "link", "protocol", "retry", "testing", "watch", "worker"];
  assert.deepEqual(files, ["LICENSE", "README.md", "package.json", ...modules.flatMap((m) => [`dist/${m}.d.ts`, `dist/${m}.js`])].sort());
  assert(pack.size < 64 << 10, `${pack.size} bytes`);
  const { dependencies, peerDependenciesMeta } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  assert.equal(dependencies, undefined);
  assert.equal(peerDependenciesMeta.ws.optional, true);
});

test("nothing of Node is imported but by the part for tests", () => {
  for (const { path } of pack.files.filter((f) => f.path.endsWith(".js"))) {
    const imports = [...readFileSync(join(home, path), "utf8").matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map((m) => m[1]);
    if (path !== "dist/testing.js") assert.deepEqual(imports.filter((i) => !i.startsWith("./")), [], path);
  }
});

test("the public face has no any", () => {
  for (const { path } of pack.files.filter((f) => f.path.endsWith(".d.ts"))) {
    const found = readFileSync(join(home, path), "utf8").replace(/\/\*[\s\S]*?\*\//g, "").match(/.*\bany\b.*/);
    assert.equal(found?.[0], undefined, path);
  }
});

const faces = `
import { Codeq, CodeqError, PermanentError, type EnqueueOptions, type WorkerEvent } from "codeq";
import { codeqTest } from "codeq/test";
interface Commands { a: { payload: { n: number }; result: { m: string } }; b: { payload: void; result: void } }
const codeq = new Codeq<Commands>();
const result: { m: string } = await (await codeq.enqueue("a", { n: 1 })).result();
const options: EnqueueOptions = { priority: 1, runAt: new Date() };
await codeq.enqueue("b", undefined, options);
// @ts-expect-error no such command
await codeq.enqueue("c", 1);
// @ts-expect-error another payload
await codeq.enqueue("a", { n: "1" });
// @ts-expect-error no such option
await codeq.enqueue("a", { n: 1 }, { prio: 1 });
// @ts-expect-error a batch is typed, too
await codeq.enqueueBatch([{ command: "a", payload: 1 }]);
codeq.worker({ handlers: { a: (job) => ({ m: String(job.payload.n) }), b: async () => {} } });
// @ts-expect-error another result
codeq.worker({ handlers: { a: (job) => ({ m: job.payload.n }) } });
// @ts-expect-error no such command
codeq.worker({ handlers: { c: () => {} } });
const told = (e: WorkerEvent) => e.type === "settled" ? e.error?.code : undefined;
const free = new Codeq();
await free.enqueue("anything", { x: 1 });
free.worker({ handlers: { anything: (job) => { const p: unknown = job.payload; return { p }; } } });
for await (const news of codeq.watch({ kind: "queues" })) news.queues[0]?.ready.toFixed();
for await (const news of codeq.watch({ kind: "events" })) { if (news.type === "gap") news.missed.toFixed(); else news.cause.trim(); }
// @ts-expect-error events have no queues
for await (const news of codeq.watch({ kind: "events" })) news.queues;
export { result, told, CodeqError, PermanentError, codeqTest };
`;

for (const [module, moduleResolution] of [["nodenext", "nodenext"], ["esnext", "bundler"]]) {
  test(`it is used from TypeScript with moduleResolution ${moduleResolution}`, async () => {
    const at = join(app, moduleResolution);
    mkdirSync(at);
    writeFileSync(join(at, "face.ts"), faces);
    // with strict declarations, and without those of Node
    await compile(at, { module, moduleResolution, lib: ["es2022", "dom", "esnext.disposable"], skipLibCheck: false, types: [] });
  });
}

async function compile(at, options) {
  writeFileSync(join(at, "tsconfig.json"), JSON.stringify({ compilerOptions: { target: "es2022", strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, ...options } }));
  await run("node", [tsc, "-p", at]).catch((e) => assert.fail(e.stdout));
}

function start(t, file, env, ...flags) {
  const child = spawn(process.execPath, ["--unhandled-rejections=strict", ...flags, file], { cwd: app, env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  child.out = "";
  child.err = "";
  child.stdout.on("data", (d) => (child.out += d));
  child.stderr.on("data", (d) => (child.err += d));
  child.ended = once(child, "exit").then(([code]) => assert.equal(code, 0, child.err + child.out));
  child.ended.catch(() => {});
  return child;
}

test("every block of the README runs", async (t) => {
  const server = await Server.start();
  const head = `import { Codeq } from "codeq";\nimport type { Commands } from "./commands.js";\nconst codeq = new Codeq<Commands>({ url: process.env.CODEQ_URL });\n`;
  const runs = [];
  for (const { what, name, language, text } of blocks) {
    if (what === "file") writeFileSync(join(app, name), text);
    else if (what === "run") runs.push(name) && writeFileSync(join(app, `block-${name}.ts`), head + text);
    else assert.equal(language, "text", `a block that nothing runs: ${text}`);
  }
  assert.deepEqual(runs, ["producer", "worker", "watch", "errors"]);
  await run("node", [tsc, "-p", app]).catch((e) => assert.fail(e.stdout));
  const env = { CODEQ_URL: server.url };
  const worker = start(t, "worker.js", env);
  const producer = start(t, "producer.js", env);
  await producer.ended;
  assert.equal(producer.out, "300-owl.png\n");
  worker.kill("SIGTERM");
  await worker.ended;
  const block = start(t, "block-producer.js", env);
  const watch = start(t, "block-watch.js", env);
  await block.ended;
  assert.match(block.out, /CANCELLED\n$/);
  while (watch.exitCode === null) {
    await server.client().enqueue("mail", { to: "x" });
    await new Promise((d) => setTimeout(d, 100));
  }
  await watch.ended;
  const errors = start(t, "block-errors.js", env);
  await errors.ended;
  assert.equal(errors.out, "invalid_priority\npriority must be an integer from 0 to 9, got 10\n400 false undefined\n");
  const other = start(t, "block-worker.js", env);
  await other.ended;
  const tests = start(t, "mail.test.js", { CODEQ: program }, "--test");
  await tests.ended;
  assert.match(tests.out, /# pass 3/);
});

// Those of one page are compiled together; where there are a worker and a producer both run, and the producer prints what the page shows.
for (const page of readdirSync(join(home, "../../docs"), { recursive: true }).filter((name) => name === "start.md" || /^guides\/.*\.md$/.test(name))) {
  const text = readFileSync(join(home, "../../docs", page), "utf8");
  const files = [...text.matchAll(/(.*)\n```ts\n([\s\S]*?)```/g)].filter(([, before]) => !before.startsWith("<!-- other: ")).map(([, before, code]) => [before.match(/^<!-- file: (\S+\.ts) -->$/)?.[1], code]);
  if (files.length === 0) continue;
  test(`the blocks of docs/${page} run`, async (t) => {
    const at = join(app, page.replace(".md", ""));
    mkdirSync(at, { recursive: true });
    for (const [name, code] of files) {
      assert(name, `a block that names no file: ${code}`);
      writeFileSync(join(at, name), code);
    }
    await compile(at, { module: "nodenext", types: ["node"] });
    const names = files.map(([name]) => name);
    if (!names.includes("producer.ts")) return;
    const server = await Server.start();
    const env = { CODEQ_URL: server.url };
    const worker = start(t, join(at, "worker.js"), env);
    const producer = start(t, join(at, "producer.js"), env);
    await producer.ended;
    const shown = text.match(/\$ node producer\.js\n((?:(?!\$ |```).*\n)*)/)?.[1];
    assert.equal(producer.out, shown);
    worker.kill("SIGTERM");
    await worker.ended;
  });
}
