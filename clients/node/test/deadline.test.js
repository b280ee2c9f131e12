import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "tarry";

import { notApplied, startNode } from "./node.js";

const named = (code, outcome) => (error) => {
  assert.deepEqual([error.code, error.outcome], [code, outcome]);
  assert.match(error.message, /the deadline ended the call/);
  return true;
};

test("the deadline that ends a call is named", async (t) => {
  const silent = await startNode(t, () => undefined);
  const client = new Client([silent.address], { discover: false });
  await assert.rejects(client.add({ topic: "t", body: 1 }, { deadline: 0.3 }), named("unknown", "unknown"));
  await assert.rejects(client.release("a", { deadline: 0.3 }), named("unknown", "unknown"));
  await assert.rejects(client.get("a", { deadline: 0.3 }), named("not_applied", "not_applied"));
  const sent = silent.requests.length;
  await assert.rejects(client.add({ topic: "t", body: 1 }, { deadline: 0 }), named("not_applied", "not_applied"));
  assert.equal(silent.requests.length, sent);

  const refusing = await startNode(t, () => ({ ...notApplied, code: "overloaded", status: 429, http: { "Retry-After": "5" } })); // the next attempt would be too late
  await assert.rejects(new Client([refusing.address]).add({ topic: "t", body: 1 }, { deadline: 0.3 }), named("overloaded", "not_applied"));

  const full = await startNode(t, () => ({ ...notApplied, code: "topic_full", status: 429, error: "full" }));
  await assert.rejects(new Client([full.address]).add({ topic: "t", body: 1 }, { deadline: 5 }), { code: "topic_full", message: "full" });
});

test("a call that is cancelled says so", async (t) => {
  const controller = new AbortController();
  const silent = await startNode(t, () => controller.abort());
  await assert.rejects(new Client([silent.address]).add({ topic: "t", body: 1 }, { signal: controller.signal }), {
    code: "unknown",
    outcome: "unknown",
    message: `the call was cancelled before http://${silent.address} responded`,
  });
});

test("a wait ends before the deadline, and a further attempt asks for the rest of it", async (t) => {
  const job = { jobs: [{ id: "a", token: "0-1-1" }] };
  const replies = [];
  const node = await startNode(t, () => replies.shift() ?? job);
  const client = new Client([node.address], { discover: false });
  const asked = async (options) => {
    node.requests.length = 0;
    await client.reserve({ topics: ["t"], wait: 60 }, options);
    return node.requests.map((r) => r.body.wait);
  };
  for (const [deadline, most] of [[undefined, 60], [20, 19.5], [1, 0.75]]) {
    const [wait] = await asked({ deadline });
    assert.ok(wait <= most && wait > most / 10, `${wait} of ${most}`);
  }
  replies.push(notApplied);
  const [first, second] = await asked();
  assert.ok(second <= first - 0.04, "there was a pause of 50 ms");

  replies.push(...Array(100).fill({ jobs: [] }));
  assert.deepEqual(await client.reserve({ topics: ["t"], wait: 60 }, { deadline: 2 }), []);
});
