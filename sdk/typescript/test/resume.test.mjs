import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { Codeq } from "codeq";
import { WebSocket } from "ws"; // also where the platform has one, which hides pings
import { Events, Proxy, Server, gate } from "./kit.mjs";

const server = await Server.start("--shutdown-grace", "5s");
const proxy = await Proxy.start(server.port);

function work(t, options, url = proxy.url) {
  const events = new Events(), notices = [];
  const client = new Codeq({ url, WebSocket, notice: (text) => notices.push(text) });
  const worker = client.worker({ on: events.push, signals: false, ...options });
  const done = worker.run();
  done.catch(() => {});
  t.after(async () => {
    Object.assign(proxy, { held: false, refusing: false, see: undefined });
    worker.stop();
    await done.catch(() => {});
  });
  return { worker, events, client, done, notices };
}

test("a cut costs nothing: the session goes on, and the handler with it", async (t) => {
  const began = gate(), finish = gate();
  let calls = 0;
  const { client, events } = work(t, { concurrency: 2, handlers: { "r.a": async () => { calls++; began.open(); await finish.opened; return { n: 1 }; } } });
  const task = await client.enqueue("r.a");
  await began.opened;
  const { sessionId } = await events.of("connected");
  for (let i = 2; i <= 4; i++) {
    proxy.cut();
    assert.equal((await events.of("connected", i)).sessionId, sessionId);
  }
  finish.open();
  assert.deepEqual(await task.result(), { n: 1 });
  assert.equal((await events.of("settled")).error, undefined);
  assert.equal(calls, 1);
  const { attempts, deliveries } = await client.task(task.id);
  assert.deepEqual([attempts, deliveries], [0, 1]);
  assert.equal((await server.admin("GET", "/admin/sessions")).sessions.filter((s) => s.commands[0] === "r.a").length, 1);
});

test("a cut before the answer to a result: it is sent again until it is answered", async (t) => {
  const { client, events } = work(t, { handlers: { "r.b": () => ({ n: 2 }) } });
  await events.of("connected");
  let sent = 0;
  proxy.see = (way, data) => {
    if (way === "up" && data.length < 2000 && sent === 0) return void (sent = 1);
    if (way !== "down" || sent !== 1) return false;
    sent = 2;
    setImmediate(() => proxy.cut());
    return true;
  };
  const direct = server.client();
  const task = await direct.enqueue("r.b");
  assert.deepEqual(await task.result(), { n: 2 });
  const { outcome, error } = await events.of("settled");
  assert.deepEqual([outcome, error], ["completed", undefined]);
  assert.equal((await client.task(task.id)).attempts, 0);
});

test("a server that is killed and comes back finds its worker at work", async (t) => {
  const own = await Server.start();
  const began = gate(), finish = gate();
  const { client, events } = work(t, { concurrency: 2, handlers: { "r.c": async (job) => { began.open(); await finish.opened; return { delivery: job.delivery }; } } }, own.url);
  const task = await client.enqueue("r.c");
  await began.opened;
  await own.kill();
  await events.of("disconnected");
  finish.open();
  await own.begin();
  assert.deepEqual(await task.result(), { delivery: 1 });
});

test("a server that stops is waited for, and what runs is handed in over the next session", async (t) => {
  const own = await Server.start("--shutdown-grace", "1s");
  const began = gate(), finish = gate();
  const { client, events, notices } = work(t, { handlers: { "r.d": async (job) => { began.open(); await finish.opened; return { aborted: job.signal.aborted }; } } }, own.url);
  const task = await client.enqueue("r.d");
  await began.opened;
  await own.end("SIGTERM");
  await events.of("disconnected");
  await own.begin();
  await events.of("connected", 2);
  finish.open();
  assert.deepEqual(await task.result(), { aborted: false });
  assert.match(notices.join("\n"), /sends no more tasks: the server shuts down/);
});

test("a connection that is half open is given up after two and a half pings", async (t) => {
  const own = await Server.start("--ping-seconds", "1"), line = await Proxy.start(own.port);
  const { client, events } = work(t, { handlers: { "r.e": () => ({ n: 5 }) } }, line.url);
  await events.of("connected");
  line.held = true;
  const { error } = await events.of("disconnected");
  assert.match(error.message, /silent for 2500 ms/);
  line.held = false;
  await events.of("connected", 2);
  assert.deepEqual(await (await client.enqueue("r.e")).result(), { n: 5 });
});

test("while the server is away the pauses grow, and there is one socket at a time", async (t) => {
  const { events, client } = work(t, { handlers: { "r.f": () => ({}) } });
  await events.of("connected");
  const before = proxy.opened;
  for (let i = 0; i < 5; i++) {
    proxy.cut();
    await events.of("connected", i + 2);
    assert(proxy.sockets.size <= 2, "one socket, with two ends");
  }
  assert.equal(proxy.opened - before, 5);
  const tries = [], sixth = gate();
  proxy.server.prependListener("connection", () => tries.push(performance.now()) === 6 && sixth.open());
  proxy.refusing = true;
  proxy.cut();
  await sixth.opened;
  assert(tries[5] - tries[0] >= 1500, `six tries in ${tries[5] - tries[0]} ms`); // a half of 0.2, 0.4, 0.8, 1.6 and 3.2 s is 3.1 s
  proxy.refusing = false;
  await events.of("connected", 7);
  assert.deepEqual(await (await client.enqueue("r.f")).result(), {});
});

test("a message that is not codeq's ends the connection, and unknown frames do not", async (t) => {
  const { events, client } = work(t, { handlers: { "r.g": () => ({}) } });
  await events.of("connected");
  const frame = (text) => Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)]);
  let inject = frame('[{"type":"dance","x":1},7,null,{"no":"type"}]');
  proxy.see = (way, data) => {
    if (way === "down" && inject) for (const s of proxy.sockets) if (s.remotePort !== server.port) s.write(inject);
    if (way === "down") inject = undefined;
    return false;
  };
  assert.deepEqual(await (await server.client().enqueue("r.g")).result(), {});
  assert.equal(events.all.filter((e) => e.type === "disconnected").length, 0);
  inject = frame("nonsense");
  await server.client().enqueue("r.g");
  assert.match((await events.of("disconnected")).error.message, /not codeq's/);
  await events.of("connected", 2);
  assert.deepEqual(await (await client.enqueue("r.g")).result(), {});
});

const script = (more) => `
  import { Codeq } from "codeq";
  const codeq = new Codeq({ url: ${JSON.stringify(server.url)}, notice: () => {} });
  ${more}`;

function node(t, text, ...flags) {
  const child = spawn(process.execPath, ["--unhandled-rejections=strict", ...flags, "--input-type=module", "-e", script(text)], { cwd: new URL("..", import.meta.url), stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  child.said = new Events();
  child.log = "";
  child.stdout.on("data", (d) => String(d).split("\n").filter(Boolean).forEach((line) => child.said.push({ type: line })));
  child.stderr.on("data", (d) => (child.log += d));
  return child;
}

test("SIGTERM drains a worker, and its process ends by itself", async (t) => {
  const child = node(t, `
    await codeq.worker({ handlers: { "s.a": async () => { console.log("began"); await new Promise((d) => setTimeout(d, 700)); return { n: 1 }; } } }).run();
    console.log("drained");`);
  const task = await server.client().enqueue("s.a");
  await child.said.of("began");
  child.kill("SIGTERM");
  assert.deepEqual(await task.result(), { n: 1 });
  const [code] = await once(child, "exit");
  assert.equal(code, 0, child.log);
  await child.said.of("drained");
});

test("a second SIGTERM ends the handlers, and their tasks are handed back", async (t) => {
  const child = node(t, `
    await codeq.worker({ handlers: { "s.b": (job) => new Promise((_, fail) => { console.log("began"); job.signal.addEventListener("abort", () => fail(job.signal.reason)); }) } }).run();`);
  const task = await server.client().enqueue("s.b");
  await child.said.of("began");
  child.kill("SIGTERM");
  await new Promise((d) => setTimeout(d, 600));
  child.kill("SIGTERM");
  const [code] = await once(child, "exit");
  assert.equal(code, 0, child.log);
  assert.equal((await server.client().task(task.id)).attempts, 0);
});

test("a producer's process ends at once when it has nothing more to do", async (t) => {
  const child = node(t, `
    await codeq.enqueue("s.c", 1, { idempotencyKey: "s.c" });
    await codeq.watch({ kind: "server" })[Symbol.asyncIterator]().return();
    for await (const news of codeq.watch({ kind: "queues" })) { console.log(news.type); break; }
    console.log("done");`);
  await child.said.of("done");
  const began = Date.now();
  const [code] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
  assert.equal(code, 0, child.log);
  assert(Date.now() - began < 15_000, // a ping would keep it for twenty seconds
     `it lived for ${Date.now() - began} ms more`);
});

/** redirecting is a server that sends every request on. */
async function redirecting(t) {
  const elsewhere = createServer((_, response) => response.writeHead(307, { Location: `${server.url}/v1/codeq/session` }).end()).on("upgrade", (_, socket) =>
    socket.end(`HTTP/1.1 307 Temporary Redirect\r\nLocation: ${server.url}/v1/codeq/session\r\nContent-Length: 0\r\n\r\n`)).listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  t.after(() => (elsewhere.closeAllConnections(), elsewhere.close()));
  return `http://127.0.0.1:${elsewhere.address().port}/x`;
}

test("a session is redirected", async (t) => {
  const { events } = work(t, { handlers: { "r.h": () => ({ n: 8 }) } }, await redirecting(t));
  await events.of("connected");
  assert.deepEqual(await (await server.client().enqueue("r.h")).result(), { n: 8 });
});

test("a session moves to the server that leads, before it says hello", async (t) => {
  const before = proxy.opened;
  proxy.see = (way, data) => way === "down" && data.includes(" 101 ") && Buffer.from(String(data).replace("\r\n\r\n", `\r\nCodeq-Leader: ${server.url}\r\n\r\n`));
  const { events } = work(t, { handlers: { "r.i": () => ({}) } }, `${proxy.url},${server.url}`);
  await events.of("connected");
  assert.equal(proxy.opened - before, 1);
  proxy.cut();
  assert.deepEqual(await (await server.client().enqueue("r.i")).result(), {});
  assert.equal(events.all.filter((e) => e.type === "disconnected").length, 0);
});

test("a pause that a server asks for is kept also beside other addresses", async (t) => {
  const at = [], tried = gate();
  const busy = createServer().on("upgrade", (_, socket) => {
    socket.on("error", () => {}); // the other side ends it at once
    if (at.push(Date.now()) === 2) tried.open();
    const body = '{"error":"later","code":"overloaded","retryable":true}';
    socket.end(`HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  }).listen(0, "127.0.0.1");
  await once(busy, "listening");
  t.after(() => (busy.closeAllConnections(), busy.close()));
  const { notices } = work(t, { handlers: { "r.p": () => ({}) } }, `http://127.0.0.1:${busy.address().port},${server.url}`);
  await tried.opened;
  assert(at[1] - at[0] >= 900, `the second try came after ${at[1] - at[0]} ms`);
  assert.match(notices.join(), /later; it is tried again/);
});

test("the WebSocket of the platform is redirected, too", async (t) => {
  const child = node(t, `
    if (!globalThis.WebSocket) throw new Error("this platform has none");
    const handlers = { "n.a": (job) => ({ n: job.payload }) };
    await new Codeq({ url: "${await redirecting(t)}", notice: () => {} }).worker({ handlers, on: (e) => console.log(e.type) }).run();
    console.log("drained");`, ...(globalThis.WebSocket ? [] : ["--experimental-websocket"]));
  await child.said.of("connected");
  assert.deepEqual(await (await server.client().enqueue("n.a", 7)).result(), { n: 7 });
  child.kill("SIGTERM");
  await child.said.of("drained");
});
