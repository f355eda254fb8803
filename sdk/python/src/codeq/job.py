"""A task in the hands of a handler, and how it ends."""

from __future__ import annotations

import math
import os
import threading
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from .client import dumps
from .errors import CannotStart, Cancelled, Error, Fail, Release, Retry

MAX_REASON = 8192
MAX_RESULT = 1 << 20
_PACKAGE = os.path.dirname(__file__)


class Job:
    """One delivery of a task to a handler, which finds it with :func:`current`. Its members may be used from any
    thread until the handler returns.

    ``cancelled`` says that the work should end, and ``reason`` why: "lease_lost" (the task was cancelled or taken
    back, or another worker has it), "timeout" (the time of one run is over) or "stopping" (the worker ends without
    waiting). A coroutine is cancelled as well. A function in a thread looks at it now and then.
    """

    __slots__ = ("id", "token", "command", "payload", "raw", "timeout", "reason", "artifacts", "_worker", "_event", "_report", "_abort")

    def __init__(self, frame: dict[str, Any], report: Callable[[Job, str], None], worker: Any) -> None:
        task = frame["task"]
        self.raw: dict[str, Any] = task
        self.id: str = task["id"]
        self.token: str = frame["leaseToken"]
        self.command: str = task["command"]
        self.payload: Any = task.get("payload")
        self.timeout: float | None = frame["runMs"] / 1000 if frame.get("runMs") else None
        self.reason: str | None = None
        self.artifacts: dict[str, dict[str, str]] = {}  # by name; those that the outcome will name
        self._worker = worker
        self._report = report
        self._event: threading.Event | None = None
        self._abort: Callable[[], Any] | None = None

    def __repr__(self) -> str:
        return f"<codeq.Job {self.command} {self.id} delivery {self.delivery}>"

    @property
    def attempts(self) -> int:
        """How many attempts have failed before this one."""
        return int(self.raw.get("attempts", 0))

    @property
    def max_attempts(self) -> int:
        return int(self.raw.get("maxAttempts", 0))

    @property
    def delivery(self) -> int:
        """The number of this delivery of the task; the first one is 1."""
        return int(self.raw.get("deliveries", 0))

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.raw.get("labels") or {})

    @property
    def trace_parent(self) -> str:
        return str(self.raw.get("traceParent", ""))

    @property
    def trace_state(self) -> str:
        return str(self.raw.get("traceState", ""))

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    @property
    def draining(self) -> bool:
        """The worker takes no more tasks. A handler that can stop early raises Release."""
        return bool(self._worker.draining)

    def wait(self, timeout: float | None = None) -> bool:
        """Block the thread of a handler until the job is cancelled, or for so many seconds: a sleep that ends early.
        It returns whether the job is cancelled."""
        self._event = self._event or threading.Event()
        return self.cancelled or self._event.wait(timeout)

    def check(self) -> None:
        """Raise :class:`codeq.Cancelled` if the job is cancelled."""
        if self.reason is not None:
            raise Cancelled(self.reason)

    def cancel(self, reason: str) -> None:
        """Called by the worker, on the loop of the handlers."""
        if self.reason is None:
            self.reason = reason
            if self._event is not None:
                self._event.set()
            if self._abort is not None:
                self._abort()

    def on_cancel(self, abort: Callable[[], Any] | None) -> None:
        """Set by the worker: what ends a coroutine."""
        self._abort = abort
        if abort is not None and self.reason is not None:
            abort()

    def attach(self, name: str, url: str = "") -> None:
        """Give the task an artifact when it has ended: a link, or a file that :meth:`codeq.Client.upload` has sent."""
        self.artifacts[name] = {"name": name, "url": url} if url else {"name": name}

    def progress(self, percent: int | None = None, note: str = "", data: Any = None) -> None:
        """Say how far the work is, in place of what was said before. It is lost while there is no connection."""
        members = {"percent": percent, "note": note or None, "data": data}
        self._report(self, '"type":"progress",' + dumps({k: v for k, v in members.items() if v is not None})[1:-1])

    def output(self, text: str, stream: str = "stdout") -> None:
        """Send a piece of what the work prints, in pieces of at most 16 KiB, to who watches the task."""
        for at in range(0, len(text), 4096):
            self._report(self, '"type":"output",' + dumps({"stream": stream, "text": text[at : at + 4096]})[1:-1])


_current: ContextVar[Job] = ContextVar("codeq.job")


def current() -> Job:
    """The job of the handler that is running, in its coroutine or thread. Raises LookupError elsewhere."""
    return _current.get()


def become(job: Job) -> None:
    _current.set(job)


@dataclass(frozen=True)
class Settlement:
    """How a delivery ends: the frame about it without the part that names the delivery."""

    outcome: str  # completed, failed, nacked or released
    frame: str
    reason: str = ""
    not_started: bool = False

    def naming(self, artifacts: dict[str, dict[str, str]]) -> Settlement:
        """The same with artifacts, if it ends the task."""
        if not artifacts or self.outcome not in ("completed", "failed"):
            return self
        return replace(self, frame=f'{self.frame},"artifacts":{dumps(list(artifacts.values()))}')

    def instead_of(self, refusal: Error) -> Settlement | None:
        """What to say after the server has refused the content of this one."""
        if refusal.code not in ("invalid_body", "invalid_result", "invalid_argument", "invalid_time", "too_large"):
            return None
        if self.outcome in ("completed", "failed"):
            return nacked("the server refused the outcome: " + refusal.message)
        return released() if self.outcome == "nacked" else None


def completed(result: Any) -> Settlement:
    """The task completes with a result, which is an object; None is the empty one."""
    try:
        encoded = "{}" if result is None else dumps(result)
    except (TypeError, ValueError, RecursionError) as problem:
        return nacked(f"the result is not JSON: {problem}")
    if encoded[0] != "{":
        return nacked(f"a result is a JSON object: a handler returns a dict or None, not {type(result).__name__}")
    if len(encoded) > MAX_RESULT // 4 and len(encoded.encode()) > MAX_RESULT:
        return nacked(f"the result has more than {MAX_RESULT} bytes")
    return Settlement("completed", f'"type":"result","status":"COMPLETED","result":{encoded}')


def failed(reason: str) -> Settlement:
    return Settlement("failed", f'"type":"result","status":"FAILED","error":{_sayable(reason)}', reason)


def nacked(reason: str, delay: float | None = None) -> Settlement:
    after = "" if delay is None else f',"delaySeconds":{math.ceil(max(0.0, delay))}'
    return Settlement("nacked", f'"type":"nack","reason":{_sayable(reason)}{after}', reason)


def released(started: bool = True, stopping: bool = False, reason: str = "") -> Settlement:
    why = ("" if started else ',"started":false') + (',"stopping":true' if stopping else "")
    return Settlement("released", '"type":"release"' + why, reason, not started)


def raised(error: BaseException) -> Settlement:
    """The end of a delivery whose handler has raised an error: what it says, and where it was raised."""
    if isinstance(error, Fail):
        return failed(str(error) or "no reason given")
    if isinstance(error, Retry):
        return nacked(str(error), error.delay)
    if isinstance(error, CannotStart):
        return released(started=False, reason=str(error))
    if isinstance(error, Release):
        return released()
    first = "".join(traceback.format_exception_only(type(error), error)).strip().partition("\n")[0]
    whole = "".join(traceback.format_exception(type(error), error, own_frames(error)))
    room = MAX_REASON - len(first.encode("utf-8", "replace")) - 2
    return nacked(f"{first}\n\n{_tail(whole, room)}")


def own_frames(error: BaseException) -> TracebackType | None:
    """The traceback of an error from the first frame on that is not of this package."""
    at = error.__traceback__
    while at is not None and os.path.dirname(at.tb_frame.f_code.co_filename) == _PACKAGE:
        at = at.tb_next
    return at or error.__traceback__


def _tail(text: str, size: int) -> str:
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= size else encoded[len(encoded) - max(0, size) :].decode("utf-8", "ignore")


def _sayable(reason: str) -> str:
    """A text that the protocol accepts as a reason, as JSON."""
    whole = reason.encode("utf-8", "replace").decode() or "no reason given"
    return dumps(whole if len(whole.encode()) <= MAX_REASON else whole.encode()[:MAX_REASON].decode("utf-8", "ignore"))
