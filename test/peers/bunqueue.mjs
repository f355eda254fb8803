// The load of bunqueue: bun bunqueue.mjs PORT PRODUCERS BATCH WARM_UP_MS MEASURE_MS KIND
// It prints a line when the measured time begins, one when it ends, and one with counts of all
// tasks when the last of them is done.
import { Queue, Worker } from 'bunqueue/client'

const [port, producers, batch, warmUp, measure] = process.argv.slice(2, 7).map(Number)
const unfinished = 8192
const connection = { host: '127.0.0.1', port, poolSize: 8 }
const queue = new Queue('tasks', { connection })
const options = { durable: process.argv[7] === 'durable', removeOnComplete: true }

const delivered = []
let next = 0, confirmed = 0, completed = 0, duplicates = 0, posting = true

const worker = new Worker('tasks', async (job) => {
  delivered[job.data.n] = (delivered[job.data.n] ?? 0) + 1
  if (delivered[job.data.n] > 1) duplicates++
}, { connection, concurrency: 128, batchSize: 128 })
worker.on('completed', () => { completed++ })
worker.on('error', (err) => { console.error(err); process.exit(1) })

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const pad = 'x'.repeat(80)

async function produce() {
  while (posting) {
    if (next - completed + batch > unfinished) {
      await sleep(1)
      continue
    }
    const jobs = Array.from({ length: batch }, () => ({ name: 'task', data: { n: next++, pad }, opts: options }))
    if (batch === 1) await queue.add(jobs[0].name, jobs[0].data, options)
    else await queue.addBulk(jobs)
    confirmed += batch
  }
}

const all = Array.from({ length: producers }, produce)
await sleep(warmUp)
console.log('begin')
const before = completed, began = performance.now()
await sleep(measure)
console.log(`end ${completed - before} ${(performance.now() - began) / 1000}`)
posting = false
await Promise.all(all)
for (const late = Date.now() + 60_000; completed < confirmed && Date.now() < late;) await sleep(20)
let lost = 0
for (let n = 0; n < next; n++) if (!delivered[n]) lost++
console.log(`counts ${next} ${lost} ${duplicates} ${confirmed} ${completed}`)
process.exit(0)
