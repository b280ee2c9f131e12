import assert from "node:assert/strict";
import { test } from "node:test";

import { BuryError, Client, Worker } from "tarry";

import { deadAddress, job as done, startNode } from "./node.js";

const line = (event) => JSON.stringify(event) + "\n";

/** A node that streams these jobs, replies to the steps and notes them. */
async function startQueue(t, jobs, step = () => done) {
  const node = await startNode(t, ({ path, body }, response) => {
    if (path !== "/v1/stream") {
      return step(path);
    }
    response.write(line({ event: "open", heartbeat: 15 }));
    for (const job of jobs.splice(0, body.credit)) {
      response.write(line({ event: "job", token: "0-1-1", attempts: 1, ttr: 60, ...job }));
    }
  });
  const steps = () => node.requests.filter((r) => r.path !== "/v1/stream").map((r) => [r.path.replace("/v1/jobs/", ""), r.body]);
  return { client: new Client([node.address]), node, steps };
}

test("a job is finished, released or buried, as its function ends", async (t) => {
  const { client, steps, node } = await startQueue(t, [{ id: "a" }, { id: "b", attempts: 3 }, { id: "c" }]);
  let worked = 0;
  const reports = [];
  const worker = new Worker(
    client,
    "mail",
    async ({ id }) => {
      if (++worked === 3) {
        worker.stop();
      }
      if (id === "b") {
        throw new Error("ü".repeat(600));
      }
      if (id === "c") {
        throw new BuryError("never");
      }
    },
    {
      concurrency: 3,
      backoff: { base: 0.1, factor: 3, max: 10 },
      ttr: 30,
      consumer: "w",
      onError: (error, job) => reports.push([job.id, error.message.slice(0, 5)]),
    },
  );
  await worker.run();
  assert.deepEqual(node.requests[0].body, { topics: ["mail"], credit: 3, ttr: 30, consumer: "w" });
  assert.deepEqual(steps().sort(), [
    ["a/finish", { token: "0-1-1" }],
    ["b/release", { token: "0-1-1", reason: "ü".repeat(500), delay: 0.9 }],
    ["c/bury", { token: "0-1-1", reason: "never" }],
  ]);
  assert.deepEqual(reports.sort(), [["b", "üüüüü"], ["c", "never"]]);
});

test("after the timeout a function is told, its job is released, and prolonged no more", async (t) => {
  const { client, steps } = await startQueue(t, [{ id: "a", ttr: 0.3 }, { id: "b" }]);
  const reasons = [];
  const worker = new Worker(
    client,
    "mail",
    async ({ id }, { signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      reasons.push(signal.reason.name);
      if (id === "a") {
        await new Promise((resolve) => setTimeout(resolve, 300)); // three touches
        throw new Error("given up");
      }
    },
    {
      concurrency: 2,
      timeout: 0.05,
      onError: (error, job) => {
        assert.deepEqual([job.id, error.message], ["a", "timed out after 0.05 s"]);
        worker.stop();
      },
    },
  );
  await worker.run();
  assert.deepEqual(reasons, ["TimeoutError", "TimeoutError"]);
  assert.deepEqual(steps().sort(), [
    ["a/release", { token: "0-1-1", reason: "timed out after 0.05 s" }],
    ["b/finish", { token: "0-1-1" }],
  ]);
});

test("a function that throws no Error, or what cannot be shown, releases its job", async (t) => {
  const { client, steps } = await startQueue(t, [{ id: "a" }, { id: "b" }]);
  let reported = 0;
  const worker = new Worker(
    client,
    "mail",
    ({ id }) => {
      throw id === "a" ? undefined : Object.create(null);
    },
    { concurrency: 2, onError: () => ++reported === 2 && worker.stop() },
  );
  await worker.run();
  assert.deepEqual(steps().map(([path]) => path).sort(), ["a/release", "b/release"]);
});

test("a reservation is prolonged, and its loss aborts the function", async (t) => {
  const touches = [done, { status: 409, code: "stale_token", error: "expired" }];
  const { client, steps } = await startQueue(t, [{ id: "a", ttr: 1.2 }], (path) => (path.endsWith("touch") ? touches.shift() : { status: 409, code: "stale_token", error: "expired" }));
  const errors = [];
  const worker = new Worker(
    client,
    ["mail"],
    async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      worker.stop();
    },
    { onError: (error, job) => errors.push([job.id, error.code]) },
  );
  await worker.run();
  assert.deepEqual(steps().map(([path]) => path), ["a/touch", "a/touch", "a/finish"]);
  assert.deepEqual(errors, [["a", "stale_token"], ["a", "stale_token"]]);
});

test("a signal stops the worker when its functions have ended", async (t) => {
  const { client, steps } = await startQueue(t, [{ id: "a" }]);
  let ended = false;
  const worker = new Worker(client, "mail", async (_, { stopping }) => {
    process.kill(process.pid, "SIGUSR2");
    await new Promise((resolve) => stopping.addEventListener("abort", resolve));
    await new Promise((resolve) => setTimeout(resolve, 20));
    ended = true;
  }, { signals: ["SIGUSR2"] });
  await worker.run();
  assert.ok(ended);
  assert.deepEqual(steps(), [["a/finish", { token: "0-1-1" }]]);
  assert.equal(process.listenerCount("SIGUSR2"), 0);
});

test("after a broken connection the worker asks for no more than it can work on", async (t) => {
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const credits = [];
  const node = await startNode(t, ({ path, body }, response) => {
    if (path !== "/v1/stream") {
      return done;
    }
    credits.push(body.credit);
    const first = credits.length === 1;
    response.write(line({ event: "open", heartbeat: 15 }) + (first ? line({ event: "job", id: "a", token: "t", attempts: 1, ttr: 60 }) : ""), () => {
      if (first) {
        setTimeout(() => response.destroy(), 20);
      }
    });
    if (credits.length === 2) {
      release();
    }
    if (credits.length === 3) {
      worker.stop();
    }
  });
  const worker = new Worker(new Client([node.address]), "mail", () => held, { concurrency: 3 });
  await worker.run();
  assert.deepEqual(credits, [3, 2, 1]);
});

test("what the nodes refuse ends the worker", async (t) => {
  const node = await startNode(t, () => ({ status: 400, code: "invalid_argument", error: "topics", field: "topics" }));
  await assert.rejects(new Worker(new Client([node.address]), [], () => {}).run(), { code: "invalid_argument" });
  assert.throws(() => new Worker(new Client(["a:1"]), "t", () => {}, { concurrency: 0 }), TypeError);
  assert.throws(() => new Worker(new Client(["a:1"]), "t", () => {}, { timeout: 0 }), TypeError);
});

test("a worker says that no node can be reached", async () => {
  const errors = [];
  const worker = new Worker(new Client([await deadAddress()]), "mail", () => {}, {
    onError: (error, job) => {
      errors.push([error.code, job]);
      if (errors.length === 2) {
        worker.stop();
      }
    },
  });
  await worker.run();
  assert.deepEqual(errors, [["not_applied", undefined], ["not_applied", undefined]]);
});
