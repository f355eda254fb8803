import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { program } from "./kit.mjs";

// `make conform-typescript` runs all scripts, and puts a fault for each into the SDK; here are those of one part.
test("the conformance kit finds nothing in how a session is resumed", async () => {
  const driver = new URL("../conform/driver.mjs", import.meta.url).pathname;
  await promisify(execFile)(program, ["conform", "--only", "resume/", "--at-once", "9", "--", process.execPath, driver]).catch((e) => assert.fail(e.stdout + e.stderr));
});
