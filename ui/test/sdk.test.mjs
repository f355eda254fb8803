// The SDK for TypeScript in a page of another origin: a producer, a wait for a result and a watch.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";
import { browser, Server } from "./kit.mjs";

const dist = new URL("../../sdk/typescript/dist/", import.meta.url);

test("a page posts a task, waits for its result and watches", { skip: !existsSync(dist) && "sdk/typescript is not built" }, async (t) => {
  const files = createServer((request, response) => {
    if (!request.url.endsWith(".js")) return response.setHeader("Content-Type", "text/html").end("<!doctype html><title>page</title>");
    response.setHeader("Content-Type", "text/javascript").end(readFileSync(new URL(`.${request.url}`, dist)));
  }).listen(0, "127.0.0.1");
  await once(files, "listening");
  t.after(() => (files.closeAllConnections(), files.close()));
  const origin = `http://127.0.0.1:${files.address().port}`;
  const server = await Server.start("--allow-origin", origin);
  server.work(t, "page.square", "shell", "--", "sh", "-c", 'read n; echo "{\\"n\\":$((n * n))}"');
  const page = await browser.newPage();
  t.after(() => page.close());
  const errors = [];
  page.on("pageerror", (e) => errors.push(e.stack));
  page.on("console", (m) => /error|warning/.test(m.type()) && errors.push(m.text()));
  await page.goto(origin);
  const said = await page.evaluate(async (url) => {
    const { Codeq } = await import("/index.js");
    const codeq = new Codeq({ url });
    const watch = codeq.watch({ kind: "events", commands: ["page.square"], causes: ["enqueue"] });
    const news = watch[Symbol.asyncIterator]();
    const first = news.next();
    while (!watch.position) await new Promise((done) => setTimeout(done, 20));
    const task = await codeq.enqueue("page.square", 12, { idempotencyKey: "twelve" });
    const many = await codeq.enqueueBatch([{ command: "page.square", payload: 3 }, { command: "page square", payload: 4 }]);
    const event = (await first).value;
    await news.return();
    let gone;
    await new Codeq({ url: "http://127.0.0.1:1" }).enqueue("x", 1).catch((e) => (gone = e.code));
    return { result: await task.result(), same: event.task === task.id, codes: many.map((b) => b.error?.code), replayed: (await codeq.enqueue("page.square", 12, { idempotencyKey: "twelve" })).replayed, gone };
  }, server.origin);
  assert.deepEqual(said, { result: { n: 144 }, same: true, codes: [undefined, "invalid_command"], replayed: true, gone: "outcome_unknown" });
  assert.deepEqual(errors.filter((e) => !/ERR_(UNSAFE_PORT|CONNECTION_REFUSED)/.test(e)), []);
});
