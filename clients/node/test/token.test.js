import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client } from "tarry";
import { Nodes } from "../src/nodes.js";
import { Token } from "../src/token.js";
import { added, startNode } from "./node.js";

const secret = "t0p-Secret";

/** A node that records the tokens of requests. */
async function recorder(t, reply) {
  const node = await startNode(t, reply);
  const seen = [];
  node.server.prependListener("request", (request) => seen.push(request.headers.authorization));
  return { address: node.address, take: () => seen.splice(0) };
}

test("the file of a token is read again when it has changed", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tarry-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "token");
  const write = (text, time) => {
    writeFileSync(file, text);
    utimesSync(file, time, time);
  };
  const node = await recorder(t, () => added);
  const options = { tokenFile: file, patience: 0, discover: false };
  const add = (client) => client.add({ topic: "t", body: 1 });

  write(" first\n", 1);
  const client = new Client([node.address], options);
  await add(client);
  assert.deepEqual(node.take(), ["Bearer first"]);
  write("other", 2);
  await add(client);
  assert.deepEqual(node.take(), ["Bearer other"]);
  for (const [i, bad] of ["", "two words", "line\nbreak", "ümlaut"].entries()) {
    write(bad, 3 + i);
    await assert.rejects(add(client), { code: "invalid_argument", outcome: "not_applied", message: /the token is/ }, bad);
    assert.throws(() => new Client([node.address], options), /the token is/, bad);
  }
  rmSync(file);
  await assert.rejects(add(client), { code: "invalid_argument", message: /is not sent/ });
  assert.deepEqual(node.take(), []);
  assert.throws(() => new Client([node.address], options), { code: "ENOENT" });
  assert.throws(() => new Client([node.address], { ...options, token: "x" }), TypeError);
});

test("without a token none is sent", async (t) => {
  const node = await recorder(t, () => added);
  await new Client([node.address], { discover: false }).add({ topic: "t", body: 1 });
  assert.deepEqual(node.take(), [undefined]);
});

test("a call that its token does not allow is not tried again, and nothing prints the token", async (t) => {
  for (const [status, code] of [[401, "unauthorized"], [403, "forbidden"]]) {
    const node = await recorder(t, () => ({ status, code, error: "no", outcome: "not_applied" }));
    for (const fetch of [undefined, globalThis.fetch]) {
      const client = new Client([node.address], { token: secret, discover: false, fetch });
      const calls = [() => client.add({ topic: "t", body: 1 }), () => client.stream({ topics: ["t"] }).next()];
      for (const call of calls) {
        await assert.rejects(call(), (error) => {
          assert.deepEqual([error.code, error.status, error.outcome], [code, status, "not_applied"]);
          assert.ok(!inspect(error, { depth: 20, showHidden: true }).includes(secret));
          return true;
        });
      }
      assert.deepEqual(node.take(), Array(2).fill("Bearer " + secret));
      assert.ok(!inspect(client, { depth: 20, showHidden: true }).includes(secret));
    }
  }
  const token = new Token({ token: secret });
  assert.ok(!(inspect(token, { showHidden: true }) + JSON.stringify(token)).includes(secret));
});

test("a lost connection does not show the token", async (t) => {
  const server = createServer((request) => request.socket.destroy());
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  for (const fetch of [undefined, globalThis.fetch]) {
    const client = new Client([`127.0.0.1:${server.address().port}`], { token: secret, patience: 0, discover: false, fetch });
    await assert.rejects(client.release("a"), (error) => {
      assert.equal(error.code, "unknown");
      assert.ok(!inspect(error, { depth: 20, showHidden: true }).includes(secret));
      return true;
    });
  }
});

test("a token is not sent in plain text to another machine", () => {
  const here = ["127.0.0.1:1", "localhost:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "https://queue.example:1", "127.9.9.9:1"];
  const away = ["queue.example:1", "http://10.0.0.1:1", "localhost.example:1", "0.0.0.0:1", "[::]:1"];
  for (const address of [...here, ...away]) {
    new Client([address]);
    new Client([address], { token: secret, tokenOverHttp: true });
    const make = () => new Client(["127.0.0.1:2", address], { token: secret });
    if (here.includes(address)) {
      make();
    } else {
      assert.throws(make, (error) => error instanceof TypeError && /without TLS/.test(error.message) && !error.message.includes(secret), address);
    }
  }
});

test("nor to one that a node names", () => {
  const token = new Token({ token: secret });
  const nodes = new Nodes(["127.0.0.1:1"], true, (node) => token.usable(node));
  nodes.responded("http://127.0.0.1:1", "10.0.0.1:1");
  nodes.learn(["10.0.0.2:1", "127.0.0.1:2"], "http://127.0.0.1:1");
  assert.deepEqual(nodes.all(), ["http://127.0.0.1:1", "http://127.0.0.1:2"]);
});

test("a token is made once, and revoked as often as it takes", async (t) => {
  let replies = ["cut"];
  const node = await startNode(t, () => replies.shift());
  const client = new Client([node.address], { discover: false });
  const rules = [{ topics: ["b.*"], verbs: ["add"] }];
  await assert.rejects(client.putToken("a", { rules, idPrefix: "x-" }), { outcome: "unknown" });
  replies = ["cut"];
  await assert.rejects(client.rotateToken("a", { overlap: 0 }), { outcome: "unknown" });
  replies = ["cut", { status: 404, code: "not_found", error: "no", outcome: "not_applied" }];
  await client.deleteToken("a");
  replies = [{ tokens: [{ id: "a", revision: 1, rules }], next: "a" }, { tokens: [] }];
  const found = [];
  for await (const token of client.tokens({ max: 1 })) {
    found.push(token.id);
  }
  assert.deepEqual(found, ["a"]);
  assert.deepEqual(node.requests, [
    { method: "PUT", path: "/v1/tokens/a", body: { rules, id_prefix: "x-" } },
    { method: "POST", path: "/v1/tokens/a/rotate", body: { overlap: 0 } },
    { method: "DELETE", path: "/v1/tokens/a", body: "" },
    { method: "DELETE", path: "/v1/tokens/a", body: "" },
    { method: "GET", path: "/v1/tokens?max=1", body: "" },
    { method: "GET", path: "/v1/tokens?cursor=a&max=1", body: "" },
  ]);
});

test("a namespace is put and removed as often as it takes", async (t) => {
  const one = { name: "a", revision: 1, topic_prefix: "a.", quotas: { jobs: 2 }, use: { jobs: 1, bytes: 5, topics: 1 } };
  let replies = ["cut", { name: "a", revision: 1, existing: true }];
  const node = await startNode(t, () => replies.shift());
  const client = new Client([node.address], { discover: false });
  await client.putNamespace("a", { topicPrefix: "a.", idPrefix: "a-", quotas: { jobs: 2 } }, { ifRevision: 0 });
  replies = ["cut", { status: 404, code: "not_found", error: "no", outcome: "not_applied" }];
  await client.deleteNamespace("a/b");
  replies = [{ namespaces: [one] }, one];
  assert.deepEqual((await client.namespaces()).map((n) => [n.topicPrefix, n.use.bytes]), [["a.", 5]]);
  assert.equal((await client.namespace("a")).quotas.jobs, 2);
  const put = { method: "PUT", path: "/v1/namespaces/a?if_revision=0", body: { topic_prefix: "a.", id_prefix: "a-", quotas: { jobs: 2 } } };
  const remove = { method: "DELETE", path: "/v1/namespaces/a%2Fb", body: "" };
  assert.deepEqual(node.requests, [
    put, put, remove, remove, { method: "GET", path: "/v1/namespaces", body: "" }, { method: "GET", path: "/v1/namespaces/a", body: "" },
  ]);
});
