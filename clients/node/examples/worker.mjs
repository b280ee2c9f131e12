// A worker that sends mail: jobs that fail are tried again, later each time.
//
//   node examples/worker.mjs &
//   node examples/add.mjs ann@example.org
import { BuryError, Client, Worker } from "tarry";

const client = new Client((process.env.TARRY_ADDR ?? "127.0.0.1:7300").split(","));

async function send(job, { signal }) {
  if (!job.body.to.includes("@")) {
    throw new BuryError(`${job.body.to} is no address`); // no further attempt can succeed
  }
  // Give the signal to what takes long: it is aborted when the job is lost to another worker.
  console.log("sending to", job.body.to, "aborted:", signal.aborted);
}

const worker = new Worker(client, "mail", send, {
  concurrency: 10,
  ttr: 30, // of a worker that died, the jobs come back after so long
  backoff: { base: 5, factor: 2, max: 600 },
  consumer: `worker-${process.pid}`,
});
await worker.run(); // until SIGTERM or Ctrl-C, and until the functions have ended
