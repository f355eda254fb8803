"""The producer, against the real server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import pickle
import ssl
import subprocess
import tempfile
import time
from datetime import datetime, timedelta, timezone

import support
from support import Case, Line, Server, codeq

from codeq import errors
from codeq.http1 import Transport, parse
from codeq.websocket import accept_for


class Enqueue(Case):
    async def test_every_member_arrives(self) -> None:
        task = await self.client.enqueue(
            "pdf", {"order": 42, "who": "Грета 猫", "big": 12345678901234567890}, priority=7, delay=timedelta(seconds=1.5),
            max_attempts=3, timeout=60, ttl=3600, idempotency_key="order-42", concurrency_key="acme",
            labels={"customer": "acme"}, webhook="https://hooks.example/x",
            trace_parent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", trace_state="a=b",
        )
        self.assertEqual(task.payload, {"order": 42, "who": "Грета 猫", "big": 12345678901234567890})
        self.assertIn("Грета 猫", task.raw["payload"])  # so that a search finds it
        want = {
            "command": "pdf", "priority": 7, "maxAttempts": 3, "timeoutSeconds": 60, "concurrencyKey": "acme",
            "labels": {"customer": "acme"}, "webhook": "https://hooks.example/x", "traceState": "a=b",
            "lastKnownLocation": "DELAYED_ZSET", "visibleAt": "2026-01-01T00:00:02.000Z", "expiresAt": "2026-01-01T01:00:00.000Z",
        }
        self.assertEqual({name: task.raw.get(name) for name in want}, want)
        self.assertFalse(task.replayed)

    async def test_times_have_a_zone(self) -> None:
        at = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=1)))
        task = await self.client.enqueue("pdf", run_at=at, expires_at=at + timedelta(hours=1))
        self.assertEqual((task.raw["visibleAt"], task.raw["expiresAt"]), ("2026-01-01T01:00:00.000Z", "2026-01-01T02:00:00.000Z"))
        with self.assertRaisesRegex(ValueError, "time zone"):
            await self.client.enqueue("pdf", run_at=datetime(2026, 1, 1))

    async def test_the_same_key_is_the_same_task(self) -> None:
        first = await self.client.enqueue("pdf", 1, idempotency_key="k")
        again = await self.client.enqueue("pdf", 1, idempotency_key="k")
        self.assertEqual((again.id, again.replayed), (first.id, True))
        error = await self.raises("idempotency_conflict", self.client.enqueue("pdf", 2, idempotency_key="k"))
        self.assertEqual((error.task_id, error.status, error.retryable), (first.id, 409, False))

    async def test_a_refusal_says_what_is_wrong(self) -> None:
        error = await self.raises("invalid_priority", self.client.enqueue("pdf", priority=10))
        self.assertEqual((error.status, error.retryable, error.message), (400, False, "priority must be an integer from 0 to 9, got 10"))

    async def test_what_is_no_json_is_an_error_here(self) -> None:
        for wrong in (math.nan, {1, 2}, datetime.now()):
            with self.assertRaises((TypeError, ValueError)):
                await self.client.enqueue("pdf", wrong)
        half = await self.client.enqueue("pdf", "\ud800")
        self.assertEqual(half.payload, "\ud800")

    async def test_a_batch_answers_for_each(self) -> None:
        tasks = [codeq.NewTask("pdf", i % 1200, idempotency_key=f"k{i % 1200}") for i in range(1201)] + [codeq.NewTask("p d f")]
        answers = await self.client.enqueue_many(tasks)
        self.assertEqual(len(answers), 1202)
        self.assertEqual(answers[0].id, answers[1200].id)
        self.assertTrue(answers[1200].replayed)
        self.assertEqual(answers[1201].code, "invalid_command")
        self.assertEqual((await self.client.task(answers[7])).payload, 7)

    async def test_tasks_of_one_turn_have_answers_of_their_own(self) -> None:
        posts = [self.client.enqueue("pdf", n, priority=n, idempotency_key=f"k{n % 7}") for n in range(12)]
        answers = await asyncio.gather(*posts, return_exceptions=True)
        self.assertEqual([a.payload for a in answers[:7]], list(range(7)))
        self.assertEqual({a.code for a in answers[7:10]}, {"idempotency_conflict"})
        self.assertEqual([a.message for a in answers[10:]], [f"priority must be an integer from 0 to 9, got {n}" for n in (10, 11)])
        again = await asyncio.gather(*(self.client.enqueue("pdf", n, priority=n, idempotency_key=f"k{n}") for n in range(3)))
        self.assertEqual([(a.id, a.replayed) for a in again], [(a.id, True) for a in answers[:3]])

    async def test_a_handler_names_its_command(self) -> None:
        @codeq.handler("billing.pdf")
        def pdf(payload: object) -> None: ...

        self.assertEqual((await self.client.enqueue(pdf, 1)).command, "billing.pdf")


class Results(Case):
    async def test_a_wait_ends_with_the_task(self) -> None:
        async def square(n: int) -> dict[str, int]:
            await asyncio.sleep(0.1)
            return {"square": n * n}

        async with self.working(square):
            self.assertEqual(await self.client.result(await self.client.enqueue("square", 12), support.PATIENCE), {"square": 144})

    async def test_a_task_that_failed_is_an_error(self) -> None:
        async def never(_: object) -> None:
            raise codeq.Fail("no such file")

        async with self.working(never):
            task = await self.client.enqueue("never")
            with self.assertRaises(codeq.TaskFailed) as caught:
                await self.client.result(task, support.PATIENCE)
        error = caught.exception
        self.assertEqual((error.outcome, error.record["error"], error.task_id, error.code), ("FAILED", "no such file", task.id, "task_failed"))

    async def test_a_wait_has_an_end(self) -> None:
        task = await self.client.enqueue("nobody")
        with self.assertRaises(TimeoutError) as caught:
            await self.client.result(task, 0.3)
        self.assertEqual(caught.exception.code, "result_not_found")

    async def test_cancel(self) -> None:
        task = await self.client.enqueue("nobody")
        self.assertEqual([(await self.client.cancel(task)).status for _ in range(2)], ["CANCELLED", "CANCELLED"])
        with self.assertRaises(codeq.TaskFailed) as caught:
            await self.client.result(task, 1)
        self.assertEqual(caught.exception.outcome, "CANCELLED")
        await self.raises("task_not_found", self.client.cancel("00000000-0000-7000-8000-000000000000"))

    async def test_list_and_find_go_over_pages(self) -> None:
        made = await self.client.enqueue_many([codeq.NewTask("pdf", {"n": i}, labels={"run": str(i % 2)}) for i in range(7)])
        ids = {task.id for task in made}
        self.assertEqual({t.id async for t in self.client.list("pdf", "ready", limit=3)}, ids)
        self.assertEqual({t.id async for t in self.client.find(labels={"run": "1"}, limit=2)}, {made[i].id for i in (1, 3, 5)})
        self.assertEqual([t.payload async for t in self.client.find(command="pdf", payload='"n":4', older_than=0)], [{"n": 4}])
        page, cursor = await self.client.list("pdf", "ready", limit=5).page()
        self.assertEqual((len(page), bool(cursor)), (5, True))
        self.assertEqual((await self.client.queues())[0]["command"], "pdf")


class Trouble(Case):
    async def test_nobody_listens(self) -> None:
        async with codeq.Client(f"http://127.0.0.1:{support.free_port()}", timeout=2) as client:
            self.assertTrue((await self.raises("unreachable", client.enqueue("pdf"))).retryable)
            began = time.monotonic()
            error = await self.raises("unreachable", client.enqueue("pdf", idempotency_key="k"))
            self.assertIsInstance(error, codeq.Timeout)
            self.assertGreater(time.monotonic() - began, 1.9)

    async def test_without_a_token_nothing_is_sent(self) -> None:
        async def token() -> str:
            raise OSError("the provider is away")

        async with codeq.Client("http://127.0.0.1:1", token=token) as queue:
            with self.assertRaisesRegex(codeq.Error, "the provider is away") as caught:
                await queue.enqueue("a")
        self.assertEqual(caught.exception.code, "unreachable")

    async def test_a_pause_that_a_slow_answer_asks_for_is_kept(self) -> None:
        answered = 0.0

        async def attempt(_: float) -> float:
            nonlocal answered
            if answered:
                return time.monotonic() - answered
            await asyncio.sleep(0.35)  # longer than the first backoff
            answered = time.monotonic()
            raise codeq.Error("later", code="overloaded", retry_after=0.4, fate=errors.PUT_OFF)

        self.assertGreater(await errors.persist(errors.FIRST_LINK, math.inf, attempt), 0.39)

    async def test_a_key_waits_for_a_server_that_starts(self) -> None:
        port = support.free_port()
        async with codeq.Client(f"http://127.0.0.1:{port}") as client:
            post = asyncio.create_task(client.enqueue("pdf", 1, idempotency_key="k"))
            await asyncio.sleep(0.3)
            with Server(port=port):
                self.assertEqual((await post).payload, 1)
            await client.close()

    async def test_a_lost_answer(self) -> None:
        async with Line(self.server.url) as line, codeq.Client(line.url) as client:
            for key in (None, "k"):
                line.mute = True
                line.sent.clear()
                post = asyncio.create_task(client.enqueue("pdf", "lost", idempotency_key=key))
                await self.eventually(lambda: b'"lost"' in b"".join(line.sent))
                while len([t async for t in self.client.list("pdf", "ready")]) != (1 if key is None else 2):
                    await asyncio.sleep(0.01)
                line.mute = False
                line.cut()
                if key is None:
                    await self.raises("outcome_unknown", post)
                else:
                    self.assertTrue((await post).replayed)
            self.assertEqual(len([t async for t in self.client.list("pdf", "ready")]), 2)

    async def test_connections_are_kept(self) -> None:
        async with Line(self.server.url) as line, codeq.Client(line.url) as client:
            for i in range(20):
                await client.enqueue("pdf", i)
            await asyncio.gather(*(client.enqueue("pdf", i) for i in range(5)))
            self.assertLessEqual(line.connections, 5)
            line.cut()  # the server has ended idle connections: a new one is made, for a post as well
            await asyncio.sleep(0.05)
            await client.enqueue("pdf", 21)

    async def test_one_server_of_several_is_not_there(self) -> None:
        dead = f"http://127.0.0.1:{support.free_port()}"
        async with codeq.Client(f"{dead},{self.server.url}") as client:
            task = await client.enqueue("pdf", 1)  # without a key: nothing was sent to the first
            self.assertEqual((await client.task(task)).id, task.id)
            self.assertEqual(client.transport.url, self.server.url)

    async def test_redirects(self) -> None:
        seen: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError):
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    seen.append(head)
                    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
                    await reader.readexactly(length)
                    path = head.split(b" ")[1].decode()
                    status = 307 if path.startswith("/moved") else 301
                    to = path.removeprefix("/moved")
                    writer.write(f"HTTP/1.1 {status} x\r\nLocation: {self.server.url}{to}\r\nContent-Length: 0\r\n\r\n".encode())
            writer.close()

        front = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.addAsyncCleanup(front.wait_closed)
        self.addCleanup(front.close)
        url = f"http://127.0.0.1:{front.sockets[0].getsockname()[1]}"
        async with codeq.Client(url + "/moved", token="secret") as client:
            task = await client.enqueue("pdf", {"x": 1})
            self.assertEqual(task.payload, {"x": 1})
        self.assertIn(b"Authorization: Bearer secret", seen[0])
        async with codeq.Client(url) as client:
            self.assertEqual((await self.raises("moved", client.enqueue("pdf"))).status, 301)

    async def test_something_else_answers(self) -> None:
        answers = [
            (b"HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 3\r\n\r\nsad", "outcome_unknown", "not_codeq"),
            (b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsad\r\n0\r\n\r\n", "not_codeq", "not_codeq"),
            (b"HTTP/1.1 200 OK\r\n\r\n<html>", "outcome_unknown", "not_codeq"),
            (b"SSH-2.0-x\r\n\r\n", "outcome_unknown", "not_codeq"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "outcome_unknown", "not_codeq"),
        ]
        now = b""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(now)
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.close()

        front = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.addAsyncCleanup(front.wait_closed)
        self.addCleanup(front.close)
        async with codeq.Client(f"http://127.0.0.1:{front.sockets[0].getsockname()[1]}") as client:
            for now, post, read in answers:
                with self.subTest(now):
                    await self.raises(post, client.enqueue("pdf"))
                    await self.raises(read, client.task("x"))

    async def test_tokens(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(
                [support.PROGRAM, "token", "new", "--file", f"{folder}/tokens.yaml", "--name", "ada", "--tenant", "acme",
                 "--scope", "producer", "--json"], capture_output=True, text=True,
            )
            self.assertEqual(made.returncode, 0, made.stderr)
            token = json.loads(made.stdout)["token"]
            with support.TestServer("--tokens", f"{folder}/tokens.yaml") as server:
                async with codeq.Client(server.url, token=token + "\n") as client:
                    self.assertEqual((await client.enqueue("pdf")).raw["tenantId"], "acme")
                    self.assertEqual((await self.raises("forbidden", client.transport.request("POST", "/tasks/claim", b"{}"))).status, 403)
                async with codeq.Client(server.url, token="cq_wrong") as client:
                    self.assertEqual((await self.raises("unauthenticated", client.enqueue("pdf"))).status, 401)
                worker = codeq.Worker(server.url, token="cq_wrong")
                worker.add(print, command="pdf")
                await self.raises("unauthenticated", worker.run())
                worker = codeq.Worker(server.url, token=token)
                worker.add(print, command="pdf")
                await self.raises("forbidden", worker.run())


class Tls(Case):
    async def test_over_tls(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                 "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key", "-out", f"{folder}/cert"],
                capture_output=True, text=True,
            )
            self.assertEqual(made.returncode, 0, made.stderr)
            trusting = ssl.create_default_context(cafile=f"{folder}/cert")
            server = Server("--tls-cert", f"{folder}/cert", "--tls-key", f"{folder}/key")
            with server:
                secure = server.url.replace("http:", "https:")

                async def square(n: int) -> dict[str, int]:
                    return {"square": n * n}

                async with codeq.Client(secure, tls=trusting) as client, self.working(square, url=secure, tls=trusting):
                    made_tasks = await client.enqueue_many([codeq.NewTask("square", n) for n in range(50)])
                    self.assertEqual([(await client.result(t, support.PATIENCE))["square"] for t in made_tasks], [n * n for n in range(50)])
                async with codeq.Client(secure) as client:
                    error = await self.raises("unreachable", client.enqueue("square", 1, idempotency_key="k"))
                    self.assertRegex(error.message, "certificate .* is not trusted")
                async with codeq.Client(server.url) as client:
                    self.assertRegex((await self.raises("unreachable", client.enqueue("square", 1))).message, "wants TLS: write https://")
                async with codeq.Client(self.server.url.replace("http:", "https:")) as client:
                    self.assertRegex((await self.raises("unreachable", client.enqueue("square", 1))).message, "no TLS connection")


class Handshakes(Case):
    async def test_a_wrong_upgrade_is_no_session(self) -> None:
        right = "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Accept: ACCEPT\r\n"
        now = ""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            key = head.partition("Sec-WebSocket-Key: ")[2].partition("\r\n")[0]
            writer.write(now.replace("ACCEPT", accept_for(key)).encode() + b"\r\n")
            await reader.read()
            writer.close()

        front = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.addAsyncCleanup(front.wait_closed)
        self.addCleanup(front.close)
        transport = Transport(f"http://127.0.0.1:{front.sockets[0].getsockname()[1]}", "", "", None)
        for now, why in (
            (right.replace("ACCEPT", "x"), "Sec-WebSocket-Accept is wrong"),
            (right.replace("Upgrade: websocket\r\n", ""), "the headers Upgrade and Connection are wrong"),
            (right.replace(", Upgrade", ""), "the headers Upgrade and Connection are wrong"),
            (right + "Sec-WebSocket-Extensions: permessage-deflate\r\n", "an extension that was not offered"),
            (right + "Sec-WebSocket-Protocol: chat\r\n", "another subprotocol"),
        ):
            self.assertIn(why, (await self.raises("not_codeq", transport.upgrade("/session", "codeq.v1"))).message)
        now = right + "Sec-WebSocket-Protocol: codeq.v1\r\n"
        (await transport.upgrade("/session", "codeq.v1")).abort()

    async def test_the_one_that_leads_is_asked_if_it_is_known(self) -> None:
        transport = Transport("http://a:1,http://b:2,http://c:3/x", "", "", None)
        for hint, want in (
            ("http://b:2", "http://b:2"), (None, "http://b:2"), ("http://evil:2", "http://b:2"), ("http://c:3", "http://c:3/x"), ("?", "http://c:3/x"),
        ):
            transport.lead(hint)
            self.assertEqual(transport.url, want)

    async def test_errors_can_be_copied_and_sent(self) -> None:
        for error in (codeq.Error("a", code="b", status=3, retry_after=2.0), codeq.TaskFailed({"status": "FAILED", "error": "x"}),
                      codeq.Closed(1006, "gone"), codeq.Timeout("a", code="b")):
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), str(again), vars(again)), (type(error), str(error), vars(error)))


class Addresses(Case):
    async def test_as_people_write_them(self) -> None:
        for text, want in {
            "127.0.0.1:8080": "http://127.0.0.1:8080", " https://host/ ": "https://host", ":8080": "http://127.0.0.1:8080",
            "ws://[::1]:9/v1/codeq/": "http://[::1]:9", "https://proxy/queue/v1/codeq": "https://proxy/queue", "http://h:80": "http://h",
        }.items():
            self.assertEqual(str(parse(text)), want)
        for wrong in ("  ", "ftp://x", "http://", "http://a b", "http://u@h", "http://h?x", "http://h:port"):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "must look like"):
                parse(wrong)
