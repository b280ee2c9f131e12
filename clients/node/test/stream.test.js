import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "tarry";

import { startNode } from "./node.js";

const line = (event) => Buffer.from(JSON.stringify(event) + "\n");
const open = line({ event: "open", credit: 1, heartbeat: 1 });
const job = (id, body = "x") => line({ event: "job", id, token: "0-1-1", due_at: "2026-11-21T15:22:53.758Z", body });
const bye = line({ event: "bye", reason: "the node stops" });
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

const ids = async (stream) => {
  const list = [];
  for await (const { id } of stream) {
    list.push(id);
  }
  return list;
};

test("lines are whole, however the bytes arrive", async (t) => {
  const node = await startNode(t, async (_, response) => {
    const bytes = Buffer.concat([open, job("1", "grüße ☃\n"), line({ event: "heartbeat" }), job("2"), bye]);
    const cut = bytes.indexOf("☃") + 1; // within a character
    for (const part of [bytes.subarray(0, cut), bytes.subarray(cut, cut + 3), bytes.subarray(cut + 3)]) {
      response.write(part);
      await pause();
    }
    response.end();
  });
  const jobs = [];
  for await (const job of new Client([node.address]).stream({ topics: ["t"], max: 2 })) {
    jobs.push(job);
  }
  assert.deepEqual(jobs, [
    { id: "1", token: "0-1-1", dueAt: new Date("2026-11-21T15:22:53.758Z"), body: "grüße ☃\n" },
    { id: "2", token: "0-1-1", dueAt: new Date("2026-11-21T15:22:53.758Z"), body: "x" },
  ]);
});

test("a stream goes on after a bye, after a cut and after silence, and counts its jobs", async (t) => {
  const connections = [
    (response) => response.end(Buffer.concat([open, job("1"), bye])),
    (response) => response.write(Buffer.concat([open, job("2")]), () => response.destroy()),
    (response) => response.write(Buffer.concat([line({ event: "open", heartbeat: 0.05 }), job("3")])),
    (response) => response.end(JSON.stringify({ event: "open" })), // ends before it is open
    (response) => response.write(Buffer.concat([open, job("4"), job("5"), job("6")])),
  ];
  const node = await startNode(t, (_, response) => void connections.shift()(response));
  assert.deepEqual(await ids(new Client([node.address]).stream({ topics: ["t"], credit: 3, max: 5, onClose: "keep" })), ["1", "2", "3", "4", "5"]);
  assert.deepEqual(node.requests.map((r) => r.body.max), [5, 4, 3, 2, 2]);
  assert.deepEqual(node.requests[0].body, { topics: ["t"], credit: 3, max: 5, on_close: "keep" });
});

test("what the nodes refuse is thrown, and what they cannot do now is tried again", async (t) => {
  const replies = [
    { status: 429, code: "overloaded", error: "full" },
    { status: 400, code: "invalid_argument", error: "credit", field: "credit" },
  ];
  const node = await startNode(t, () => replies.shift());
  await assert.rejects(ids(new Client([node.address]).stream({ topics: ["t"], credit: 0 })), { code: "invalid_argument", field: "credit" });
  assert.equal(replies.length, 0);

  const broken = await startNode(t, (_, response) => void response.end(Buffer.concat([open, line({ event: "error", code: "invalid_argument", error: "no" })])));
  await assert.rejects(ids(new Client([broken.address]).stream({ topics: ["t"] })), { code: "invalid_argument" });
});

test("a stream that waits is ended by its signal, by leaving and by return", async (t) => {
  let connected = 0;
  let closed = 0;
  const node = await startNode(t, (_, response) => {
    connected++;
    response.on("close", () => closed++);
    response.write(Buffer.concat([open, job(`${connected}`)]));
  });
  const client = new Client([node.address]);

  const controller = new AbortController();
  for await (const _ of client.stream({ topics: ["t"] }, { signal: controller.signal })) {
    setImmediate(() => controller.abort());
  }
  for await (const _ of client.stream({ topics: ["t"] })) {
    break;
  }
  const stream = client.stream({ topics: ["t"] });
  await stream.next();
  const waiting = stream.next();
  await stream.return();
  assert.deepEqual(await waiting, { value: undefined, done: true });

  while (closed < 3) {
    await pause();
  }
  assert.equal(connected, 3);
});
