"""The producer: posts tasks, waits for their results, finds them."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import math
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlencode

from . import errors
from .errors import Error, TaskFailed, persist, unsure
from .http1 import Answer, Token, Transport
from .watch import Watch

if TYPE_CHECKING:
    from .job import Job

BATCH_TASKS = 1000
BATCH_BYTES = 4 << 20
WAIT_SECONDS = 60

P = ParamSpec("P")
R = TypeVar("R")
Seconds = float | timedelta
_Made = tuple[dict[str, Any], bool]  # a task, and whether it was there already
_Turn = list[tuple["asyncio.Future[_Made]", str]]


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def dumps(value: Any) -> str:
    """The JSON of a value, with the letters as they are, so that a search for them finds them."""
    encoded = _encode(value)
    if not encoded.isascii():
        try:
            encoded.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return _encode_ascii(value)
    return encoded


def command_of(command: str | Callable[..., Any]) -> str:
    """The command of a handler, or the text itself."""
    if isinstance(command, str):
        return command
    named = getattr(command, "__codeq_command__", None) or getattr(command, "__name__", None)
    if not named:
        raise TypeError(f"a command is a text or a handler, got {command!r}")
    return str(named)


def _whole_seconds(span: Seconds | None) -> int | None:
    if span is None:
        return None
    return math.ceil(span.total_seconds() if isinstance(span, timedelta) else span)


def _time(at: datetime | None) -> str | None:
    if at is not None and at.tzinfo is None:
        raise ValueError(f"a time needs a time zone: datetime.now(timezone.utc), for example; got {at!r}")
    return at.isoformat(timespec="milliseconds") if at else None


@dataclass(frozen=True)
class NewTask:
    """A task to post. ``command`` names its queue, or is the handler; ``payload`` is any JSON value.

    ``delay`` or ``run_at`` keeps it from workers, ``timeout`` limits one run, ``ttl`` or ``expires_at`` the time
    in which it may begin; spans are seconds or a timedelta, rounded up to whole seconds. A second task with the
    same ``idempotency_key`` and command is the first one. ``concurrency_key`` is what limits per key count.
    """

    command: str | Callable[..., Any]
    payload: Any = None
    _: KW_ONLY
    priority: int | None = None
    delay: Seconds | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None
    timeout: Seconds | None = None
    ttl: Seconds | None = None
    expires_at: datetime | None = None
    idempotency_key: str | None = None
    concurrency_key: str | None = None
    labels: Mapping[str, str] | None = None
    webhook: str | None = None
    trace_parent: str | None = None
    trace_state: str | None = None

    def encode(self) -> str:
        """The task as JSON."""
        members = {
            "command": command_of(self.command), "priority": self.priority, "delaySeconds": _whole_seconds(self.delay),
            "runAt": _time(self.run_at), "maxAttempts": self.max_attempts, "timeoutSeconds": _whole_seconds(self.timeout),
            "ttlSeconds": _whole_seconds(self.ttl), "expiresAt": _time(self.expires_at),
            "idempotencyKey": self.idempotency_key, "concurrencyKey": self.concurrency_key,
            "labels": dict(self.labels) if self.labels else None, "webhook": self.webhook,
            "traceParent": self.trace_parent, "traceState": self.trace_state,
        }
        given = dumps({name: value for name, value in members.items() if value is not None})
        return f'{given[:-1]},"payload":{dumps(self.payload)}}}'


@dataclass(frozen=True)
class Task:
    """A task as the server showed it. ``raw`` has every member by its name in the protocol. After
    :meth:`Client.enqueue_many` only the id and the command are there."""

    raw: dict[str, Any] = field(repr=False)
    id: str = ""
    command: str = ""
    replayed: bool = False  # the idempotency key found an earlier task

    @classmethod
    def of(cls, raw: dict[str, Any], replayed: bool = False) -> Task:
        return cls(raw, str(raw["id"]), str(raw.get("command", "")), replayed)

    @property
    def payload(self) -> Any:
        return json.loads(self.raw["payload"]) if "payload" in self.raw else None

    @property
    def status(self) -> str:
        return str(self.raw.get("status", ""))

    @property
    def attempts(self) -> int:
        return int(self.raw.get("attempts", 0))

    @property
    def error(self) -> str:
        return str(self.raw.get("error", ""))

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.raw.get("labels") or {})

    @property
    def progress(self) -> dict[str, Any]:
        return dict(self.raw.get("progress") or {})


class Query:
    """Tasks that a question selects: iterate over all of them, or read a page at a time."""

    def __init__(self, client: Client, path: str, members: Mapping[str, Any]) -> None:
        self._client, self._path = client, path
        self._members = {name: value for name, value in members.items() if value not in (None, "", [])}

    async def page(self, cursor: str = "") -> tuple[list[Task], str]:
        """A page and the cursor of the next one, "" on the last. A page may be empty and have a next one."""
        members = self._members | ({"cursor": cursor} if cursor else {})
        body = await self._client._read(f"{self._path}?{urlencode(members, doseq=True)}")
        return [Task.of(t) for t in body.get("tasks", [])], str(body.get("cursor", ""))

    async def __aiter__(self) -> AsyncIterator[Task]:
        cursor, more = "", True
        while more:
            tasks, cursor = await self.page(cursor)
            for task in tasks:
                yield task
            more = bool(cursor)


def takes(spec: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """Gives a method the parameters of another callable, for type checkers and for help()."""

    def named(method: Callable[..., R]) -> Callable[Concatenate[Any, P], R]:
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        method.__signature__ = inspect.Signature([own, *inspect.signature(spec).parameters.values()])  # type: ignore[attr-defined]
        return method

    return named


class Client:
    """Posts tasks and reads what became of them, from the coroutines of one event loop.

    ``url`` is the address of a server, or several with commas between them, which are asked in turn; without it, and
    without a token, the variables CODEQ_URL and CODEQ_TOKEN hold, else http://127.0.0.1:8080.
    ``timeout`` is how long a call may go on trying, for what is safe to repeat: a task with an idempotency key.
    A task without one is sent once; if its answer is lost, the error has the code ``outcome_unknown``. Use the
    client as a context manager, or close it. After a fork the child makes a client of its own.
    """

    def __init__(
        self, url: str | None = None, *, token: Token | None = None, tenant: str = "",
        tls: ssl.SSLContext | None = None, timeout: float = 30.0,
    ) -> None:
        self.transport = Transport(url, token, tenant, tls)
        self.timeout = timeout
        self._turn: _Turn = []
        self._sending: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End posts that are not answered, and close the connections that no other call uses."""
        for sending in list(self._sending):
            sending.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self.transport.close()

    @takes(NewTask)
    async def enqueue(self, *args: Any, **members: Any) -> Task:
        """Post one task, with the arguments of :class:`NewTask`. It is on the disk of the server when this
        returns."""
        task = NewTask(*args, **members)
        encoded = task.encode()
        made, replayed = await self._post(lambda _: self._with_others(encoded), task.idempotency_key is not None)
        return Task.of(made, replayed)

    async def _with_others(self, encoded: str) -> _Made:
        """Posts a task in one request with those of other coroutines that post in the same turn of the loop."""
        loop = asyncio.get_running_loop()
        if not self._turn:
            loop.call_soon(self._end_turn)
        answer: asyncio.Future[_Made] = loop.create_future()
        self._turn.append((answer, encoded))
        return await answer

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, []
        for part in _parts(turn):
            sending = asyncio.get_running_loop().create_task(self._send(part))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _send(self, part: Sequence[tuple[asyncio.Future[_Made], str]]) -> None:
        made: Sequence[_Made | Exception]
        try:
            if len(part) > 1:
                made = [_made(one) for one in await self._batch([encoded for _, encoded in part])]
            else:
                answer = await self.transport.request("POST", "/tasks", part[0][1].encode())
                made = [(self._json(answer, changes=True), answer.headers.get("idempotent-replayed", "").lower() == "true")]
        except Exception as problem:  # whoever waits must hear of it
            made = [copy.copy(problem) for _ in part]
        except asyncio.CancelledError:
            made = [Error("the client was closed", code="outcome_unknown", fate=errors.BROKEN) for _ in part]
        for (waiting, _), one in zip(part, made):
            if waiting.done():
                continue
            if isinstance(one, Exception):
                waiting.set_exception(one)
            else:
                waiting.set_result(one)

    async def enqueue_many(self, tasks: Sequence[NewTask]) -> list[Task | Error]:
        """Post many tasks, at most 1,000 in one request. Each is accepted or refused by itself: the answer has, in
        the order of the tasks, a task or the error of it. Requests in which every task has an idempotency key are
        repeated like :meth:`enqueue`; if a later request fails for good, its error is that of all its tasks."""
        results: list[Task | Error] = []
        for part in _parts([(task, task.encode()) for task in tasks]):
            bodies = [encoded for _, encoded in part]
            try:
                answers = await self._post(lambda _: self._batch(bodies, "return=minimal"), all(task.idempotency_key for task, _ in part))
            except Error as problem:
                if not results:
                    raise
                answers = [problem] * len(part)
            for (task, _), one in zip(part, answers):
                answer = one if isinstance(one, Error) else _made(one)
                results.append(answer if isinstance(answer, Error) else Task.of({"command": command_of(task.command), **answer[0]}, answer[1]))
        return results

    async def _batch(self, tasks: Sequence[str], prefer: str = "") -> list[Any]:
        body = f'{{"tasks":[{",".join(tasks)}]}}'.encode()
        answer = await self.transport.request("POST", "/tasks/batch", body, {"Prefer": prefer} if prefer else None)
        results = self._json(answer, changes=True).get("results")
        if not isinstance(results, list) or len(results) != len(tasks):
            raise unsure(Error("the answer to a batch has not its length", code="not_codeq", fate=errors.GARBLED))
        return results

    async def _post(self, post: Callable[[float], Awaitable[R]], keyed: bool) -> R:
        if keyed:
            return await persist(errors.KEYED, self.timeout, post, keyed=True)
        try:
            return await post(self.timeout)
        except Error as problem:
            raise unsure(problem) from problem

    async def task(self, task: Task | str) -> Task:
        """A task as it is now."""
        return Task.of(await self._read(f"/tasks/{_id(task)}"))

    async def result(self, task: Task | str, timeout: float | None = None) -> dict[str, Any]:
        """The result of a task. It waits until the task has ended, for ever without a timeout, and also while the
        server is away. Raises :class:`TaskFailed` if the task ended without a result, :class:`Timeout` if it has
        not ended by then."""
        record = await self.record(task, timeout)
        if record.get("status") != "COMPLETED":
            raise TaskFailed(record)
        return dict(record.get("result") or {})

    async def record(self, task: Task | str, timeout: float | None = None) -> dict[str, Any]:
        """The whole result record of a task that has ended in any way, waited for as in :meth:`result`."""

        async def ask(left: float) -> dict[str, Any]:
            wait = int(min(WAIT_SECONDS, max(0.0, left)))
            answer = await self.transport.request("GET", f"/tasks/{_id(task)}/result?waitSeconds={wait}", wait=wait)
            return dict(self._json(answer)["result"])

        return await persist(errors.WAIT, math.inf if timeout is None else timeout, ask)

    async def cancel(self, task: Task | str) -> Task:
        """End a task that has not ended. To cancel it twice is no error; if it ended otherwise, the error has the
        code ``already_terminal`` and the task."""
        try:
            answer = await self.transport.request("POST", f"/tasks/{_id(task)}/cancel", b"{}")
        except Error as problem:
            raise unsure(problem) from problem
        return Task.of(self._json(answer, changes=True))

    async def upload(self, job: Job, name: str, content: bytes, content_type: str = "application/octet-stream") -> dict[str, Any]:
        """Send a file of a job, which becomes an artifact of the task when the handler has ended it: completed, or failed
        for good. It is on the disk of the server when this returns. A second file of the same name replaces the first.
        It is repeated like a task with a key, but for as long as the job is not cancelled."""
        path, headers = f"/tasks/{_id(job.id)}/artifacts/{quote(name, safe='')}", {"Content-Type": content_type, "X-Codeq-Lease-Token": job.token}

        async def put(_: float) -> dict[str, Any]:
            job.check()
            return dict(self._json(await self.transport.request("PUT", path, content, headers), changes=True))

        artifact = await persist(errors.KEYED, math.inf, put, keyed=True)
        job.attach(name)
        return artifact

    async def artifacts(self, task: Task | str) -> Sequence[dict[str, Any]]:
        """The artifacts of a task that has ended: files with name, url, contentType, sizeBytes and sha256, and links."""
        return list((await self._read(f"/tasks/{_id(task)}/artifacts"))["artifacts"])

    async def download(self, task: Task | str, name: str, into: BinaryIO) -> None:
        """Write the file of an artifact into an open file. After an error a part of it may be there."""
        await self.transport.request("GET", f"/tasks/{_id(task)}/artifacts/{quote(name, safe='')}", into=into)

    def list(
        self, command: str, state: str, *, status: str | None = None, worker: str | None = None,
        error: str | None = None, cause: str | None = None, limit: int | None = None,
    ) -> Query:
        """The tasks of a queue in one state: ready, delayed, inProgress, dlq or done."""
        members = {"state": state, "status": status, "worker": worker, "error": error, "cause": cause, "limit": limit}
        return Query(self, f"/admin/queues/{quote(command, safe='')}/tasks", members)

    def find(
        self, *, id: str | None = None, labels: Mapping[str, str] | None = None, command: str | None = None,
        state: str | None = None, error: str | None = None, payload: str | None = None, worker: str | None = None,
        older_than: Seconds | None = None, min_attempts: int | None = None, limit: int | None = None,
    ) -> Query:
        """The tasks of all queues that every given member selects. ``error`` and ``payload`` are parts of them."""
        span = _whole_seconds(older_than)
        return Query(self, "/admin/tasks", {
            "id": id, "label": [f"{k}={v}" for k, v in (labels or {}).items()], "command": command, "state": state,
            "error~": error, "payload~": payload, "worker": worker, "olderThan": None if span is None else f"{span}s",
            "attempts>": min_attempts, "limit": limit,
        })

    async def queues(self) -> Sequence[dict[str, Any]]:
        """The figures of all queues."""
        return list((await self._read("/admin/queues"))["queues"])

    def watch(self, kind: str, **filter: Any) -> Watch:
        """What happens, as it happens; see :class:`Watch`."""
        return Watch(self.transport, kind, filter)

    async def _read(self, path: str) -> dict[str, Any]:
        return dict(self._json(await self.transport.request("GET", path)))

    def _json(self, answer: Answer, changes: bool = False) -> Any:
        try:
            found = answer.json()
            if isinstance(found, dict):
                return found
            why = "it is no object"
        except ValueError as problem:
            why = str(problem)
        error = Error(
            f"the answer of {self.transport.url} is not codeq's: {why}", code="not_codeq", status=answer.status, fate=errors.GARBLED
        )
        raise unsure(error) if changes else error


def _id(task: Task | str) -> str:
    return quote(task.id if isinstance(task, Task) else task, safe="")


def _made(one: dict[str, Any]) -> _Made | Error:
    """The answer for one task of a batch. Its sentence says nothing of the place in a batch that nobody asked for."""
    if "code" in one:
        return errors.from_answer({**one, "error": re.sub(r"^tasks\[\d+\]\.?", "", one.get("error", ""))})
    return one.get("task", one), bool(one.get("replayed"))


def _parts(items: Sequence[tuple[R, str]]) -> Sequence[list[tuple[R, str]]]:
    """Tasks as JSON, in parts that fit into requests."""
    parts: list[list[tuple[R, str]]] = []
    size = 0
    for item in items:
        size += len(item[1])
        if not parts or len(parts[-1]) == BATCH_TASKS or size > BATCH_BYTES:
            parts.append([])
            size = len(item[1])
        parts[-1].append(item)
    return parts
