import assert from "node:assert/strict";
import { test } from "node:test";
import { Nodes } from "../src/nodes.js";

test("an address that cannot be reached is avoided for twice as long each time, up to an hour", (t) => {
  let time = 0;
  t.mock.method(performance, "now", () => time);
  const nodes = new Nodes(["a:1"], true);
  const known = () => {
    nodes.learn(["b:1"], "http://a:1");
    return nodes.all().includes("http://b:1");
  };
  for (const seconds of [60, 120, 240, 480, 960, 1920, 3600, 3600]) {
    assert.ok(known());
    nodes.failed("http://b:1", true);
    time += seconds * 1000 - 1;
    assert.ok(!known(), `${seconds} s`);
    time += 1;
  }
  assert.ok(known());
  nodes.responded("http://b:1", null);
  nodes.failed("http://b:1", true);
  time += 60_000;
  assert.ok(known(), "it was reached since");
});
