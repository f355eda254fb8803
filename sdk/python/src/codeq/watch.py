"""Live events: what happens on the server, as it happens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

from .errors import FIRST_LINK, FRAME, WATCH_LINK, Error, backoff, from_answer, persist
from .http1 import Transport
from .session import Link, connect

log = logging.getLogger("codeq")

FIGURES = (
    "ready", "delayed", "in_progress", "dead", "done", "enqueued", "started", "completed", "failed", "retried", "expired",
    "oldest_ready_at", "wait_p50", "wait_p99", "run_p50", "run_p99", "paused", "limited",
)  # of a row of the kind "queues"; times in milliseconds
_TOTAL = 4294967295
Figures = dict[tuple[str, str], dict[str, int]]


@dataclass(frozen=True)
class News:
    """One thing that a watch tells. ``kind`` is the type of its frame: snapshot, tick, event, progress, output, gap
    or points; ``data`` has the members of the frame. Of the kind "queues", ``queues`` has the figures of every queue
    by (tenant, command) and the names in FIGURES; the key of their total is ("", "")."""

    kind: str
    data: dict[str, Any]
    queues: Figures


class Watch:
    """One subscription to live events: ``async with client.watch("events") as news: async for one in news: …``

    ``kind`` is events, task, queues, page, workers or server; the filter has the members of the protocol, such as
    ``commands=["mail"]``, ``causes=["nack"]`` or ``taskId=``. It connects again by itself. Events then go on behind
    the last one that was told, and a ``gap`` says what the server does not have any more; its reason is ``replaced``
    if the server has another database. ``since`` says how far a watch of events is: give it to a later one.
    """

    def __init__(self, transport: Transport, kind: str, filter: dict[str, Any]) -> None:
        self._transport, self._kind, self._filter = transport, kind, dict(filter)
        since = self._filter.pop("since", None) or {}
        self._creation_id: str = since.get("creationId", "")
        self._positions: dict[str, int] = dict(since.get("positions", {}))
        self._reported = 0  # the number of the last progress or output that was told
        self._names: dict[int, tuple[str, str]] = {}
        self._rows: dict[int, list[int]] = {}
        self._whole = True  # the last snapshot has all its parts
        self._told: AsyncGenerator[News, None] | None = None

    @property
    def since(self) -> dict[str, Any]:
        """How far this watch is."""
        return {"creationId": self._creation_id, "positions": dict(self._positions)}

    async def __aenter__(self) -> Watch:
        self._told = self._tell()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._told is not None:
            await self._told.aclose()

    def __aiter__(self) -> AsyncIterator[News]:
        if self._told is None:
            raise RuntimeError("a watch has a connection to close: use it inside `async with`")
        return self._told

    async def _tell(self) -> AsyncGenerator[News, None]:
        again, link = FIRST_LINK, None
        while True:
            try:
                link = await persist(again, math.inf, self._open)
                again = WATCH_LINK
                if self._replaced(link.welcome):
                    yield News("gap", {"reason": "replaced"}, {})
                self._subscribe(link)
                while True:
                    for frame in await link.frames():
                        news = self._take(frame)
                        if news is not None:
                            yield news
            except _Refused as refused:
                if not refused.error.fate & FRAME:
                    raise refused.error from None
                await asyncio.sleep(backoff(3, refused.error))
            except Error as problem:
                if link is None or not problem.fate & WATCH_LINK:
                    raise
                log.info("%s; the watch connects again", problem.message)
                await asyncio.sleep(backoff(0))
            finally:
                if link is not None:
                    with contextlib.suppress(Error):
                        await link.close()
                    link = None

    async def _open(self, _: float) -> Link:
        return await connect(self._transport, "/events", "codeq.events.v1", {})

    def _replaced(self, welcome: dict[str, Any]) -> bool:
        """Takes the positions of a database that is not the one before, and reports whether there was one."""
        before, self._creation_id = self._creation_id, welcome["creationId"]
        if before != self._creation_id or not self._positions:
            self._positions = dict(welcome["positions"])
        self._names, self._rows = {}, {}
        return self._kind == "events" and before not in ("", self._creation_id)

    def _subscribe(self, link: Link) -> None:
        ask = {"type": "subscribe", "ref": 1, "id": "w", "kind": self._kind, **self._filter}
        if self._kind == "events":
            ask |= {"from": self._positions, "creationId": self._creation_id}
        link.socket.send(json.dumps(ask))

    def _take(self, frame: dict[str, Any]) -> News | None:
        kind = frame.get("type", "")
        if kind == "error" and (frame.get("ref") == 1 or frame.get("id") == "w"):
            raise _Refused(from_answer(frame))
        if kind == "names":
            for slot, *name in frame["queues"]:
                self._rows.pop(slot, None)
                self._names.pop(slot, None)
                if name:
                    self._names[slot] = (name[0], name[1])
        elif kind == "mark":
            for shard, number in frame["positions"].items():
                self._reached(shard, number)
        elif kind in ("event", "gap"):
            self._reached(str(frame["shard"]), frame["n"] if kind == "event" else frame["to"])
            return News(kind, frame, {})
        elif kind in ("progress", "output") and frame["n"] > self._reported:
            self._reported = frame["n"]
            return News(kind, frame, {})
        elif kind in ("snapshot", "tick"):
            return self._changed(kind, frame)
        elif kind == "points":
            return News(kind, frame, {})
        return None

    def _reached(self, shard: str, number: int) -> None:
        self._positions[shard] = max(number, self._positions.get(shard, 0))

    def _changed(self, kind: str, frame: dict[str, Any]) -> News | None:
        if kind == "snapshot":
            if self._whole:
                self._rows = {}
            self._whole = not frame.get("more")
        for slot, *figures in frame.get("queues", ()):
            self._rows[slot] = figures
        if not self._whole and self._kind == "queues":
            return None
        queues = {}
        for slot, figures in self._rows.items():
            name = ("", "") if slot == _TOTAL else self._names.get(slot)
            if name is not None:
                queues[name] = dict(zip(FIGURES, figures))
        return News(kind, frame, queues)


class _Refused(Exception):
    """The server refused the subscription."""

    def __init__(self, error: Error) -> None:
        super().__init__(str(error))
        self.error = error
