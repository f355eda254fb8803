"""The errors of the SDK, and what may be tried again after them."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

R = TypeVar("R")
log = logging.getLogger("codeq")

# How a try ended that brought no answer of success, as bits, so that the table below holds sets of them.
LATE = 1  # the server waited for the time of the request, and there is nothing yet
PUT_OFF = 2  # refused for now and certainly not done
AWAY = 4  # the same, by a server that starts or stops
INTERNAL = 8  # refused with the code internal or not_leader, which leave open what was done
REFUSED = 16  # any other code
UNREACHED = 32  # nothing was sent
MISTRUSTED = 64  # nothing was sent, because of TLS
BROKEN = 128  # sent, and no answer came
CUT_SHORT = 256  # sent, and an answer began and broke off
GATEWAY = 512  # a status from 500 on without a code, as of a proxy that has no answer of the server
FOREIGN = 1024  # any other status without a code
GARBLED = 2048  # a 2xx that codeq does not send
MOVED = 4096  # a redirect that must not be followed

EVERYTHING = 2 * MOVED - 1
IN_DOUBT = INTERNAL | BROKEN | CUT_SHORT | GATEWAY | GARBLED
PASSING = IN_DOUBT & ~GARBLED | AWAY | UNREACHED

# The one place that decides what is tried again: for each kind of try, the ends after which there is another.
KEYED = PASSING  # a task with a key
KEYED_IN_DOUBT = PASSING | PUT_OFF  # the same after a try that may have made it
WAIT = PASSING | PUT_OFF | LATE  # a wait for a result
FIRST_LINK = PASSING | PUT_OFF  # the first connection of a worker or a watch
WATCH_LINK = EVERYTHING & ~REFUSED  # the next ones of a watch
WORKER_LINK = EVERYTHING  # the next ones of a worker, which may have work in hand
FRAME = PUT_OFF | AWAY | INTERNAL  # outcomes, heartbeats and subscriptions over a session

_FATES = {
    "result_not_found": LATE,
    "draining": AWAY,
    "overloaded": PUT_OFF,
    "rate_limited": PUT_OFF,
    "storage_full": PUT_OFF,
    "auth_unavailable": PUT_OFF,
    "internal": INTERNAL,
    "not_leader": INTERNAL,  # the leader may be lost after it has done what was asked
}


class Error(Exception):
    """Every error of this package.

    ``code`` is for programs and never changes its meaning: a code of the server, or one of
    ``unreachable`` (nothing was sent), ``outcome_unknown`` (sent, and the server may or may not have done
    it), ``not_codeq`` (something else answered), ``moved`` (a redirect that is not followed), ``timeout``,
    ``closed`` and ``task_failed``. ``status`` is the HTTP status, 0 without one. ``retryable`` says whether
    the same call may succeed later, ``retry_after`` after how many seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int = 0,
        retryable: bool = False,
        retry_after: float = 0.0,
        task_id: str | None = None,
        task: dict[str, Any] | None = None,
        fate: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after
        self.task_id = task_id
        self.task = task
        self.fate = fate or _FATES.get(code, REFUSED)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[Error], args: tuple[Any, ...], members: dict[str, Any]) -> Error:
    """The copy of an error, for copy and for another process."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(members)
    return error


class TaskFailed(Error):
    """The task whose result was asked for ended without one. ``outcome`` is FAILED or CANCELLED, ``record``
    the result record of the server."""

    def __init__(self, record: dict[str, Any], task: dict[str, Any] | None = None) -> None:
        self.record = record
        self.outcome: str = record.get("status", "FAILED")
        why = record.get("error") or record.get("cancelCause")
        super().__init__(
            f"task {record.get('taskId')} is {self.outcome}" + (f": {why}" if why else ""),
            code="task_failed", task_id=record.get("taskId"), task=task,
        )


class Timeout(Error, TimeoutError):
    """The time of the call is over. ``code`` is that of the last try."""


class Closed(Error):
    """The connection has ended. ``close_code`` is that of the WebSocket, 1006 without one."""

    def __init__(self, close_code: int, reason: str = "") -> None:
        self.close_code = close_code
        self.reason = reason
        said = f": {reason}" if reason else ""
        super().__init__(f"the connection ended with the code {close_code}{said}", code="closed", retryable=True, fate=BROKEN)


class Outcome(Exception):
    """What a handler raises to say how its task ends. Use the classes below."""


class Fail(Outcome):
    """The task ends FAILED and is not tried again."""


class Retry(Outcome):
    """The task is tried again after ``delay`` seconds, in place of the backoff of its queue. The attempt counts."""

    def __init__(self, delay: float, reason: str = "") -> None:
        super().__init__(reason or f"the handler asked for another try in {delay:g} s")
        self.delay = delay


class Release(Outcome):
    """The task is handed back, because the handler stops early. No attempt counts."""


class CannotStart(Outcome):
    """The task is handed back, because the work cannot begin for a reason that is not the task's: a full disk,
    a database that is not there. No attempt counts, and the worker takes nothing for a pause that grows."""


class Cancelled(Exception):
    """Raised by :meth:`codeq.Job.check` in the thread of a handler whose task is not its own any more."""


def from_answer(body: dict[str, Any], status: int = 0) -> Error:
    """The error in an answer or a frame of the server."""
    return Error(
        str(body.get("error", "")), code=str(body.get("code", "")), status=status,
        retryable=bool(body.get("retryable")), retry_after=float(body.get("retryAfterSeconds") or 0),
        task_id=body.get("taskId"), task=body.get("task"),
    )


_FIRST, _LONGEST = 0.2, 5.0


def backoff(failures: int, error: BaseException | None = None, took: float = 0.0) -> float:
    """The pause after a number of failures in a row: it doubles, is capped, and is drawn from half to one and a
    half of that, less what the last one took; longer if the answer asked for more."""
    delay: float = min(_FIRST * 2 ** min(failures, 5), _LONGEST)
    advice = error.retry_after if isinstance(error, Error) else 0.0
    return max(delay / 2 + random.random() * delay - took, min(advice, 10 * _LONGEST))


def unsure(problem: Error) -> Error:
    """The error of a request that changes something: without an answer nobody knows what became of it."""
    if not problem.fate & IN_DOUBT or problem.fate == INTERNAL:
        return problem
    return Error(
        f"{problem.message}; the server may or may not have done it", code="outcome_unknown", status=problem.status,
        fate=problem.fate,
    )


_SAY_EVERY = 30.0
_SLACK = 5.0  # for the answer to a request that waits for the time of the call


async def persist(again: int, timeout: float, attempt: Callable[[float], Awaitable[R]], keyed: bool = False) -> R:
    """Call ``attempt`` until its end is none of ``again``, or until the time is over; it gets the time left. A pause
    counts from the start of an attempt, so that a long one is followed by the next at once, unless its answer asks for a
    pause."""
    until, failures, in_doubt, said_at = time.monotonic() + timeout, 0, False, -math.inf
    slack = _SLACK if again & LATE else 0.0
    while True:
        began = time.monotonic()
        try:
            if timeout == math.inf:
                return await attempt(timeout)
            return await asyncio.wait_for(attempt(until - began), max(0.0, until - began) + slack)
        except asyncio.TimeoutError:
            problem = Error("no answer came in time", code="timeout", fate=BROKEN)
        except Error as error:
            problem = error
        now = time.monotonic()
        if keyed and problem.fate & IN_DOUBT:
            again, in_doubt = KEYED_IN_DOUBT, True
        if not problem.fate & again:
            raise unsure(problem) if in_doubt and problem.code != "idempotency_conflict" else problem
        if now >= until:
            raise _over(problem, timeout, in_doubt)
        if problem.fate == LATE and now - began >= 0.5:
            failures = 0
            continue
        if problem.fate != LATE and now - said_at >= _SAY_EVERY:
            said_at = now
            log.warning("%s; it is tried again", problem.message)
        pause = backoff(failures, problem, now - began)
        await asyncio.sleep(min(pause, until - now))
        if pause >= until - now and not again & LATE:  # a try without time would be in doubt
            raise _over(problem, timeout, in_doubt)
        failures += 1


def _over(problem: Error, timeout: float, in_doubt: bool) -> Timeout:
    return Timeout(
        f"the {timeout:g} s of the call are over; what happened last: {problem.message}",
        code="outcome_unknown" if in_doubt else problem.code, status=problem.status, retryable=True,
        task_id=problem.task_id, fate=problem.fate,
    )
