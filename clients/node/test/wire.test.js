import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { Client, Worker } from "tarry";

import { added, job, startNode } from "./node.js";

test("names, instants and bodies are the language's own", async (t) => {
  const job = { id: "a", topic: "t", state: "ready", due_at: "2026-11-21T15:22:53.758Z", max_attempts: 3, headers: { x_y: "1" }, backoff: { max: 1 } };
  const node = await startNode(t, ({ path }) => (path.startsWith("/v1/jobs/") ? { ...job, body: { user_id: 1, due_at: "x" } } : added));
  const client = new Client([node.address]);

  assert.deepEqual(await client.get("a"), {
    id: "a",
    topic: "t",
    state: "ready",
    dueAt: new Date("2026-11-21T15:22:53.758Z"),
    maxAttempts: 3,
    headers: { x_y: "1" },
    backoff: { max: 1 },
    body: { user_id: 1, due_at: "x" },
  });

  const dueAt = new Date("2030-01-01T00:00:00.250Z");
  await client.add({ topic: "t", id: "a", dueAt, maxAttempts: 0, ifState: ["ready"], headers: { xY: "1" }, body: { userId: undefined, dueAt } });
  assert.deepEqual(node.requests.at(-1).body, {
    topic: "t",
    id: "a",
    due_at: "2030-01-01T00:00:00.250Z",
    max_attempts: 0,
    if_state: ["ready"],
    headers: { xY: "1" },
    body: { dueAt: "2030-01-01T00:00:00.250Z" },
  });
});

test("bytes are bytes, null is a body", async (t) => {
  const node = await startNode(t, ({ method }) => (method === "GET" ? { ...job, body_base64: "/wD+" } : added));
  const client = new Client([node.address]);
  assert.deepEqual((await client.get("a")).body, new Uint8Array([255, 0, 254]));

  const sent = async (body) => {
    await client.add({ topic: "t", id: "a", body });
    const { topic, id, ...rest } = node.requests.at(-1).body;
    return rest;
  };
  assert.deepEqual(await sent(new Uint8Array([1, 255, 0, 254, 1]).subarray(1, 4)), { body_base64: "/wD+" });
  assert.deepEqual(await sent(Buffer.from([255, 0, 254])), { body_base64: "/wD+" });
  assert.deepEqual(await sent(null), { body: null });
  assert.deepEqual(await sent(""), { body: "" });
});

test("what JSON has no value for is named, and not sent as null", async () => {
  const client = new Client(["127.0.0.1:1"], { patience: 0 });
  const job = { topic: "t", body: 1 };
  const never = new Date(NaN);
  for (const [field, call] of [
    ["due_at", () => client.add({ ...job, dueAt: never })],
    ["delay", () => client.add({ ...job, delay: NaN })],
    ["ttr", () => client.addBatch([job, { ...job, ttr: Infinity }])],
    ["backoff", () => client.add({ ...job, backoff: [1, NaN] })],
    ["expires_at", () => client.updateJobs({ idPrefix: "a" }, { expiresAt: never })],
    ["due_to", () => client.deleteJobs({ idPrefix: "a", dueTo: never })],
    ["delay", () => client.release("a", { delay: NaN })],
    ["wait", () => client.reserve({ topics: ["t"], wait: NaN })],
    ["until", () => client.pause("t", { until: never })],
    ["max_pending", () => client.changeSettings("t", { maxPending: NaN })],
    ["start", () => client.putSchedule("s", { spec: "@daily", start: never, job })],
  ]) {
    await assert.rejects(call(), { code: "invalid_argument", outcome: "not_applied", field }, field);
  }
});

test("names in paths and queries are escaped", async (t) => {
  const node = await startNode(t, ({ path }) => (path.includes("/t/jobs?") ? { jobs: [] } : { ...job, kicked: 0, deleted: 0 }));
  const client = new Client([node.address]);
  await client.get("a b?c#d%&ü/..");
  assert.equal(node.requests.at(-1).path, "/v1/jobs/a%20b%3Fc%23d%25%26%C3%BC%2F..");
  await client.get("...");
  assert.equal(node.requests.at(-1).path, "/v1/jobs/...");
  await client.listPage({ topic: "t", headers: { "a&b": "c d" }, dueFrom: new Date(0), body: true, max: 3 });
  assert.equal(node.requests.at(-1).path, "/v1/topics/t/jobs?due_from=1970-01-01T00%3A00%3A00.000Z&body=true&max=3&header.a%26b=c+d");
  await client.kickJobs({ headers: { order: "5" }, state: "dead" }, { toTopic: "u" });
  assert.equal(node.requests.at(-1).path, "/v1/jobs/kick?state=dead&all=true&header.order=5");
  assert.deepEqual(node.requests.at(-1).body, { to_topic: "u" });
  await client.deleteJobs({ idPrefix: "o-", max: 10 });
  assert.equal(node.requests.at(-1).path, "/v1/jobs?id_prefix=o-&max=10");
  for (const name of ["", undefined]) {
    await assert.rejects(client.delete(name), { code: "invalid_argument" });
  }
  const own = new Client([node.address], { fetch: globalThis.fetch });
  for (const [name, escaped] of [[".", "%2E"], ["..", "%2E%2E"], ["/", "%2F"], ["%2F", "%252F"], ["\u0000", "%00"]]) {
    await client.get(name);
    assert.equal(node.requests.at(-1).path, `/v1/jobs/${escaped}`);
    await client.touch(name);
    assert.equal(node.requests.at(-1).path, `/v1/jobs/${escaped}/touch`);
  }
  for (const name of [".", ".."]) {
    await assert.rejects(own.get(name), { code: "invalid_argument" });
    await assert.rejects(own.touch(name), { code: "invalid_argument" });
  }
});

test("a list goes over all pages, also over empty ones", async (t) => {
  const pages = { "": { jobs: [{ ...job, id: "1" }], next: "x" }, x: { jobs: [], next: "y&" }, "y&": { jobs: [{ ...job, id: "2" }, { ...job, id: "3" }] } };
  const node = await startNode(t, ({ path }) => pages[new URL(path, "http://x").searchParams.get("cursor") ?? ""]);
  const ids = [];
  for await (const job of new Client([node.address]).list({ topic: "t" })) {
    ids.push(job.id);
  }
  assert.deepEqual(ids, ["1", "2", "3"]);
});

test("index.d.ts has the methods of the classes", async () => {
  const types = await readFile(new URL("../index.d.ts", import.meta.url), "utf8");
  for (const type of [Client, Worker]) {
    const [, body] = new RegExp(`export class ${type.name}(?:<.*?>)? {\n(.*?)\n}\n`, "s").exec(types);
    const declared = [...body.matchAll(/^  (\w+)(?:<.*?>)?\(/gm)].map((m) => m[1]);
    assert.deepEqual(declared.sort(), Object.getOwnPropertyNames(type.prototype).sort());
  }
});
