"""A WebSocket client (RFC 6455) over asyncio streams: no extensions, text and binary messages."""

from __future__ import annotations

import asyncio
import base64
import codecs
import contextlib
import hashlib
import os
import struct
from collections.abc import Awaitable
from typing import Final

from .errors import Closed

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_OPCODES: Final = frozenset((_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG))
_READ: Final = 256 * 1024
_GOODBYE: Final = 1.0  # seconds that the polite end of a connection may take


def mask(key: bytes, payload: bytes) -> bytes:
    """The payload XOR the repeated key, as one operation on two large integers."""
    size = len(payload)
    repeated = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(repeated, "little")).to_bytes(size, "little")


def encode(opcode: int, payload: bytes, fin: bool = True) -> bytes:
    """One masked frame."""
    size = len(payload)
    first = opcode | (0x80 if fin else 0)
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, size)
    key = os.urandom(4)
    return head + key + mask(key, payload)


def new_key() -> str:
    """A value for Sec-WebSocket-Key."""
    return base64.b64encode(os.urandom(16)).decode()


def accept_for(key: str) -> str:
    """The Sec-WebSocket-Accept that answers a key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()


def _may_close_with(code: int) -> bool:
    return 1000 <= code <= 1014 and code not in (1004, 1005, 1006) or 3000 <= code <= 4999


class WebSocket:
    """A connection after its handshake. One task calls :meth:`receive`; any code of the same loop sends.

    A ping is answered when every message before it has been returned by ``receive`` and the next one is asked
    for, so a pong never speaks for a message that nobody has seen.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_bytes: int) -> None:
        self._reader, self._writer, self._max = reader, writer, max_bytes
        self._buffer = bytearray()
        self._at = 0  # where the next frame begins
        self._parts: list[bytes | str] = []  # of a message in fragments
        self._parts_bytes = 0
        self._kind = 0  # the opcode of that message, 0 without one
        self._decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")()
        self._said_goodbye = False
        self._ended: Closed | None = None
        self.silence = 0.0  # seconds without a byte after which the peer counts as gone; 0 is no limit

    async def receive(self) -> str | bytes:
        """The next message. Raises :class:`Closed` when there is none any more."""
        while self._ended is None:
            try:
                message = self._next()
            except UnicodeDecodeError:
                await self._fail(1007, "the text is not UTF-8")
            except _Violation as broken:
                await self._fail(broken.code, str(broken))
            else:
                if message is not None:
                    return message
                if self._ended is None:
                    await self._fill()
        await self._finish()
        raise self._ended

    async def _fill(self) -> None:
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        timer = asyncio.get_running_loop().call_later(self.silence, self._gone_silent) if self.silence else None
        try:
            chunk = await self._reader.read(_READ)
        except (OSError, EOFError) as problem:
            self._ended = self._ended or Closed(1006, str(problem))
            return
        finally:
            if timer is not None:
                timer.cancel()
        if not chunk:
            self._ended = self._ended or Closed(1006, "the connection broke")
        self._buffer += chunk

    def _gone_silent(self) -> None:
        self._ended = Closed(1006, f"nothing came for {self.silence:g} s")
        self._writer.transport.abort()

    def _next(self) -> str | bytes | None:
        """The next message in the buffer; None if more bytes must come, or the peer has closed."""
        while self._ended is None:
            frame = self._frame()
            if frame is None:
                return None
            fin, opcode, start, end = frame
            self._at = end
            if opcode >= _CLOSE:
                self._control(opcode, bytes(self._buffer[start:end]))
                continue
            message = self._data(fin, opcode, start, end)
            if message is not None:
                return message
        return None

    def _frame(self) -> tuple[bool, int, int, int] | None:
        """Where the next frame is: fin, opcode, begin and end of its payload; None if it is not here yet."""
        buffer, at = self._buffer, self._at
        have = len(buffer) - at
        if have < 2:
            return None
        first, size = buffer[at], buffer[at + 1]
        fin, opcode = first >= 0x80, first & 0x0F
        if first & 0x70:
            raise _Violation("a reserved bit is set")
        if opcode not in _OPCODES:
            raise _Violation("the opcode is reserved")
        if size & 0x80:
            raise _Violation("a frame of the server is masked")
        if opcode >= _CLOSE and (size > 125 or not fin):
            raise _Violation("a control frame is long or in fragments")
        start = at + 2
        if size >= 126:
            width, least = (2, 126) if size == 126 else (8, 1 << 16)
            if have < 2 + width:
                return None
            size = int.from_bytes(buffer[start : start + width], "big")
            if size < least or size >= 1 << 63:
                raise _Violation("the length of a frame is not in its shortest form")
            start += width
        if opcode == _CONTINUATION and not self._kind:
            raise _Violation("a continuation continues nothing")
        if opcode in (_TEXT, _BINARY) and self._kind:
            raise _Violation("a message begins in the middle of another")
        if opcode < _CLOSE and self._parts_bytes + size > self._max:
            raise _Violation(f"a message has more than {self._max} bytes", 1009)
        return (fin, opcode, start, start + size) if len(buffer) >= start + size else None

    def _data(self, fin: bool, opcode: int, start: int, end: int) -> str | bytes | None:
        with memoryview(self._buffer) as view:
            if fin and not self._kind:  # the common case: a message in one frame, copied once
                return str(view[start:end], "utf-8") if opcode == _TEXT else bytes(view[start:end])
            piece = bytes(view[start:end])
        self._kind = self._kind or opcode
        self._parts_bytes += len(piece)
        self._parts.append(self._decoder.decode(piece, fin) if self._kind == _TEXT else piece)
        if not fin:
            return None
        parts, text = self._parts, self._kind == _TEXT
        self._parts, self._parts_bytes, self._kind = [], 0, 0
        if text:
            self._decoder.reset()
            return "".join(p for p in parts if isinstance(p, str))
        return b"".join(p for p in parts if isinstance(p, bytes))

    def _control(self, opcode: int, payload: bytes) -> None:
        if opcode == _PING:
            self._write(encode(_PONG, payload))
        if opcode != _CLOSE:
            return
        code, reason = 1005, ""
        if payload:
            code, reason = int.from_bytes(payload[:2], "big"), str(payload[2:], "utf-8")
            if not _may_close_with(code):
                raise _Violation(f"the close code {code} is reserved")
        if not self._said_goodbye:
            self._say_goodbye(payload[:2])
        self._ended = Closed(code, reason)

    def _write(self, frame: bytes) -> None:
        if not self._said_goodbye and not self._writer.is_closing():
            self._writer.write(frame)

    def send(self, message: str | bytes) -> None:
        """Send a message; :meth:`drain` waits until most of it has left."""
        text = isinstance(message, str)
        self._write(encode(_TEXT if text else _BINARY, message.encode() if isinstance(message, str) else message))

    async def drain(self) -> None:
        """Wait while the peer reads slower than this side writes. It does nothing on a connection that has ended."""
        with contextlib.suppress(OSError):
            await self._writer.drain()

    def _say_goodbye(self, payload: bytes) -> None:
        self._write(encode(_CLOSE, payload))
        self._said_goodbye = True

    async def _fail(self, code: int, reason: str) -> None:
        """End the connection because of what the peer sent."""
        self._say_goodbye(code.to_bytes(2, "big"))
        self._ended = Closed(code, reason)

    async def _finish(self) -> None:
        """Wait for a moment until the peer has closed, so that the last frame is not lost, then close."""
        await self._let_go(self._discard())

    async def _discard(self) -> None:
        while await self._reader.read(_READ):
            pass

    async def _let_go(self, first: Awaitable[None]) -> None:
        """Close the socket after what comes first, or at once if this task is cancelled meanwhile."""
        try:
            with contextlib.suppress(Closed, OSError, EOFError, asyncio.TimeoutError):
                await asyncio.wait_for(first, _GOODBYE)
        finally:
            self._writer.close()
        with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), _GOODBYE)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """End the connection: a close frame, the answer of the peer if it comes soon, and the end of the socket.
        No other task may be in :meth:`receive`."""
        if self._ended is None and not self._writer.is_closing():
            self._say_goodbye(code.to_bytes(2, "big") + reason.encode()[:123])
            await self._let_go(self._until_closed())
        self._ended = self._ended or Closed(code, reason)
        await self._let_go(asyncio.sleep(0))

    async def _until_closed(self) -> None:
        while True:
            await self.receive()

    def abort(self) -> None:
        """End the connection at once."""
        self._ended = self._ended or Closed(1006, "given up here")
        self._writer.transport.abort()


class _Violation(Exception):
    """The peer broke the protocol."""

    def __init__(self, message: str, code: int = 1002) -> None:
        super().__init__(message)
        self.code = code
