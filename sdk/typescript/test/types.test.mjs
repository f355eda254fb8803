import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

test("the types of the protocol are those of its documents", async () => {
  await promisify(execFile)(process.execPath, ["types.mjs", "--check"], { cwd: new URL("..", import.meta.url) }).catch((e) => assert.fail(e.stderr));
});
