import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";

import { Client } from "tarry";

import { added, startNode } from "./node.js";

/** A server that does with each connection as it is told. */
async function listen(t, handle) {
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    handle(socket);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  return `127.0.0.1:${server.address().port}`;
}

test("connections are used again", async (t) => {
  const node = await startNode(t, () => added);
  let connections = 0;
  node.server.on("connection", () => connections++);
  const client = new Client([node.address], { discover: false });
  for (let i = 0; i < 5; i++) {
    await client.add({ topic: "t", body: i });
  }
  assert.equal(connections, 1);
});

test("a reply that is cut off, or has no valid status, is an unknown outcome", async (t) => {
  for (const reply of ["", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 None\r\n\r\n", "hello"]) {
    const address = await listen(t, (socket) => socket.once("data", () => socket.end(reply)));
    await assert.rejects(new Client([address], { patience: 0, discover: false }).release("a"), { code: "unknown", outcome: "unknown" }, reply);
  }
});

test("what was not connected was not sent", async (t) => {
  const silent = await listen(t, () => {});
  // Nobody completes the handshake, so no request is sent.
  await assert.rejects(new Client(["https://" + silent], { patience: 0 }).release("a", { deadline: 0.1 }), (error) => {
    assert.deepEqual([error.code, error.outcome], ["not_applied", "not_applied"]);
    assert.match(error.message, /the deadline ended the call/);
    return true;
  });
  const plain = await startNode(t, () => added);
  await assert.rejects(new Client(["https://" + plain.address], { patience: 0 }).release("a"), { code: "not_applied", outcome: "not_applied" });
  assert.equal(plain.requests.length, 0);
});

test("a fetch of one's own makes the requests", async (t) => {
  const node = await startNode(t, () => added);
  const urls = [];
  const fetch = (url, init) => {
    urls.push([url, init.redirect]);
    return globalThis.fetch(url, init);
  };
  await new Client([node.address], { fetch, discover: false }).add({ topic: "t", body: 1 });
  assert.deepEqual(urls, [[`http://${node.address}/v1/jobs`, "manual"]]);
  assert.throws(() => new Client([node.address], { fetch, tls: {} }), TypeError);
});
