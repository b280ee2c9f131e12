import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const tsc = spawnSync("tsc", ["--version"]);

// In CI the compiler (Debian's node-typescript) must be there.
test("the types are right, and the sources are by them", { skip: tsc.error && process.env.CI !== "true" && "SKIPPED: no tsc" }, () => {
  for (const project of [".", "src"]) {
    const { error, status, stdout } = spawnSync("tsc", ["--project", project], { cwd: fileURLToPath(new URL("..", import.meta.url)), encoding: "utf8" });
    assert.equal(error, undefined);
    assert.equal(status, 0, stdout);
  }
});
