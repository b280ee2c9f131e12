// Adds a job for each address, at once and due in 5 s.
//
//   node examples/add.mjs ann@example.org bob@example.org
import { Client, TarryError } from "tarry";

if (process.argv.length < 3) {
  console.error("usage: node examples/add.mjs ADDRESS... (the nodes: TARRY_ADDR, default 127.0.0.1:7300)");
  process.exit(2);
}
const client = new Client((process.env.TARRY_ADDR ?? "127.0.0.1:7300").split(","));

const jobs = process.argv.slice(2).map((to) => ({ topic: "mail", delay: 5, body: { to } }));
for (const result of await client.addBatch(jobs)) {
  console.log(result instanceof TarryError ? result.message : `${result.id} is due at ${result.dueAt.toISOString()}`);
}
for await (const job of client.list({ topic: "mail", body: true })) {
  console.log(job.state, job.id, job.body);
}
