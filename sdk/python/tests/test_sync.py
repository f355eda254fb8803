"""The client for threads, and the helper for tests, against the real server."""

from __future__ import annotations

import asyncio
import os
import threading
import unittest
from datetime import datetime, timezone

import support
from support import Server, TestServer, codeq

import codeq.sync


class Threads(unittest.TestCase):
    def setUp(self) -> None:
        self.server = TestServer()
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)
        self.client = codeq.sync.Client(self.server.url)
        self.addCleanup(self.client.close)

    def test_the_calls_of_the_other_client(self) -> None:
        task = self.client.enqueue("pdf", {"order": 1}, priority=3, idempotency_key="k")
        self.assertEqual(self.client.task(task).payload, {"order": 1})
        many = self.client.enqueue_many([codeq.NewTask("pdf", i) for i in range(5)])
        self.assertEqual({t.id for t in self.client.list("pdf", "ready", limit=2)}, {task.id, *(t.id for t in many)})
        self.assertEqual([t.id for t in self.client.find(command="pdf", payload="order")], [task.id])
        self.assertEqual(self.client.cancel(task).status, "CANCELLED")
        self.assertEqual(self.client.record(task)["status"], "CANCELLED")
        with self.assertRaises(codeq.TaskFailed):
            self.client.result(task)
        with self.assertRaises(codeq.Timeout):
            self.client.result(many[0], timeout=0.2)
        self.assertEqual(self.client.queues()[0]["ready"], 5)

    def test_many_threads_share_it(self) -> None:
        ids: list[str] = []

        def post(n: int) -> None:
            for i in range(20):
                ids.append(self.client.enqueue("pdf", [n, i]).id)

        threads = [threading.Thread(target=post, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(ids)), 160)

    def test_it_begins_anew_after_a_fork(self) -> None:
        self.client.enqueue("pdf", 1)
        pid = os.fork()
        if pid == 0:
            try:
                self.client.enqueue("pdf", 2)
                os._exit(0)
            except BaseException:
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.client.enqueue("pdf", 3)
        self.assertEqual(sorted(t.payload for t in self.client.list("pdf", "ready")), [1, 2, 3])

    def test_it_can_be_closed_and_used_again(self) -> None:
        self.client.enqueue("pdf", 1)
        self.client.close()
        self.client.close()
        self.client.enqueue("pdf", 2)

    def test_a_client_that_nobody_closes_ends_quietly(self) -> None:
        import subprocess
        import sys

        code = f"import codeq.sync; c = codeq.sync.Client({self.server.url!r}); c.enqueue('pdf'); print('done')"
        for end in ("", "; del c; import gc; gc.collect()"):
            run = subprocess.run(
                [sys.executable, "-B", "-X", "dev", "-W", "error", "-c", code + end], env=support.ENVIRONMENT,
                capture_output=True, text=True, timeout=20,
            )
            self.assertEqual((run.stdout, support.warnings_in(run.stderr), run.returncode), ("done\n", "", 0))

    def test_a_watch(self) -> None:
        with Server() as server, codeq.sync.Client(server.url) as client:
            client.enqueue("pdf", 1)
            for one in client.watch("queues", commands=["pdf"]):
                self.assertEqual(one.queues[("default", "pdf")]["ready"], 1)
                break


class Helper(unittest.TestCase):
    def test_the_clock_moves_when_it_is_moved(self) -> None:
        async def main(server: TestServer) -> None:
            async def remind(who: str) -> dict[str, str]:
                return {"reminded": who}

            worker = codeq.Worker(server.url)
            worker.add(remind)
            async with codeq.Client(server.url) as client, worker:
                task = await client.enqueue(remind, "ada", delay=3600)
                self.assertEqual(server.advance(3_599_000), datetime(2026, 1, 1, 0, 59, 59, tzinfo=timezone.utc))
                self.assertEqual((await client.task(task)).raw["lastKnownLocation"], "DELAYED_ZSET")
                server.advance(1000)
                self.assertEqual(await client.result(task, support.PATIENCE), {"reminded": "ada"})

        with TestServer() as server:
            asyncio.run(main(server))

    def test_no_program(self) -> None:
        with self.assertRaisesRegex(FileNotFoundError, "CODEQ_TEST_PROGRAM"):
            TestServer(program="no-such-program").__enter__()
