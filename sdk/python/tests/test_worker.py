"""The worker, against the real server."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from typing import Any

import support

from support import Case, Line, Server, codeq

import codeq.sync  # support has put it into the path
from codeq.__main__ import main


class Handlers(Case):
    async def outcome(self, handler: Any, payload: Any = None, **members: Any) -> codeq.Task:
        """The task after one delivery to a handler."""
        ended: list[codeq.Settled] = []
        async with self.working(handler, settled=ended.append):
            task = await self.client.enqueue(handler, payload, **members)
            await self.eventually(lambda: ended)
        self.settled = ended[0]
        return await self.client.task(task)

    async def test_functions_and_coroutines_of_several_commands_share_a_window(self) -> None:
        running = most = 0
        lock = threading.Lock()

        def count(n: int) -> None:
            nonlocal running, most
            with lock:
                running += n
                most = max(most, running)

        async def a(_: Any) -> None:
            count(1)
            await asyncio.sleep(0.02)
            count(-1)

        def b(_: Any) -> dict[str, str]:
            count(1)
            time.sleep(0.02)
            count(-1)
            return {"thread": threading.current_thread().name}

        tasks = [codeq.NewTask(name, i) for i in range(10) for name in "ab"]
        async with self.working(a, b, window=4):
            made = await self.client.enqueue_many(tasks)
            results = [await self.client.result(task.id, support.PATIENCE) for task in made]
        self.assertEqual(most, 4)
        self.assertEqual(results[0], {})
        self.assertTrue(results[1]["thread"].startswith("codeq-handler-"))

    async def test_a_handler_sees_its_job(self) -> None:
        seen: list[Any] = []

        def look(_: Any) -> None:
            job = codeq.current()
            seen.append((job.id, job.command, job.payload, job.attempts, job.max_attempts, job.delivery, job.labels,
                         job.trace_parent, job.timeout, job.cancelled, job.draining))

        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        task = await self.outcome(look, [1], max_attempts=2, labels={"a": "b"}, trace_parent=trace, timeout=9)
        self.assertEqual(seen, [(task.id, "look", [1], 0, 2, 1, {"a": "b"}, trace, 9.0, False, False)])
        with self.assertRaises(LookupError):
            codeq.current()

    async def test_an_error_keeps_its_traceback(self) -> None:
        def deep(n: int) -> None:
            raise ValueError("boom") if n == 0 else None

        def boom(_: Any) -> None:
            deep(0)

        with self.assertLogs("codeq", logging.WARNING) as logs:
            task = await self.outcome(boom)
        lines = task.error.splitlines()
        self.assertEqual(lines[0], "ValueError: boom")
        self.assertRegex(task.error, r'(?s)Traceback.*in boom.*in deep.*ValueError: boom')
        self.assertNotIn("codeq/worker.py", task.error)
        self.assertIn("in deep", logs.output[0])
        self.assertEqual((task.status, self.settled.outcome, self.settled.retry_in > 0), ("PENDING", "nacked", True))

    async def test_a_long_error_keeps_its_ends(self) -> None:
        def boom(_: Any) -> None:
            raise ValueError("a" * 9000 + "z")

        task = await self.outcome(boom, max_attempts=1)
        self.assertLessEqual(len(task.error), 8192)
        self.assertEqual((task.status, self.settled.dead), ("FAILED", True))

    async def test_what_a_handler_raises_decides(self) -> None:
        for error, status, outcome, attempts in (
            (codeq.Fail("no such file"), "FAILED", "failed", 0), (codeq.Retry(60, "busy"), "PENDING", "nacked", 1),
            (codeq.CannotStart("no disk"), "PENDING", "released", 0), (SystemExit(1), "PENDING", "nacked", 1),
            (StopIteration(), "PENDING", "nacked", 1), (asyncio.CancelledError(), "PENDING", "nacked", 1),
        ):
            for kind in ("function", "coroutine"):
                with self.subTest(f"{error!r} in a {kind}"):
                    def function(_: Any) -> None:
                        raise error

                    async def coroutine(_: Any) -> None:
                        raise error

                    handler = codeq.handler(f"x{time.monotonic_ns()}")(function if kind == "function" else coroutine)
                    task = await self.outcome(handler)
                    self.assertEqual((task.status, self.settled.outcome, task.attempts), (status, outcome, attempts), task.error)

    async def test_a_retry_has_its_delay(self) -> None:
        async def later(_: Any) -> None:
            raise codeq.Retry(90.5)

        await self.outcome(later)
        self.assertEqual(self.settled.retry_in, 91)

    async def test_results_that_are_none(self) -> None:
        for value, reason in ((7, "a dict or None, not int"), ({1, 2}, "not JSON"), ({"x": float("nan")}, "not JSON"), ({"x": "y" * (1 << 20)}, "bytes")):
            async def give(_: Any) -> Any:
                return value

            task = await self.outcome(give, max_attempts=1)
            self.assertIn(reason, task.error)

    async def test_middleware_is_around_each_handler(self) -> None:
        steps: list[str] = []
        worker = codeq.Worker(self.server.url)

        @worker.handler("square")
        def square(n: int) -> dict[str, int]:
            steps.append("square")
            return {"square": n * n}

        @worker.middleware
        async def outer(job: codeq.Job, call_next: Any) -> Any:
            steps.append("outer " + job.command)
            try:
                return await call_next(job)
            finally:
                steps.append("outer again")

        @worker.middleware
        async def inner(job: codeq.Job, call_next: Any) -> Any:
            steps.append("inner")
            return {**await call_next(job), "by": "inner"}

        self.assertEqual(square(3), {"square": 9})  # it is still the function
        steps.clear()
        async with worker:
            self.assertEqual(await self.client.result(await self.client.enqueue("square", 3), support.PATIENCE), {"square": 9, "by": "inner"})
        self.assertEqual(steps, ["outer square", "inner", "square", "outer again"])

    async def test_progress_and_output_are_seen(self) -> None:
        go = asyncio.Event()

        async def report(_: Any) -> None:
            await go.wait()
            codeq.current().progress(40, "half way", {"page": 2})
            codeq.current().output("page 1\n")
            codeq.current().output("oh\n", "stderr")

        seen = []
        with Server() as server:
            async with codeq.Client(server.url) as client, self.working(report, url=server.url):
                task = await client.enqueue(report)
                async with client.watch("task", taskId=task.id) as news:
                    async for one in news:
                        if one.kind == "snapshot":
                            go.set()
                        elif one.kind in ("progress", "output"):
                            seen.append({k: one.data[k] for k in ("percent", "note", "data", "stream", "text") if k in one.data})
                        elif one.data.get("cause") == "result":
                            break
                self.assertEqual((await client.task(task)).progress["percent"], 40)
        self.assertEqual(seen, [
            {"percent": 40, "note": "half way", "data": {"page": 2}}, {"stream": "stdout", "text": "page 1\n"},
            {"stream": "stderr", "text": "oh\n"},
        ])

    async def test_a_hook_that_fails_is_logged(self) -> None:
        async def square(n: int) -> dict[str, int]:
            return {"square": n * n}

        def fail(_: Any) -> None:
            raise ValueError("hook")

        with self.assertLogs("codeq", logging.ERROR):
            async with self.working(square, settled=fail, connected=fail):
                for task in await self.client.enqueue_many([codeq.NewTask("square", n) for n in range(20)]):
                    await self.client.result(task, support.PATIENCE)

    async def test_wrong_use(self) -> None:
        worker = codeq.Worker(self.server.url)
        with self.assertRaisesRegex(ValueError, "at least one handler"):
            await worker.run()
        worker.add(print, command="x")
        with self.assertRaisesRegex(ValueError, "two handlers"):
            worker.add(len, command="x")
        with self.assertRaisesRegex(ValueError, "window"):
            codeq.Worker(self.server.url, window=0)
        with self.assertRaisesRegex(ValueError, "must look like"):
            codeq.Worker("ftp://x")
        async with worker:
            with self.assertRaisesRegex(RuntimeError, "once"):
                await asyncio.sleep(0.05)
                await worker.run()


class Leases(Case):
    async def test_a_blocked_event_loop_loses_no_lease(self) -> None:
        async def block(_: Any) -> dict[str, bool]:
            with codeq.sync.Client(self.server.url) as queue:
                id = codeq.current().id
                for _ in range(4):
                    until = queue.task(id).raw["leaseUntil"]
                    self.server.advance(1000)
                    while queue.task(id).raw["leaseUntil"] <= until:
                        time.sleep(0.01)
            return {"done": True}

        async with self.working(block, lease=3):
            task = await self.client.enqueue(block)
            self.assertEqual(await self.client.result(task, support.PATIENCE), {"done": True})
        self.assertEqual((await self.client.task(task)).raw["deliveries"], 1)

    async def test_a_lost_lease_cancels(self) -> None:
        began, ended = threading.Event(), []

        async def coroutine(_: Any) -> None:
            job = codeq.current()
            began.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append(("coroutine", job.reason))
                raise

        def function(_: Any) -> None:
            job = codeq.current()
            began.set()
            ended.append(("function", job.wait(60), job.reason))
            try:
                job.check()
            except codeq.Cancelled as cancelled:
                ended.append(str(cancelled))
                raise

        settled: list[codeq.Settled] = []
        async with self.working(coroutine, function, settled=settled.append):
            for handler, cancel in ((coroutine, True), (function, True), (coroutine, False), (function, False)):
                began.clear()
                count = len(settled)
                task = await self.client.enqueue(handler, max_attempts=1)
                await asyncio.to_thread(began.wait, 10)
                if cancel:
                    await self.client.cancel(task)
                else:
                    self.server.advance(60_000)  # at one blow, so that no heartbeat comes in between
                await self.eventually(lambda: len(settled) > count)
                self.assertEqual(settled[-1].error.code, "lease_lost")
        thread = [("function", True, "lease_lost"), "lease_lost"]
        self.assertEqual(ended[:5], [("coroutine", "lease_lost"), *thread, ("coroutine", "lease_lost"), thread[0]])

    async def test_the_end_of_a_run_cancels(self) -> None:
        reasons = []

        async def slow(_: Any) -> None:
            job = codeq.current()
            try:
                await asyncio.sleep(60)
            finally:
                reasons.append(job.reason)

        async with self.working(slow):
            task = await self.client.enqueue(slow, timeout=1)
            await self.eventually(lambda: reasons)
        self.assertEqual(reasons, ["timeout"])
        self.server.advance(1000)
        self.assertEqual((await self.client.task(task)).attempts, 1)

    async def test_a_late_result_counts(self) -> None:
        async def stubborn(_: Any) -> dict[str, bool]:
            began.append(True)
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return {"late": True}
            return {}

        settled: list[codeq.Settled] = []
        began = []
        async with self.working(stubborn, lease=3, settled=settled.append):
            task = await self.client.enqueue(stubborn)
            await self.eventually(lambda: began)
            await self.beats(task)
            # The queue is paused, so that nobody else gets the task before the late result.
            await self.client.transport.request("POST", "/admin/queues/stubborn/pause", b"{}")
            self.server.advance(60_000)
            self.assertEqual(await self.client.result(task, support.PATIENCE), {"late": True})
            await self.eventually(lambda: settled)
        self.assertEqual((settled[0].outcome, settled[0].error), ("completed", None))


class Connections(Case):
    async def test_a_cut_takes_nothing_away(self) -> None:
        go, calls, settled = asyncio.Event(), [], []

        async def hold(n: int) -> dict[str, int]:
            calls.append(n)
            await go.wait()
            return {"n": n}

        ups: list[Any] = []
        async with Line(self.server.url) as line:
            async with self.working(hold, url=line.url, window=8, lease=3, connected=ups.append, settled=settled.append):
                made = await self.client.enqueue_many([codeq.NewTask("hold", i) for i in range(5)])
                await self.eventually(lambda: len(calls) == 5)
                await self.beats(*made)  # what the server was not told of as received goes back to the queue
                line.cut()
                await self.eventually(lambda: len(ups) == 2)
                self.assertEqual(ups[0]["sessionId"], ups[1]["sessionId"])
                self.assertEqual(len(ups[1]["held"]), 5)
                go.set()
                self.assertEqual([await self.client.result(task.id, support.PATIENCE) for task in made], [{"n": i} for i in range(5)])
                await self.eventually(lambda: len(settled) == 5)
            self.assertEqual(sorted(calls), list(range(5)))
            self.assertEqual({(await self.client.task(task.id)).raw["deliveries"] for task in made}, {1})

    async def test_a_result_is_sent_until_it_is_answered(self) -> None:
        settled: list[codeq.Settled] = []
        began, go = asyncio.Event(), asyncio.Event()

        async def hold(_: Any) -> dict[str, str]:
            began.set()
            await go.wait()
            return {"x": "y"}

        async with Line(self.server.url) as line:
            async with self.working(hold, url=line.url, settled=settled.append):
                task = await self.client.enqueue(hold)
                await began.wait()
                line.mute = True  # the result arrives, its answer does not
                go.set()
                self.assertEqual(await self.client.result(task, support.PATIENCE), {"x": "y"})
                self.assertEqual(settled, [])
                line.mute = False
                line.cut()
                await self.eventually(lambda: settled)
        self.assertEqual((settled[0].outcome, settled[0].error), ("completed", None))

    async def test_a_server_that_is_killed_and_comes_back(self) -> None:
        go, calls = threading.Event(), []

        def hold(n: int) -> dict[str, int]:
            calls.append(n)
            codeq.current().progress(1)
            go.wait(60)
            return {"n": n}

        with Server() as server:
            async with codeq.Client(server.url) as client, self.working(hold, url=server.url):
                task = await client.enqueue(hold, 1)
                while not (await client.task(task)).progress:  # the server knows that it has arrived
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.2)
                await asyncio.to_thread(server.kill)
                go.set()
                await asyncio.sleep(0.5)
                await asyncio.to_thread(server.start)
                self.assertEqual(await client.result(task, support.PATIENCE), {"n": 1})
                self.assertEqual((await client.task(task)).raw["deliveries"], 1)
                await asyncio.to_thread(server.terminate)
                await asyncio.to_thread(server.start)
                self.assertEqual(await client.result(await client.enqueue(hold, 2, idempotency_key="2"), support.PATIENCE), {"n": 2})
                await client.close()
        self.assertEqual(calls, [1, 2])

    async def test_a_worker_waits_for_a_server(self) -> None:
        port = support.free_port()
        ups: list[Any] = []
        async with self.working(support.HERE.exists, url=f"http://127.0.0.1:{port}", connected=ups.append):
            await asyncio.sleep(0.3)
            with Server(port=port):
                await self.eventually(lambda: ups)

    async def test_a_worker_without_a_server_drains_at_once(self) -> None:
        began = time.monotonic()
        async with self.working(support.HERE.exists, url=f"http://127.0.0.1:{support.free_port()}"):
            await asyncio.sleep(0.05)
        self.assertLess(time.monotonic() - began, 15)  # not for the grace


class Ends(Case):
    async def test_a_drain_waits_and_hands_back(self) -> None:
        began, go = asyncio.Event(), asyncio.Event()
        draining = []

        async def hold(_: Any) -> dict[str, bool]:
            began.set()
            await go.wait()
            draining.append(codeq.current().draining)
            return {}

        worker = codeq.Worker(self.server.url, window=1)
        worker.add(hold)
        run = asyncio.create_task(worker.run())
        made = [await self.client.enqueue(hold) for _ in range(3)]
        await began.wait()
        worker.drain()
        await asyncio.sleep(0.1)
        self.assertFalse(run.done())
        go.set()
        await asyncio.wait_for(run, support.PATIENCE)
        self.assertEqual([(await self.client.task(task)).status for task in made], ["COMPLETED", "PENDING", "PENDING"])
        self.assertEqual([(await self.client.task(task)).attempts for task in made], [0, 0, 0])
        self.assertEqual(draining, [True])

    async def test_the_grace_ends_and_costs_no_attempt(self) -> None:
        began: list[str] = []
        reasons = []

        async def hold(_: Any) -> None:
            job = codeq.current()
            began.append("hold")
            try:
                await asyncio.sleep(60)
            finally:
                reasons.append(job.reason)

        def wait(_: Any) -> None:
            job = codeq.current()
            began.append("wait")
            job.wait(600)
            reasons.append(job.reason)
            raise codeq.Release

        made = [await self.client.enqueue(h) for h in (hold, wait)]
        async with self.working(hold, wait, grace=0.2):
            await self.eventually(lambda: len(began) == 2)
        self.assertEqual(reasons, ["stopping"] * 2)
        self.assertEqual([((await self.client.task(t)).status, (await self.client.task(t)).attempts) for t in made], [("PENDING", 0)] * 2)

    async def test_cancelling_run_stops(self) -> None:
        began = asyncio.Event()

        async def hold(_: Any) -> None:
            began.set()
            await asyncio.sleep(60)

        worker = codeq.Worker(self.server.url)
        worker.add(hold)
        run = asyncio.create_task(worker.run())
        task = await self.client.enqueue(hold)
        await began.wait()
        run.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await run
        self.assertEqual(((await self.client.task(task)).status, (await self.client.task(task)).attempts), ("PENDING", 0))
        self.assertEqual([t.name for t in threading.enumerate() if t.name.startswith("codeq-session")], [])

    async def test_a_drain_by_an_admin_ends_with_the_connection(self) -> None:
        ups: list[Any] = []

        async def square(n: int) -> dict[str, int]:
            return {"square": n * n}

        async with self.working(square, connected=ups.append):
            await self.eventually(lambda: ups)
            session = ups[0]["sessionId"]
            await self.client.transport.request("POST", f"/admin/sessions/{session}/drain", b"{}")
            task = await self.client.enqueue(square, 3)
            await asyncio.sleep(0.2)
            self.assertEqual((await self.client.task(task)).status, "PENDING")
            await self.client.transport.request("POST", f"/admin/sessions/{session}/disconnect", b"{}")
            self.assertEqual(await self.client.result(task, support.PATIENCE), {"square": 9})


class CommandLine(Case):
    async def start(self, *arguments: str, url: str = "") -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-B", "-X", "dev", "-W", "error", "-m", "codeq", "work", *arguments,
            env={**support.ENVIRONMENT, "CODEQ_URL": url or self.server.url}, cwd=support.HERE.parent,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )
        self.addAsyncCleanup(self._gone, process)
        return process

    async def _gone(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    async def said(self, process: asyncio.subprocess.Process) -> str:
        out, _ = await asyncio.wait_for(process.communicate(), support.PATIENCE)
        return out.decode()

    async def begun(self, command: str, payload: Any) -> codeq.Task:
        """A task whose handler has begun and said so."""
        task = await self.client.enqueue(command, payload)
        while not (await self.client.task(task)).progress:
            await asyncio.sleep(0.01)
        return task

    async def takes_nothing(self) -> None:
        while [one["window"] for one in (await self.client.transport.request("GET", "/admin/sessions")).json()["sessions"]] != [0]:
            await asyncio.sleep(0.01)

    async def test_term_drains(self) -> None:
        process = await self.start("sample", "sum=sample:add", "--window", "3", "--name", "ada")
        self.assertEqual(await self.client.result(await self.client.enqueue("sample.square", 4), support.PATIENCE), {"square": 16})
        self.assertEqual(await self.client.result(await self.client.enqueue("sum", [1, 2]), support.PATIENCE), {"sum": 3})
        task = await self.begun("sample.slow", 0.5)
        process.send_signal(signal.SIGTERM)
        said = await self.said(process)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("draining", said)
        self.assertNotIn("Traceback", said)
        self.assertEqual(await self.client.result(task, 1), {"slept": 0.5})

    async def test_a_blocked_event_loop_hears_a_signal(self) -> None:
        process = await self.start("sample", "--window", "1")
        with tempfile.NamedTemporaryFile() as file:
            task = await self.begun("sample.block", file.name)
            process.send_signal(signal.SIGTERM)
            await self.takes_nothing()  # while the handler blocks
            self.assertEqual((await self.client.task(task)).status, "IN_PROGRESS")
        said = await self.said(process)
        self.assertEqual((process.returncode, (await self.client.task(task)).status), (0, "COMPLETED"), said)

    async def test_a_second_signal_stops(self) -> None:
        process = await self.start("sample")
        task = await self.begun("sample.slow", 600)
        process.send_signal(signal.SIGINT)
        await self.takes_nothing()
        await asyncio.sleep(0.6)
        process.send_signal(signal.SIGINT)
        said = await self.said(process)
        self.assertEqual(process.returncode, 0, said)
        self.assertNotIn("Traceback", said)
        self.assertEqual((await self.client.task(task)).attempts, 0)

    async def test_errors_are_sentences(self) -> None:
        for arguments, want in (
            (["no_such_module:f"], "there is no module no_such_module here"),
            (["sample:nothing"], "sample has no function nothing; it has: add, block, slow, square"),
            (["sample:NUMBER"], "is no function, it is int"),
            (["support"], "support has no function with @codeq.handler"),
            (["broken:f"], "broken cannot be imported: ZeroDivisionError"),
            (["sample", "--window", "0"], "the window must be from 1 to 10000, got 0"),
            (["sample", "--url", "ftp://x"], "must look like http://127.0.0.1:8080"),
        ):
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(main(["work", *arguments]), 64)
            self.assertIn(want, said.getvalue())
            self.assertEqual(said.getvalue().count("\n"), 1)


if os.name == "nt":
    del CommandLine
