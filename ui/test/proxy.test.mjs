// Behind a proxy that adds a prefix, everything is found.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { after, test } from "node:test";
import { Server, view } from "./kit.mjs";

const prefix = "/tools/queue";

/** A proxy that passes on what is below the prefix, and nothing else. */
async function proxy(to) {
  const cut = (url) => (url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : undefined);
  const p = createServer((req, res) => {
    const path = cut(req.url);
    if (!path) return res.writeHead(418).end();
    req.pipe(request({ port: to, host: "127.0.0.1", path, method: req.method, headers: req.headers }, (r) => {
      res.writeHead(r.statusCode, r.headers);
      r.pipe(res);
    }));
  });
  p.on("upgrade", (req, socket) => {
    const s = connect(to, "127.0.0.1", () => {
      const headers = Object.entries(req.headers).map(([k, v]) => `${k}: ${v}\r\n`).join("");
      s.write(`GET ${cut(req.url)} HTTP/1.1\r\n${headers}\r\n`);
      socket.pipe(s).pipe(socket);
    });
    s.on("error", () => socket.destroy());
    socket.on("error", () => s.destroy());
  });
  await new Promise((done) => p.listen(0, "127.0.0.1", done));
  after(() => {
    p.closeAllConnections();
    p.close();
  });
  return `http://127.0.0.1:${p.address().port}`;
}

const server = await Server.start();
const front = await proxy(server.port);

test("the dashboard works below a prefix", async (t) => {
  await server.post("mail.send");
  const page = await view(t, `${front}${prefix}/`);
  await page.getByRole("link", { name: "mail.send" }).first().click();
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("mail.send is paused").waitFor();
  await page.locator(".dot.live").waitFor();
  assert.equal((await server.ask("GET", "/admin/queues/mail.send")).paused, true);
});
