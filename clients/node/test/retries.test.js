import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "tarry";

import { added, deadAddress, job, notApplied, startNode } from "./node.js";

/** Replies in turn; the last one again and again. */
const inTurn = (...replies) => () => (replies.length > 1 ? replies.shift() : replies[0]);

test("what a node refused is asked of the next one at once", async (t) => {
  const nodes = [await startNode(t, () => notApplied), await startNode(t, () => added)];
  const client = new Client(nodes.map((n) => n.address), { patience: 0, discover: false });
  for (let i = 0; i < 5; i++) {
    assert.equal((await client.add({ topic: "t", body: i })).id, "a");
  }
  assert.equal(nodes[1].requests.length, 5);
});

test("after a round over the nodes there is a pause, until the patience is over", async (t) => {
  const node = await startNode(t, inTurn(notApplied, { ...notApplied, code: "overloaded", status: 429 }, { ...notApplied, code: "disk_low", status: 507 }, added));
  const retries = [];
  const client = new Client([node.address], { onRetry: (error, left) => retries.push([error.code, left > 0]) });
  await client.add({ topic: "t", body: 1 });
  assert.equal(node.requests.length, 4);
  assert.deepEqual(retries, [["not_applied", true]]);

  const hopeless = await startNode(t, () => notApplied);
  await assert.rejects(new Client([hopeless.address], { patience: 0.2 }).add({ topic: "t", body: 1 }), {
    code: "not_applied",
    outcome: "not_applied",
    status: 503,
  });
  assert.ok(hopeless.requests.length > 1);
});

test("a full topic is the caller's to handle", async (t) => {
  const node = await startNode(t, () => ({ status: 429, code: "topic_full", error: "full", outcome: "not_applied", http: { "Retry-After": "3" } }));
  await assert.rejects(new Client([node.address]).add({ topic: "t", body: 1 }), { code: "topic_full", outcome: "not_applied", retryAfter: 3 });
  assert.equal(node.requests.length, 1);
});

test("an add whose reply was lost is sent again with the id that it had", async (t) => {
  const node = await startNode(t, inTurn("cut", { ...added, existing: true }));
  assert.equal((await new Client([node.address]).add({ topic: "t", body: 1 })).existing, true);
  assert.equal(node.requests.length, 2);
  assert.match(node.requests[0].body.id, /.{20}/);
  assert.deepEqual(node.requests[0], node.requests[1]);
});

test("a read whose reply was lost is made again", async (t) => {
  const node = await startNode(t, inTurn("cut", job));
  assert.deepEqual(await new Client([node.address]).get("a"), job);
  assert.equal(node.requests.length, 2);
});

test("a step that would do something twice is not sent again", async (t) => {
  const node = await startNode(t, () => "cut");
  const client = new Client([node.address]);
  const ref = { id: "a", token: "0-1-1" };
  for (const call of [
    () => client.release(ref),
    () => client.bury(ref),
    () => client.kick("a"),
    () => client.update("a", { delay: 1 }),
    () => client.finishThen(ref, [{ topic: "t", body: 1 }]),
    () => client.purge("t", "dead"),
    () => client.releaseTopic("t"),
    () => client.updateJobs({ idPrefix: "a" }, { delay: 1 }),
    () => client.runSchedule("s"),
    () => client.setSettings("t", {}, { ifRevision: 1 }),
  ]) {
    node.requests.length = 0;
    await assert.rejects(call(), { code: "unknown", outcome: "unknown" });
    assert.equal(node.requests.length, 1, call.toString());
  }
});

test("an error never promises more than is known", async (t) => {
  const node = await startNode(t, inTurn("cut", notApplied));
  await assert.rejects(new Client([node.address], { patience: 0.1 }).add({ topic: "t", body: 1 }), { code: "unknown", outcome: "unknown" });

  const conflict = await startNode(t, inTurn("cut", { status: 409, code: "id_conflict", error: "taken" }));
  await assert.rejects(new Client([conflict.address]).add({ topic: "t", body: 1 }), { code: "id_conflict", outcome: "unknown" });

  const reading = await startNode(t, () => "cut");
  await assert.rejects(new Client([reading.address], { patience: 0 }).get("a"), { code: "not_applied", outcome: "not_applied" });

  const alien = await startNode(t, () => ({ status: 502 }));
  await assert.rejects(new Client([alien.address], { patience: 0 }).release("a"), { code: "unknown", outcome: "unknown", status: 502 });
});

test("a reply that is not what the call gives is no success", async (t) => {
  let reply;
  const node = await startNode(t, () => reply);
  const client = new Client([node.address], { patience: 0, discover: false });
  const ref = { id: "a", token: "0-1-1" };
  const one = [{ topic: "t", body: 1 }];
  const nothing = {};
  for (const [made, call] of [
    [nothing, () => client.add(one[0])],
    [{ id: "a", seq: "1", state: "ready" }, () => client.add(one[0])],
    [{ ...added, success: false }, () => client.add(one[0])],
    [nothing, () => client.addBatch(one)],
    [{ results: [] }, () => client.addBatch(one)],
    [{ results: [{}] }, () => client.addBatch(one)],
    [{ results: [{ success: true }] }, () => client.addBatch(one)],
    [{ results: [null] }, () => client.addAll(one)],
    [{ results: [{ success: true }] }, () => client.finishThen(ref, one)],
    [nothing, () => client.update("a", { delay: 1 })],
    [nothing, () => client.delete("a")],
    [nothing, () => client.reserve({ topics: ["t"] })],
    [{ jobs: [{ id: "a" }] }, () => client.reserve({ topics: ["t"] })],
    [nothing, () => client.finish(ref)],
    [{ results: [{ success: true }] }, () => client.finishBatch([ref])],
    [{ results: [{ success: true }] }, () => client.deleteBatch([ref])],
    [{ results: [{ success: true }] }, () => client.kickBatch(["a"])],
    [{ results: [{ success: true }] }, () => client.updateBatch([{ id: "a", delay: 1 }])],
    [nothing, () => client.touch(ref)],
    [nothing, () => client.release(ref)],
    [nothing, () => client.bury(ref)],
    [nothing, () => client.kick("a")],
    [nothing, () => client.move(ref, "u")],
    [nothing, () => client.deleteJobs({ idPrefix: "a" })],
    [nothing, () => client.updateJobs({ idPrefix: "a" }, { delay: 1 })],
    [nothing, () => client.kickJobs({ idPrefix: "a" })],
    [nothing, () => client.kickTopic("t")],
    [nothing, () => client.releaseTopic("t")],
    [nothing, () => client.purge("t", "dead")],
    [nothing, () => client.moveTopic("t", "u")],
    [nothing, () => client.pause("t")],
    [nothing, () => client.resume("t")],
    [nothing, () => client.setSettings("t", {})],
    [nothing, () => client.changeSettings("t", {})],
    [nothing, () => client.deleteSettings("t")],
    [nothing, () => client.putSchedule("s", { spec: "@daily", job: one[0] })],
    [nothing, () => client.deleteSchedule("s")],
    [nothing, () => client.pauseSchedule("s")],
    [nothing, () => client.resumeSchedule("s")],
    [nothing, () => client.runSchedule("s")],
  ]) {
    reply = made;
    await assert.rejects(call(), { code: "unknown", outcome: "unknown", status: 200 }, call.toString());
  }
  const all = async (list) => {
    for await (const _ of list);
  };
  for (const [made, call] of [
    [nothing, () => client.get("a")],
    [{ ...job, success: false }, () => client.get("a")],
    [{ results: [{ success: true }] }, () => client.getBatch(["a"])],
    [nothing, () => client.history("a")],
    [nothing, () => client.explain("a")],
    [nothing, () => all(client.list({ topic: "t" }))],
    [{ jobs: [{}] }, () => all(client.list({ topic: "t" }))],
    [nothing, () => all(client.topics())],
    [nothing, () => all(client.schedules())],
    [nothing, () => client.topic("t")],
    [nothing, () => client.stats()],
    [nothing, () => client.settings("t")],
    [nothing, () => client.schedule("s")],
    [nothing, () => client.scheduleRuns("s")],
    [nothing, () => client.previewSchedule("s")],
    [nothing, () => client.health()],
  ]) {
    reply = made;
    await assert.rejects(call(), { code: "not_applied", outcome: "not_applied", status: 200 }, call.toString());
  }
});

test("a job that is gone after a lost finish was finished", async (t) => {
  const gone = { status: 404, code: "not_found", error: "gone" };
  const node = await startNode(t, inTurn("cut", gone));
  const client = new Client([node.address]);
  await client.finish({ id: "a", token: "0-1-1" });
  await assert.rejects(client.finish({ id: "a", token: "0-1-1" }), { code: "not_found", outcome: "not_applied" });

  const batch = await startNode(t, inTurn("cut", { success: false, results: [{ success: true, id: "a", state: "finished" }, { success: false, ...gone }] }));
  assert.deepEqual(await new Client([batch.address]).finishBatch(["a", "b"]), [null, null]);
});

test("the finishes of a reserve are sent until they are done, and once", async (t) => {
  const gone = { success: false, code: "not_found", error: "gone" };
  const node = await startNode(t, inTurn("cut", { success: false, finished: [gone, { success: true, id: "b", state: "gone" }], jobs: [] }, { status: 400, code: "invalid_argument", error: "no" }));
  const client = new Client([node.address], { discover: false });
  const request = { topics: ["t"], wait: 5 };
  assert.deepEqual(await client.finishAndReserve([{ id: "a", token: "0-1-1" }, "b"], request), { jobs: [], finished: [null, null] });
  assert.deepEqual(node.requests.map(({ body }) => body.finish?.length), [2, 2, undefined]);
  await assert.rejects(client.finishAndReserve([], request), { code: "invalid_argument" });
});

test("each attempt has a timeout, and the next node is asked", async (t) => {
  const silent = await startNode(t, () => undefined);
  const node = await startNode(t, () => added);
  const client = new Client([silent.address, node.address], { timeout: 0.5, discover: false });
  for (let i = 0; i < 3; i++) {
    await client.add({ topic: "t", body: 1 });
  }
  assert.equal(node.requests.length, 3);
  assert.ok(silent.requests.length <= 1, "a node that did not respond is not asked first again");
});

test("a call is cancelled, retries and all", async (t) => {
  const node = await startNode(t, () => notApplied);
  const client = new Client([node.address]);
  const controller = new AbortController();
  const call = client.add({ topic: "t", body: 1 }, { signal: controller.signal });
  controller.abort();
  await assert.rejects(call, (error) => error.name === "TarryError" && /unknown|not_applied/.test(error.code));

  const sent = node.requests.length;
  await assert.rejects(client.add({ topic: "t", body: 1 }, { signal: AbortSignal.abort() }), { code: "not_applied", outcome: "not_applied" });
  assert.equal(node.requests.length, sent);
});

test("the leader is learned and asked first, and the members are learned once", async (t) => {
  const leader = await startNode(t, () => ({ ...added, http: { "Tarry-Leader": leader.address } }));
  const follower = await startNode(t, () => ({ ...added, http: { "Tarry-Leader": leader.address } }));
  follower.countMembers = true;
  follower.members = [{ http_address: "" }, { http_address: leader.address }, { http_address: await deadAddress() }];
  const client = new Client([follower.address]);
  for (let i = 0; i < 4; i++) {
    await client.add({ topic: "t", body: i });
  }
  assert.equal(leader.requests.length, 3);
  assert.deepEqual(follower.requests.map((r) => r.path).sort(), ["/v1/cluster/members", "/v1/jobs"]);
});

test("an address that was learned and leads nowhere costs one attempt", async (t) => {
  const nowhere = await deadAddress();
  let attempts = 0;
  const node = await startNode(t, () => ({ ...added, http: { "Tarry-Leader": nowhere } }));
  const client = new Client([node.address], {
    patience: 0,
    fetch: (url, options) => {
      attempts += url.includes(nowhere);
      return fetch(url, options);
    },
  });
  for (let i = 0; i < 5; i++) {
    await client.add({ topic: "t", body: i });
  }
  assert.equal(attempts, 1);
  assert.equal(node.requests.length, 5);
});

test("no node", async () => {
  const client = new Client([await deadAddress()], { patience: 0.1 });
  await assert.rejects(client.release("a"), { code: "not_applied", outcome: "not_applied", status: undefined });
  assert.throws(() => new Client([]), TypeError);
  assert.throws(() => new Client(["localhost"]), TypeError);
});
