import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { program } from "./kit.mjs";

const passes = (...command) => promisify(execFile)(...command).catch((e) => assert.fail(e.stdout + e.stderr));
const conform = (name) => new URL(`../conform/${name}`, import.meta.url).pathname;
const native = globalThis.WebSocket ? [] : ["--experimental-websocket"];

// `make conform-typescript` runs all scripts with both sockets, and `make conform-faults` puts a fault for each into the SDK.
test("the conformance kit finds nothing in how a session is resumed", () =>
  passes(program, ["conform", "--only", "resume/", "--at-once", "9", "--", process.execPath, conform("driver.mjs")]));

test("nor in how a lease is kept, by a clock that stands still", () =>
  passes(program, ["conform", "--only", "lease/held-for-long", "--", process.execPath, conform("driver.mjs")]));

test("nor with the WebSocket of the platform in how one is begun", () =>
  passes(program, ["conform", "--only", "way/session", "--at-once", "9", "--", process.execPath, ...native, conform("driver.mjs")]));
