"""The client for programs without an event loop: the same calls, for any thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import ssl
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, BinaryIO, TypeVar

from . import client
from .client import NewTask, Task, takes
from .errors import Error
from .http1 import Token
from .job import Job
from .watch import News

R = TypeVar("R")


class Client:
    """The calls of :class:`codeq.Client`, which say more, for any thread. One thread in the background has the
    connections; it begins with the first call, and anew in a process that was forked. Close the client, or use it as
    a context manager."""

    def __init__(
        self, url: str | None = None, *, token: Token | None = None, tenant: str = "",
        tls: ssl.SSLContext | None = None, timeout: float = 30.0,
    ) -> None:
        def make() -> client.Client:
            return client.Client(url, token=token, tenant=tenant, tls=tls, timeout=timeout)

        self._make = make
        self._inner = self._make()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: weakref.finalize | None = None  # closes, also when the client or the process ends
        self._pid = os.getpid()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._pid != os.getpid():  # threads and the meaning of open connections do not survive a fork
            self._lock, self._loop, self._inner, self._pid = threading.Lock(), None, self._make(), os.getpid()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="codeq-client")
                thread.start()
                self._end = weakref.finalize(self, _end, self._loop, thread, self._inner, os.getpid())
            return self._loop

    def _call(self, call: Callable[[client.Client], Awaitable[R]]) -> R:
        loop = self._running()
        future: concurrent.futures.Future[R] = asyncio.run_coroutine_threadsafe(_awaited(call(self._inner)), loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the connections and end the thread. A later call begins anew."""
        with self._lock:
            self._loop = None
            if self._end is not None:
                self._end()

    @takes(NewTask)
    def enqueue(self, *args: Any, **members: Any) -> Task:
        """See :meth:`codeq.Client.enqueue`."""
        return self._call(lambda c: c.enqueue(*args, **members))

    def enqueue_many(self, tasks: Sequence[NewTask]) -> list[Task | Error]:
        """See :meth:`codeq.Client.enqueue_many`."""
        return self._call(lambda c: c.enqueue_many(tasks))

    def task(self, task: Task | str) -> Task:
        """See :meth:`codeq.Client.task`."""
        return self._call(lambda c: c.task(task))

    def result(self, task: Task | str, timeout: float | None = None) -> dict[str, Any]:
        """See :meth:`codeq.Client.result`."""
        return self._call(lambda c: c.result(task, timeout))

    def record(self, task: Task | str, timeout: float | None = None) -> dict[str, Any]:
        """See :meth:`codeq.Client.record`."""
        return self._call(lambda c: c.record(task, timeout))

    def cancel(self, task: Task | str) -> Task:
        """See :meth:`codeq.Client.cancel`."""
        return self._call(lambda c: c.cancel(task))

    def upload(self, job: Job, name: str, content: bytes, content_type: str = "application/octet-stream") -> dict[str, Any]:
        """See :meth:`codeq.Client.upload`."""
        return self._call(lambda c: c.upload(job, name, content, content_type))

    def artifacts(self, task: Task | str) -> Sequence[dict[str, Any]]:
        """See :meth:`codeq.Client.artifacts`."""
        return self._call(lambda c: c.artifacts(task))

    def download(self, task: Task | str, name: str, into: BinaryIO) -> None:
        """See :meth:`codeq.Client.download`."""
        return self._call(lambda c: c.download(task, name, into))

    def list(self, command: str, state: str, **members: Any) -> Iterator[Task]:
        """See :meth:`codeq.Client.list`."""
        return self._all(lambda c: c.list(command, state, **members))

    def find(self, **members: Any) -> Iterator[Task]:
        """See :meth:`codeq.Client.find`."""
        return self._all(lambda c: c.find(**members))

    def _all(self, query: Callable[[client.Client], client.Query]) -> Iterator[Task]:
        cursor, more = "", True
        while more:
            tasks, cursor = self._call(lambda c: query(c).page(cursor))
            yield from tasks
            more = bool(cursor)

    def queues(self) -> Sequence[dict[str, Any]]:
        """See :meth:`codeq.Client.queues`."""
        return self._call(lambda c: c.queues())

    def watch(self, kind: str, **filter: Any) -> Iterator[News]:
        """See :meth:`codeq.Client.watch`. Close the iterator, or let it go, to end the watch."""
        self._running()
        watch = self._inner.watch(kind, **filter)
        told = self._call(lambda c: watch.__aenter__()).__aiter__()
        try:
            while True:
                yield self._call(lambda c: told.__anext__())
        finally:
            self._call(lambda c: watch.__aexit__())


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, inner: client.Client, pid: int) -> None:
    if pid != os.getpid():
        return
    asyncio.run_coroutine_threadsafe(inner.close(), loop).add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
    if thread is not threading.current_thread():
        thread.join()
        loop.close()


async def _awaited(what: Awaitable[R]) -> R:
    return await what
