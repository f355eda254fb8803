// Takes what codeq posts and verifies it with the library of Standard Webhooks. It says its port, then
// for each request one line: the webhook-id, and for each of the secrets whether the library takes it.
// A line on standard input is a secret.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

const secrets = [];
createInterface({ input: process.stdin }).on("line", (line) => {
  secrets.push(line);
  console.log(JSON.stringify({ knows: secrets.length }));
});

const takes = (secret, body, headers) => {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
};

createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts).toString();
  response.writeHead(204).end();
  console.log(JSON.stringify({
    id: request.headers["webhook-id"],
    verified: secrets.map((secret) => takes(secret, body, request.headers)),
    changed: secrets.some((secret) => takes(secret, body + " ", request.headers)),
    old: secrets.some((secret) => takes(secret, body, { ...request.headers, "webhook-timestamp": "1700000000" })),
  }));
}).listen(0, "127.0.0.1", function () {
  console.log(JSON.stringify({ port: this.address().port }));
});
