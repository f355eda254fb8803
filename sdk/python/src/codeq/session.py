"""A socket that speaks frames: that of a worker, and that of a watch."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from .errors import BROKEN, Closed, Error, from_answer
from .http1 import Transport
from .websocket import WebSocket

_HELLO_SECONDS = 10.0
_PING_SECONDS = 20
REPLACED = 4409


class Link:
    """A connection after its welcome. ``first`` are the frames that came in one message with it."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.welcome: dict[str, Any] = {}
        self.first: list[dict[str, Any]] = []

    async def frames(self) -> list[dict[str, Any]]:
        """The frames of the next message. Raises an :class:`Error` when the connection has ended."""
        if self.first:
            first, self.first = self.first, []
            return first
        try:
            message = await self.socket.receive()
        except Closed as end:
            raise _why(end) from None
        try:
            if not isinstance(message, str):
                raise ValueError("it is binary")
            frames = json.loads(message)
            if not isinstance(frames, list) or not all(isinstance(frame, dict) for frame in frames):
                raise ValueError("it is no list of objects")
        except (ValueError, RecursionError) as problem:
            await self.socket.close(4400, "a message is not one of codeq")
            raise Error(f"a message of the server was not understood: {problem}", code="not_codeq", fate=BROKEN) from None
        return frames

    async def close(self) -> None:
        await self.socket.close()


def _why(end: Closed) -> Error:
    if end.close_code == 4401:
        return Error("the server closed the session: its token is missing, wrong or expired", code="unauthenticated")
    return end


async def connect(transport: Transport, path: str, subprotocol: str, hello: dict[str, Any]) -> Link:
    """Opens a socket and says hello."""
    link = Link(await transport.upgrade(path, subprotocol))
    try:
        link.socket.send(json.dumps({"type": "hello", **hello}))
        frames = await asyncio.wait_for(link.frames(), _HELLO_SECONDS)
        if not frames:
            raise Error("an empty message came in place of a welcome", code="not_codeq", fate=BROKEN)
        if frames[0].get("type") == "error":
            raise from_answer(frames[0])
        if frames[0].get("type") != "welcome":
            raise Error("no welcome came", code="not_codeq", fate=BROKEN)
    except asyncio.TimeoutError:
        link.socket.abort()
        raise Error("no welcome came in time", code="not_codeq", fate=BROKEN) from None
    except BaseException:
        link.socket.abort()
        raise
    link.welcome, link.first = frames[0], frames[1:]
    link.socket.silence = 2.5 * (link.welcome.get("pingSeconds") or _PING_SECONDS)
    transport.lead(link.welcome.get("leader"))
    return link
