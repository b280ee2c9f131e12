// Compiled, never run: what the types allow, and what they must not.
import { BuryError, Client, TarryError, Worker } from "tarry";
import type { Added, Job, Outcome, ReservedJob } from "tarry";

interface Mail {
  to: string;
}

export async function types(signal: AbortSignal): Promise<void> {
  const client = new Client(["a:7300", "https://b:7300"], { timeout: 5, patience: 0, tokenFile: "token", tokenOverHttp: true, onRetry: (e, left) => [e.code, left] });

  const added: Added = await client.add({ topic: "mail", body: { to: "ann" }, delay: 2.5, backoff: [60, 600] }, { signal });
  const due: Date = added.dueAt;
  const results: (Added | TarryError)[] = await client.addBatch([{ topic: "mail", body: new Uint8Array(3), dueAt: due }]);
  for (const result of results) {
    if (result instanceof TarryError) {
      const outcome: Outcome = result.outcome;
      outcome === "unknown";
    } else {
      result.existing;
    }
  }

  const jobs: ReservedJob<Mail>[] = await client.reserve<Mail>({ topics: ["mail"], wait: 10 });
  for (const job of jobs) {
    const to: string = job.body.to;
    await client.release(job, { delay: 0, reason: to, signal });
    await client.finish(job);
    await client.finish("an id");
  }
  for await (const job of client.stream<Mail>({ topics: ["mail"], credit: 5 }, { signal })) {
    job.body.to.length;
  }
  for await (const job of client.list<Mail>({ topic: "mail", state: "dead", body: true })) {
    const one: Job<Mail> = job;
    one.diedAt?.getTime();
  }
  await client.changeSettings("mail", { maxPending: null, retain: 60 });
  await client.putSchedule("nightly", { spec: "@daily", job: { topic: "mail", body: "x" } });

  const worker = new Worker<Mail>(client, "mail", async (job, { signal }) => {
    if (signal.aborted || job.body.to === "") {
      throw new BuryError("nobody");
    }
  }, { concurrency: 4, backoff: { base: 1 } });
  await worker.run();

  // @ts-expect-error a topic is needed
  await client.add({ body: 1 });
  // @ts-expect-error an instant is a Date
  await client.add({ topic: "mail", body: 1, dueAt: "2030-01-01T00:00:00Z" });
  // @ts-expect-error names are camelCase
  await client.update("id", { max_attempts: 1 });
  // @ts-expect-error no such state
  await client.purge("mail", "reserved");
}
