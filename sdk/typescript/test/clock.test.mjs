import assert from "node:assert/strict";
import { test } from "node:test";
import { Alarm, now } from "../dist/clock.js";

const real = Date.now;

test("an alarm rings soon after a machine was suspended, and no clock goes back", async (t) => {
  t.after(() => (Date.now = real));
  const began = now();
  const rang = new Promise((done) => new Alarm(done).set(began + 60_000));
  Date.now = () => real() + 61_000; // timers stood still, and the wall clock went on
  await Promise.race([rang, new Promise((_, fail) => setTimeout(() => fail(new Error("it did not ring")), 30_000).unref())]);
  const at = now();
  assert(at - began >= 60_000);
  Date.now = () => real() - 3_600_000;
  assert(now() >= at && now() - at < 60_000);
});

test("an alarm that is cleared or moved rings once at most", async () => {
  let rings = 0;
  const alarm = new Alarm(() => rings++);
  alarm.set(now() + 20);
  alarm.clear();
  alarm.set(now() + 30);
  alarm.set(now() + 10);
  await new Promise((done) => setTimeout(done, 80));
  assert.equal(rings, 1);
});
