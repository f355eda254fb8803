"""Puts a fault into the SDK for each script of `codeq conform`, and sees the script find it:
python3 sdk/python/conform/faults.py [PART OF A SCRIPT'S NAME]. It takes ten minutes with all. `--check` only looks
whether each script has a fault and each fault its place."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SDK = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("CODEQ_TEST_PROGRAM", str(SDK.parents[1] / "bin" / "codeq"))
AT_ONCE = 8

ENGINE, CLIENT, HTTP, ERRORS, JOB, WORKER, SESSION, SOCKET = (
    f"src/codeq/{name}.py" for name in ("engine", "client", "http1", "errors", "job", "worker", "session", "websocket")
)
DRIVER = "conform/driver.py"
REVOKED = "            if d is not None:\n                reason = frame"

# Scripts that must fail, the file, what is there once, and what stands there then.
FAULTS = [
    ("work/complete", JOB, '"status":"COMPLETED","result":{encoded}', '"status":"COMPLETED","result":{{}}'),
    ("work/several-commands", WORKER, 'self._handlers.get(job.command) or self._handlers["*"]', "next(iter(self._handlers.values()))"),
    ("work/window", WORKER, "list(self._handlers), self._window, ", "list(self._handlers), 2 * self._window, "),
    ("work/window-overrun", ENGINE, "d.state != READY or self._running >= self._options.window", "d.state != READY"),
    ("work/received-first", ENGINE, '"through":{self._here}', '"through":{self._here - 1}'),
    ("work/error-is-retried", JOB, "return nacked(str(error), error.delay)", "return nacked(str(error))"),
    ("work/backoff-decides", JOB, '"" if delay is None else', '",\\"delaySeconds\\":900" if delay is None else'),
    ("work/exception", JOB, '    return nacked(f"{first}', '    return failed(f"{first}'),
    ("work/fail-for-good", JOB, 'return failed(str(error) or "no reason given")', "return nacked(str(error))"),
    ("work/hand-back end/grace-is-over end/stop", JOB, "    if isinstance(error, Release):\n        return released()", "    if isinstance(error, Release):\n        return nacked('x')"),
    ("work/cannot-begin", ENGINE, "            self._resting = True\n", ""),
    ("work/large", HTTP, "WebSocket(reader, writer, MAX_MESSAGE)", "WebSocket(reader, writer, 512 << 10)"),
    ("work/many-large-outcomes", ENGINE, "if frames and size > MESSAGE_BYTES:", "if frames and size > 100 * MESSAGE_BYTES:"),
    ("work/result-too-large", JOB, "        return nacked(f\"the result has more", "        return failed(f\"the result has more"),
    ("work/result-refused", ENGINE, "        if other is None:\n", "        if other is not None:\n            return None\n        if other is None:\n"),
    ("work/progress work/output", ENGINE, "len(self._out) < REPORTS", "len(self._out) < 0"),
    ("work/artifact", CLIENT, "        job.attach(name)\n", ""),
    ("work/artifact-answer-lost", CLIENT, "persist(errors.KEYED, math.inf, put, keyed=True)", "put(0.0)"),
    ("work/trace", CLIENT, '"traceParent": self.trace_parent', '"traceParent": None'),
    ("lease/heartbeat", ENGINE, "options.lease / 3", "options.lease"),
    ("lease/held-for-long", ENGINE, '"extendSeconds":{self._options.lease}', '"extendSeconds":1'),
    ("lease/cancelled", ENGINE, REVOKED, REVOKED.replace("is not None", 'is not None and frame.get("reason") != "cancelled"')),
    ("lease/taken-back", ENGINE, REVOKED, REVOKED.replace("is not None", 'is not None and frame.get("reason") != "taken_back"')),
    ("lease/revoked-for-a-new-reason", ENGINE, REVOKED, REVOKED.replace("is not None", 'is not None and frame.get("reason") != "sold"')),
    ("lease/late-result-counts", ENGINE, "if refusal is not None and d.lost:", "if d.lost:"),
    ("lease/goes-to-another strange/unknown-code", ENGINE, "return self._taken(d, refusal, {})", "return self._taken(d, None, {})"),
    ("lease/listed-as-lost resume/new-session-lost", ENGINE, "                self._lose(d, \"lease_lost\", \"the server does not count", "                str((d, \"lease_lost\", \"the server does not count"
     ), ("lease/revoked-by-timeout", ENGINE, '"timeout" if reason == "timeout" else "lease_lost"', '"lease_lost"'),
    ("lease/deadline-of-its-own", ENGINE, "if job.timeout is not None:", "if False:"),
    ("lease/duplicate", ENGINE, "        if token in self._deliveries:\n", "        if False:\n"),
    ("link/not-there-yet", ERRORS, "FIRST_LINK = PASSING | PUT_OFF", "FIRST_LINK = PASSING & ~UNREACHED | PUT_OFF"),
    ("way/session-behind-a-proxy", ERRORS, "FIRST_LINK = PASSING | PUT_OFF", "FIRST_LINK = PASSING & ~GATEWAY | PUT_OFF"),
    ("strange/unauthenticated way/session-of-another-server", ERRORS, "FIRST_LINK = PASSING | PUT_OFF", "FIRST_LINK = EVERYTHING"),
    ("link/pauses-grow strange/full", ERRORS, "max(delay / 2 + random.random() * delay, ", "max(0.1 + random.random() / 100, "),
    ("link/cut-while-idle", ENGINE, "else backoff(max(0, short - 1)))", "else 10)"),
    ("link/cut-while-working", ENGINE, "                d.link = self._links\n                self._carried -= 1\n", "                self._carried -= 1\n"),
    ("link/cut-before-the-result link/cut-after-the-result", ENGINE, "        for d in self._deliveries.values():\n            d.asked = 0\n", ""),
    ("link/answered-while-away", ENGINE, "        self._hand_in_all()\n        self._beat()\n", "        self._beat()\n"),
    ("link/half-open link/half-closed-result", SESSION, "= 2.5 * (", "= 9999 * ("),
    ("link/slow", SOCKET, "                timer.cancel()\n", "                pass\n"),
    ("link/ping-is-echoed", SOCKET, "encode(_PONG, payload)", 'encode(_PONG, b"")'),
    ("link/server-restarts", ENGINE, "            link = await persist(WORKER_LINK", "            await asyncio.sleep(99)\n            link = await persist(WORKER_LINK"),
    ("result/watch", "src/codeq/watch.py", "                    raise\n                log", "                    raise\n                await asyncio.sleep(99)\n                log"),
    ("strange/token-removed", ERRORS, "WORKER_LINK = EVERYTHING", "WORKER_LINK = EVERYTHING & ~REFUSED"),
    ("resume/key resume/same-session", ENGINE, 'welcome.get("resume", "")', '""'),
    ("resume/grace-is-over lease/ends", ENGINE, "            self._owner.cancel(d.job, reason)\n", "            pass\n"),
    ("resume/not-held", ENGINE, '                self._lose(d, "lease_lost", "the session does not have it any more")', "                pass"),
    ("resume/held-and-unknown", ENGINE, "d.state, d.settlement = ENDED, released()", "d.state, d.settlement = ARRIVED, released()"),
    ("resume/new-session", ENGINE, "max(0, self._options.window - self._carried)", "self._options.window"),
    ("resume/outcome-first", ENGINE, "        self._hand_in_all()\n        self._beat()\n", "        self._beat()\n        self._hand_in_all()\n"),
    ("resume/replaced", ENGINE, "problem.close_code == REPLACED", "problem.close_code == 1"),
    ("end/drain", ENGINE, "            self._draining = True\n", ""),
    ("end/drain-idle", SOCKET, "async def close(self, code: int = 1000", "async def close(self, code: int = 1001"),
    ("end/drain-hands-back", ENGINE, "            if self._link is None:\n                self._forget(d)\n            else:", "            if True:\n                self._forget(d)\n            else:"),
    ("end/task-on-its-way", ENGINE, "self._link is None or not self._window_unanswered", "True"),
    ("end/term", WORKER, "(signal.SIGTERM, signal.SIGINT)", "(signal.SIGINT,)"),
    ("end/drain-without-a-connection", ENGINE, "if not self._deliveries and answered or", "if answered or"),
    ("end/server-drains end/server-tells-all end/admin-drains", ENGINE, "            self._goodbye = True\n", "            self.stop()\n"),
    ("strange/unknown", ENGINE, "        refusal = from_answer(frame)\n", "        refusal = from_answer(frame)\n        self.stop() if not kind else None\n"),
    ("strange/no-json", SESSION, "close(4400", "close(1002"),
    ("strange/binary", SESSION, "            if not isinstance(message, str):\n", "            if False:\n"),
    ("strange/subscription-put-off", ENGINE, 'elif kind == "subscribe" and again:', 'elif kind == "subscribe" and False:'),
    ("strange/subscription-refused", ENGINE, "            self.error = refusal\n            self.stop()\n", "            self._put_off(refusal)\n"),
    ("strange/outcome-put-off", ERRORS, "FRAME = PUT_OFF | AWAY | INTERNAL", "FRAME = PUT_OFF | AWAY"),
    ("strange/heartbeat-refused", ENGINE, "min(backoff(0), self._lease_third / 2)", "3600"),
    ("strange/token-changes", HTTP, "said = self.token() if callable", "said = self.__dict__.setdefault('said', self.token()) if callable"),
    ("strange/connect-put-off", ERRORS, "min(advice, 10 * _LONGEST)", "0"),
    ("way/session-redirected way/post-redirected", HTTP, "elif answer.status not in (307, 308):", "elif answer.status != 308:"),
    ("way/session-moved way/post-moved", HTTP, "elif answer.status not in (307, 308):", "elif answer.status == 303:"),
    ("way/session-in-a-circle", HTTP, "elif hops == MAX_HOPS:", "elif hops == 99:"),
    ("way/session-token-stays way/post-token-stays", HTTP, "if (to.host.lower(), to.port) == (server.host.lower(), server.port):", "if True:"),
    ("way/task-of-another-server", HTTP, 'not in the words of codeq: {why}", code="not_codeq"', 'not in the words of codeq: {why}", code="other"'),
    ("node/next-address node/next-address-of-a-post", HTTP, "            self._at = (failed + 1) % len(self.servers)\n", "            pass\n"),
    ("node/leader-is-asked", HTTP, "                        self._at = i\n", "                        pass\n"),
    ("node/lost-leader-is-not-asked", HTTP, "        self._lost_at[failed] = time.monotonic()\n", ""),
    ("node/stranger-is-not-asked", HTTP, "                leader = parse(url)\n", "                leader = self.servers[self._at] = parse(url)\n"),
    ("post/options", CLIENT, '"delaySeconds": _whole_seconds(self.delay)', '"delaySeconds": None'),
    ("post/twice-with-a-key", CLIENT, '.get("idempotent-replayed", "").lower() == "true"', '.get("idempotent-replayed", "").lower() == "yes"'),
    ("post/answer-lost-with-a-key", ERRORS, "KEYED_IN_DOUBT = PASSING | PUT_OFF", "KEYED_IN_DOUBT = PASSING & ~BROKEN | PUT_OFF"),
    ("post/proxy-error-with-a-key", ERRORS, "KEYED_IN_DOUBT = PASSING | PUT_OFF", "KEYED_IN_DOUBT = PASSING & ~GATEWAY | PUT_OFF"),
    ("post/draining-with-a-key", ERRORS, "KEYED = PASSING  #", "KEYED = PASSING & ~AWAY  #"),
    ("post/waits-with-a-key", ERRORS, "KEYED = PASSING  #", "KEYED = PASSING & ~UNREACHED  #"),
    ("post/answer-lost-without-a-key post/batch-answer-lost", CLIENT, "        if keyed:\n", "        if True:\n"),
    ("post/proxy-error-without-a-key", ERRORS, "IN_DOUBT = INTERNAL | BROKEN | CUT_SHORT | GATEWAY | GARBLED", "IN_DOUBT = INTERNAL | BROKEN | CUT_SHORT | GARBLED"),
    ("post/unreachable", ERRORS, "    if not problem.fate & IN_DOUBT or", "    if not problem.fate & (IN_DOUBT | UNREACHED) or"),
    ("post/overloaded", ERRORS, 'retry_after=float(body.get("retryAfterSeconds") or 0)', "retry_after=0.0"),
    ("post/refused", ERRORS, 'retryable=bool(body.get("retryable"))', "retryable=True"),
    ("post/conflict", ERRORS, 'task_id=body.get("taskId"), task=body', "task_id=None, task=body"),
    ("post/unknown-answer", HTTP, '        if body.get("code"):\n', '        if body.get("code") and answer.status != 418 and body["code"] != "moon_phase":\n'),
    ("post/batch", CLIENT, "return errors.from_answer({**one, ", 'return errors.from_answer({**one, "code": "x", '),
    ("post/batch-with-keys", CLIENT, "all(task.idempotency_key for task, _ in part)", "False"),
    ("result/waits", DRIVER, '"result": record.get("result")', '"result": None'),
    ("result/failed", DRIVER, '"reason": record.get("error")', '"reason": ""'),
    ("result/over-a-restart result/over-a-cut", ERRORS, "WAIT = PASSING | PUT_OFF | LATE", "WAIT = GATEWAY | PUT_OFF | LATE"),
    ("result/over-a-proxy-error", ERRORS, "WAIT = PASSING | PUT_OFF | LATE", "WAIT = PASSING & ~GATEWAY | PUT_OFF | LATE"),
    ("result/time-is-over", ERRORS, "        if now >= until:\n", "        if now >= until + 99:\n"),
    ("result/no-such-task", ERRORS, '    "result_not_found": LATE,\n', '    "result_not_found": LATE,\n    "task_not_found": LATE,\n'),
    ("result/task", DRIVER, '"attempts": task.attempts}', '"attempts": 7}'),
    ("result/cancel", CLIENT, 'f"/tasks/{_id(task)}/cancel"', 'f"/tasks/{_id(task)}/cancels"'),
]


def mutated(folder: pathlib.Path, file: str, old: str, new: str) -> pathlib.Path:
    """A copy of the SDK with a fault. The driver of it is the answer."""
    for part in ("src", "conform"):
        shutil.copytree(SDK / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / file).read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file} has {text.count(old)} times {old!r}")
    (folder / file).write_text(text.replace(old, new))
    return folder / DRIVER


def found(scripts: str, file: str, old: str, new: str) -> dict[str, str]:
    """The sentence with which each script fails over a fault; "" if it does not."""
    with tempfile.TemporaryDirectory() as folder:
        driver = mutated(pathlib.Path(folder), file, old, new)
        return {name: sentence(name, driver) for name in scripts.split()}


def sentence(name: str, driver: pathlib.Path) -> str:
    command = [PROGRAM, "conform", "--json", "--only", name, "--", sys.executable, "-B", str(driver)]
    done = subprocess.run(command, capture_output=True, text=True)
    return str(json.loads(done.stdout)["scripts"][0].get("failed", ""))


def main(part: str) -> int:
    listed = subprocess.run([PROGRAM, "conform", "--list"], capture_output=True, text=True, check=True).stdout
    names = {line.partition(":")[0] for line in listed.splitlines()}
    missing = names - {name for fault in FAULTS for name in fault[0].split()}
    print("no fault for:", *sorted(missing) or ["none"])
    if part == "--check":
        for fault in FAULTS:
            with tempfile.TemporaryDirectory() as folder:
                mutated(pathlib.Path(folder), *fault[1:])
        return len(missing)
    chosen = [fault for fault in FAULTS if part in fault[0]]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for fault, said in zip(chosen, pool.map(lambda f: found(*f), chosen)):
            for name, why in said.items():
                missed += not why
                print(f"{name}: {why or 'NOT FOUND: ' + fault[2]}", flush=True)
    total = sum(len(fault[0].split()) for fault in chosen)
    print(f"{total - missed} of {total} faults found")
    return 1 if missed or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
