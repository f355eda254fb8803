"""The worker: takes tasks and runs a handler for each."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import os
import queue
import signal
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from .client import command_of
from .engine import Delivery, Engine, Mailbox, Options, Settled
from .errors import Cancelled, Error, Outcome
from .http1 import Token, Transport
from .job import Job, Settlement, become, completed, nacked, own_frames, raised, released

log = logging.getLogger("codeq")

Handler = Callable[..., Any]
F = TypeVar("F", bound=Handler)
Next = Callable[[Job], Awaitable[Any]]
Middleware = Callable[[Job, Next], Awaitable[Any]]

SAME_STOP = 0.5  # a second signal within so many seconds is the first one, sent twice


def handler(command: str) -> Callable[[F], F]:
    """Names the command of a function. The function stays as it is, with its types."""

    def mark(function: F) -> F:
        function.__codeq_command__ = command  # type: ignore[attr-defined]
        return function

    return mark


class _Threads:
    """Daemon threads for handlers that are plain functions, as many as are busy at a time. They do not keep a process
    from its end."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads = self._busy = 0

    async def call(self, function: Handler, payload: Any) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                result, error = context.run(function, payload), None
            except BaseException as problem:  # SystemExit, too: a handler does not end the worker
                result, error = None, problem
            self._mailbox.post(self._done, future, result, error)

        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            threading.Thread(target=self._serve, daemon=True, name=f"codeq-handler-{self._threads}").start()
        self._calls.put(run)
        return await future

    def _done(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self._busy -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            future.set_exception(error)
        else:
            future.set_exception(RuntimeError(f"the handler raised {error!r}"))

    def _serve(self) -> None:
        while call := self._calls.get():
            call()

    def close(self) -> None:
        for _ in range(self._threads):
            self._calls.put(None)


class Worker:
    """Takes tasks of several commands over one connection, at most ``window`` at a time, and runs a handler for each:
    a coroutine function on the loop of :meth:`run`, or a plain function in a thread.

    A handler gets the payload and returns the result, a dict or None. If it raises, the task is tried again later;
    Fail, Retry, Release and CannotStart say otherwise. ``lease`` is for how many seconds a task stays with a worker
    that has died; a live one renews it, whatever its handlers do. ``grace`` is for how long handlers may go on after
    :meth:`drain`. ``connected``, ``disconnected`` and ``settled`` are called on the loop of :meth:`run`.
    """

    def __init__(
        self, url: str | None = None, *, token: Token | None = None, tenant: str = "", tls: ssl.SSLContext | None = None,
        window: int = 8, lease: int = 30, name: str | None = None, grace: float = 20.0,
        connected: Callable[[dict[str, Any]], None] | None = None,
        disconnected: Callable[[Error], None] | None = None,
        settled: Callable[[Settled], None] | None = None,
    ) -> None:
        if not 1 <= window <= 10_000:
            raise ValueError(f"the window must be from 1 to 10000, got {window}")
        if not 1 <= lease <= 43_200:
            raise ValueError(f"the lease must be from 1 to 43200 seconds, got {lease}")
        self._transport = Transport(url, token, tenant, tls)
        self._window, self._lease, self._grace = window, int(lease), grace
        self._name = name if name is not None else f"{socket.gethostname()}:{os.getpid()}"
        self._hooks = (connected, disconnected, settled)
        self._handlers: dict[str, tuple[Handler, bool]] = {}
        self._middleware: list[Middleware] = []
        self._engine: Engine | None = None
        self._mailbox: Mailbox | None = None
        self._threads: _Threads | None = None
        self._running: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._call: Next = self._invoke
        self._stopped_at = 0.0
        self.draining = False

    # Registration.

    def add(self, *functions: Handler, command: str | None = None) -> None:
        """Register handlers for the command that each names with :func:`handler`, else for its own name; or one for
        ``command``, where "*" means every command that has no handler."""
        for function in functions:
            name = command or command_of(function)
            if name in self._handlers:
                raise ValueError(f"two handlers for the command {name}")
            call = getattr(function, "__call__", None)
            is_coroutine = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
            self._handlers[name] = (function, is_coroutine)

    def handler(self, command: str) -> Callable[[F], F]:
        """The decorator that registers a function."""

        def register(function: F) -> F:
            self.add(function, command=command)
            return handler(command)(function)

        return register

    def middleware(self, function: Middleware) -> Middleware:
        """Register a coroutine function around every handler, the first one outermost: it gets the job and the
        rest of the way, and returns or raises what counts."""
        self._middleware.append(function)
        return function

    # Running.

    async def run(self) -> None:
        """Take tasks until :meth:`drain`. It waits for a server that is not there and connects again by itself; if
        the server refuses the worker, it raises the :class:`Error`. To cancel it is :meth:`stop`."""
        if not self._handlers:
            raise ValueError("a worker needs at least one handler")
        if self._engine is not None:
            raise RuntimeError("a worker runs once")
        loop = asyncio.get_running_loop()
        self._mailbox = Mailbox(loop)
        self._threads = _Threads(self._mailbox)
        for around in reversed(self._middleware):
            self._call = _wrap(around, self._call)
        options = Options(list(self._handlers), self._window, self._lease, self._name, self._grace)
        engine = self._engine = Engine(self._transport, options, self)
        if self.draining:
            engine.post(engine.drain)
        ended: asyncio.Future[None] = loop.create_future()
        thread = threading.Thread(target=self._run_engine, args=(engine, ended), daemon=True, name="codeq-session")
        thread.start()
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            engine.post(engine.stop)
            while not ended.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(ended)
            raise
        finally:
            thread.join()
            self._threads.close()
            for task in list(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=1.0)
        ended.result()
        if engine.error is not None:
            log.error("the worker has ended: %s", engine.error)
            raise engine.error

    def _run_engine(self, engine: Engine, ended: asyncio.Future[None]) -> None:
        problem: BaseException | None = None
        try:
            engine.run()
        except BaseException as error:  # it is raised by run
            problem = error
        assert self._mailbox is not None
        self._mailbox.post(_resolve, ended, problem)

    def drain(self) -> None:
        """Take no more tasks, hand back those that no handler has begun, wait for the others, then end. It returns
        at once and may be called from any thread."""
        self.draining = True
        if self._engine is not None:
            self._engine.post(self._engine.drain)

    def stop(self) -> None:
        """End without waiting: handlers are cancelled and their tasks handed back. From any thread."""
        self.draining = True
        if self._engine is not None:
            self._engine.post(self._engine.stop)

    def main(self) -> None:
        """Run in a process of its own: TERM or Ctrl-C drains, a second one stops."""
        with self.signals():
            asyncio.run(self.run())

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """While the block lasts, TERM or Ctrl-C drains, and a second one stops. For the main thread. A handler that
        blocks the event loop does not hold this up."""
        before = {number: signal.signal(number, self._signalled) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, action in before.items():
                signal.signal(number, action)

    def _signalled(self, *_: object) -> None:
        now = time.monotonic()
        if not self._stopped_at:
            log.warning("draining: waiting for the handlers; a second signal stops them")
            self._stopped_at = now
            self.drain()
        elif now - self._stopped_at >= SAME_STOP:
            self.stop()

    async def __aenter__(self) -> Worker:
        """Run beside other code of the loop, until the end of the block, which drains."""
        self._running = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.drain()
        if self._running is not None:
            await self._running

    # What the engine says, on its thread.

    def begin(self, started: list[tuple[Job, Delivery]]) -> None:
        self._post(self._begin, started)

    def cancel(self, job: Job, reason: str) -> None:
        self._post(job.cancel, reason)

    def connected(self, welcome: dict[str, Any]) -> None:
        self._tell(0, welcome)

    def disconnected(self, problem: Error) -> None:
        self._tell(1, problem)

    def settled(self, settled: Settled) -> None:
        self._tell(2, settled)

    def _tell(self, hook: int, about: Any) -> None:
        call = self._hooks[hook]
        if call is not None:
            self._post(call, about)

    def _post(self, call: Callable[..., None], *args: Any) -> None:
        assert self._mailbox is not None
        self._mailbox.post(call, *args)

    # Handlers, on the loop of run.

    def _begin(self, started: list[tuple[Job, Delivery]]) -> None:
        loop = asyncio.get_running_loop()
        for job, delivery in started:
            task = loop.create_task(self._work(job, delivery))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self, job: Job, delivery: Delivery) -> None:
        become(job)
        settlement = await self._outcome(job)
        assert self._engine is not None
        self._engine.post(self._engine.finish, delivery, settlement)

    async def _outcome(self, job: Job) -> Settlement:
        function, is_coroutine = self._handler_of(job)
        if is_coroutine:
            task = asyncio.current_task()
            assert task is not None
            job.on_cancel(task.cancel)
        try:
            return completed(await self._call(job)).naming(job.artifacts)
        except (asyncio.CancelledError, Cancelled):
            if job.reason is None:  # by something in the handler: it would come back for ever if no attempt counted
                return nacked("the handler was cancelled, and not by its worker")
            if job.reason == "timeout":
                return nacked("the time of this run is over")
            return released(stopping=job.reason == "stopping")
        except Exception as problem:
            if not isinstance(problem, Outcome):
                log.warning("%r failed", job, exc_info=(type(problem), problem, own_frames(problem)))
            return raised(problem).naming(job.artifacts)
        except (SystemExit, KeyboardInterrupt) as problem:
            return nacked(f"the handler raised {problem!r}")
        finally:
            job.on_cancel(None)

    def _handler_of(self, job: Job) -> tuple[Handler, bool]:
        return self._handlers.get(job.command) or self._handlers["*"]

    async def _invoke(self, job: Job) -> Any:
        function, is_coroutine = self._handler_of(job)
        if is_coroutine:
            return await function(job.payload)
        assert self._threads is not None
        return await self._threads.call(function, job.payload)


def _wrap(around: Middleware, inner: Next) -> Next:
    async def call(job: Job) -> Any:
        return await around(job, inner)

    return call


def _resolve(ended: asyncio.Future[None], problem: BaseException | None) -> None:
    if ended.done():
        return
    if problem is None:
        ended.set_result(None)
    else:
        ended.set_exception(problem)
