// Reminders: a job is added every 200 ms, due 2 s later, and worked on when it is due. Kill
// any one node meanwhile; Ctrl-C stops it when all that was added is done.
//
//   node examples/reminders.mjs 127.0.0.1:7300 127.0.0.1:7310 127.0.0.1:7320
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Worker } from "tarry";

const addresses = process.argv.length > 2 ? process.argv.slice(2) : (process.env.TARRY_ADDR ?? "127.0.0.1:7300").split(",");
const client = new Client(addresses, { patience: 60 });
const added = new Set();
const done = new Set();

const worker = new Worker(client, "reminders", (job) => {
  console.log(`${job.body.text}, attempt ${job.attempts}, ${Date.now() - job.dueAt} ms after it was due`);
  done.add(job.id);
}, { concurrency: 5, ttr: 10, backoff: { base: 1, max: 60 }, signals: [] });
const working = worker.run();

let stopping = false;
process.once("SIGINT", () => (stopping = true));
for (let n = 1; !stopping; n++) {
  const { id } = await client.add({ topic: "reminders", delay: 2, body: { text: `reminder ${n}` } });
  added.add(id);
  await sleep(200);
}
while ([...added].some((id) => !done.has(id))) {
  await sleep(100);
}
worker.stop();
await working;
console.log(`${added.size} were added, and all of them were done`);
