"""What the tests share: real servers, and a line between client and server that can break."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import AsyncIterator, Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve()
SDK = HERE.parents[1]
ROOT = HERE.parents[3]
PROGRAM = os.environ.setdefault("CODEQ_TEST_PROGRAM", str(ROOT / "bin" / "codeq"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SDK / "src"), "PYTHONDONTWRITEBYTECODE": "1"}

sys.path.insert(0, str(SDK / "src"))
import codeq  # noqa: E402
from codeq.testing import TestServer  # noqa: E402

PATIENCE = 60.0  # seconds for something that must happen


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """`codeq serve` on a port of its own, which can be killed and started again with its data."""

    def __init__(self, *arguments: str, port: int = 0) -> None:
        self.port = port
        self.url = ""
        self._data = tempfile.TemporaryDirectory()
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        self._process = subprocess.Popen(
            [PROGRAM, "serve", "--json", "--listen", f"127.0.0.1:{self.port}", "--data", self._data.name, *self._arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        with self._process.stdout as said:
            address = json.loads(said.readline())["address"]  # the server listens, and says nothing more
        self.url, self.port = f"http://{address}", int(address.rpartition(":")[2])
        return self

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE)
            self._process = None

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._data.cleanup()


def warnings_in(stderr: str) -> str:
    """What a program said on standard error but for how slow a busy machine was, which asyncio tells in its development mode."""
    return "".join(line for line in stderr.splitlines(True) if not line.startswith("Executing <"))


class Line:
    """A TCP line to a server. `cut` breaks what is open; while `mute`, what the server says is thrown away; while
    `closed`, connections are refused."""

    def __init__(self, url: str) -> None:
        self._to = url.removeprefix("http://").split(":")
        self._open: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.mute = self.closed = False
        self.url = ""
        self.sent: list[bytes] = []

    async def __aenter__(self) -> Line:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        while self._open:  # also what is being opened now
            self.cut()
            await asyncio.sleep(0.01)
        await self._server.wait_closed()

    def cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            return writer.transport.abort()
        self.connections += 1
        self._open.add(writer)
        try:
            to_reader, to_writer = await asyncio.open_connection(*self._to)
        except BaseException:
            return writer.transport.abort()
        self._open.add(to_writer)
        try:
            with contextlib.suppress(OSError):
                await asyncio.gather(self._pass(reader, to_writer, True), self._pass(to_reader, writer, False))
        finally:
            for one in (writer, to_writer):
                self._open.discard(one)
                one.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, up: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if up:
                    self.sent.append(data)
                if up or not self.mute:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()


class Case(unittest.IsolatedAsyncioTestCase):
    """A test with a server of its own in memory, whose clock stands still: `self.server`, `self.client`."""

    async def asyncSetUp(self) -> None:
        asyncio.get_running_loop().slow_callback_duration = 10
        self.server = self.enterContext_(TestServer())
        self.client = await self.enterAsync(codeq.Client(self.server.url))

    def enterContext_(self, manager: Any) -> Any:
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    async def enterAsync(self, manager: Any) -> Any:
        value = await manager.__aenter__()
        self.addAsyncCleanup(manager.__aexit__, None, None, None)
        return value

    async def eventually(self, what: Callable[[], Any]) -> None:
        until = time.monotonic() + PATIENCE
        while not what():
            self.assertLess(time.monotonic(), until, "it did not happen")
            await asyncio.sleep(0.01)

    async def beats(self, *tasks: codeq.Task) -> None:
        """Moves the clock by a second and waits for the heartbeat behind it: the server knows that the tasks have arrived."""
        for task in tasks:
            while (await self.client.task(task)).status != "IN_PROGRESS":
                await asyncio.sleep(0.01)
        before = [(await self.client.task(task)).raw["leaseUntil"] for task in tasks]
        self.server.advance(1000)
        for task, until in zip(tasks, before):
            while (await self.client.task(task)).raw["leaseUntil"] <= until:
                await asyncio.sleep(0.01)

    @contextlib.asynccontextmanager
    async def working(self, *handlers: Callable[..., Any], url: str = "", **options: Any) -> AsyncIterator[codeq.Worker]:
        worker = codeq.Worker(url or self.server.url, **options)
        worker.add(*handlers)
        async with worker:
            yield worker

    async def raises(self, code: str, awaitable: Any) -> codeq.Error:
        with self.assertRaises(codeq.Error) as caught:
            await awaitable
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        return caught.exception
