// Adds a job for each address, at once and due in 5 s.
import { Client, TarryError } from "tarry";

const client = new Client((process.env.TARRY_ADDR ?? "127.0.0.1:7300").split(","));

const jobs = process.argv.slice(2).map((to) => ({ topic: "mail", delay: 5, body: { to } }));
for (const result of await client.addBatch(jobs)) {
  console.log(result instanceof TarryError ? result.message : `${result.id} is due at ${result.dueAt.toISOString()}`);
}
for await (const job of client.list({ topic: "mail", body: true })) {
  console.log(job.state, job.id, job.body);
}
