// A job every night, and one now. The stream shows what comes.
//
//   node examples/schedule.mjs
import { Client } from "tarry";

const client = new Client((process.env.TARRY_ADDR ?? "127.0.0.1:7300").split(","));

await client.putSchedule("nightly", {
  spec: "30 2 * * *",
  zone: "Europe/Berlin",
  overlap: "skip",
  job: { topic: "report", body: "for {{planned}}" },
});
for (const run of await client.previewSchedule("nightly", { count: 3 })) {
  console.log("will run at", run.local);
}
await client.runSchedule("nightly", { key: new Date().toISOString() }); // repeated, it is the same run
for await (const job of client.stream({ topics: ["report"], max: 1 })) {
  console.log("report", job.body);
  await client.finish(job);
}
