const WebSocket = globalThis.WebSocket ?? (await import("ws")).WebSocket; // built in since Node 22
const url = (process.env.CODEQ_URL || "http://127.0.0.1:8080").replace("http", "ws") + "/v1/codeq/session";

async function square(payload) { // the work; an exception has the task tried again later
  if (!Number.isSafeInteger(payload)) throw new Error("the payload must be an integer");
  return { square: payload ** 2 };
}
function connect() {
  const ws = new WebSocket(url, "codeq.v1");
  const say = (frame) => ws.readyState === 1 && ws.send(JSON.stringify(frame));
  const beat = setInterval(() => say({ type: "heartbeat" }), 10_000);
  ws.onopen = () => say([
    { type: "hello", token: process.env.CODEQ_TOKEN ?? "", workerId: "node" },
    { type: "subscribe", commands: ["square"], window: 8, leaseSeconds: 30 }]);
  ws.onmessage = (message) => JSON.parse(message.data).forEach(async (frame) => {
    if (frame.type === "error" || frame.type === "revoked") console.error(frame);
    if (frame.type !== "task") return;
    say({ type: "received", through: frame.seq });
    const delivery = { taskId: frame.task.id, leaseToken: frame.leaseToken };
    await square(frame.task.payload).then(
      (result) => say({ type: "result", ...delivery, result }),
      (problem) => say({ type: "nack", ...delivery, reason: String(problem) }));
  });
  ws.onerror = () => {}; // a close follows
  ws.onclose = (end) => { clearInterval(beat); console.error("closed", end.code); setTimeout(connect, 1000 + 1000 * Math.random()); };
}
connect();
