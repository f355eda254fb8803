// A producer or a worker of this SDK for sdk/bench/bench.py.
import { Codeq } from "codeq";

const [role, command, tasks, window] = process.argv.slice(2).map((a, i) => (i > 1 ? Number(a) : a));
const codeq = new Codeq();
const text = "x".repeat(80);

if (role === "producer") {
  console.log("began");
  let n = 0;
  await Promise.all(Array.from({ length: window }, async () => {
    while (n < tasks) await codeq.enqueue(command, { n: ++n, text });
  }));
  console.log("posted");
} else {
  let settled = 0;
  const worker = codeq.worker({
    concurrency: window,
    handlers: { [command]: (job) => ({ n: job.payload.n }) },
    on: (event) => {
      if (event.type === "settled" && ++settled === tasks) (console.log("done"), worker.drain());
    },
  });
  await worker.run();
}
