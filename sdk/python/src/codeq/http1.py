"""HTTP/1.1 and the upgrade to a WebSocket, over asyncio streams, for one API on one or several servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urljoin, urlsplit

from . import errors
from .errors import Error
from .websocket import WebSocket, accept_for, new_key

API = "/v1/codeq"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 30.0  # until an answer begins, in addition to the wait that the request asks for
PROGRESS_SECONDS = 10.0  # in which a part of an answer must come
IDLE_SECONDS = 20.0  # for which a connection is kept; servers close idle ones much later
LOST_SECONDS = 30.0  # for which a server that was lost is not asked because another one names it
MAX_ANSWER = 16 << 20
MAX_MESSAGE = 4 << 20
MAX_HOPS = 5
_MAX_IDLE = 64

R = TypeVar("R")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Headers = dict[str, str]
Token = str | Callable[[], str | Awaitable[str]]  # a token, or what returns one: it is asked before each request


@dataclass(frozen=True)
class Address:
    """Where a server is: scheme http or https, and the path in front of that of the API."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        default = 443 if self.scheme == "https" else 80
        return f"{self.scheme}://{self.authority if self.port != default else self.authority.rsplit(':', 1)[0]}{self.path}"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(text: str) -> Address:
    """The address of a server as people write it: scheme, slash at the end and path of the API are optional."""
    bad = ValueError(f"the address of a server must look like http://127.0.0.1:8080, got {text!r}")
    trimmed = text.strip()
    parts = urlsplit(trimmed if "://" in trimmed else "http://" + trimmed)
    scheme = {"http": "http", "ws": "http", "https": "https", "wss": "https"}.get(parts.scheme)
    try:
        port, host = parts.port, parts.hostname
    except ValueError:
        raise bad from None
    if not trimmed or scheme is None or parts.query or parts.fragment or parts.username is not None:
        raise bad
    if any(c.isspace() or not c.isprintable() for c in trimmed) or not host and not port:
        raise bad
    path = parts.path.rstrip("/")
    if path.endswith(API):
        path = path[: -len(API)].rstrip("/")
    return Address(scheme, host or "127.0.0.1", port or (443 if scheme == "https" else 80), path)


@dataclass
class Answer:
    """An answer of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class _Connection:
    """One connection and when it was used last."""

    def __init__(self, streams: Streams) -> None:
        self.reader, self.writer = streams
        self.loop = asyncio.get_running_loop()
        self.used_at = time.monotonic()

    def stale(self) -> bool:
        return (
            self.writer.is_closing() or self.reader.at_eof() or self.reader.exception() is not None
            or time.monotonic() - self.used_at > IDLE_SECONDS
        )

    def close(self) -> None:
        if not self.loop.is_closed():
            self.writer.close()


class _Patience:
    """Ends a connection that makes no progress: each step has a time of its own."""

    def __init__(self, writer: asyncio.StreamWriter, seconds: float) -> None:
        self._abort: Callable[[], None] = writer.transport.abort
        self.over = False
        self._timer: asyncio.TimerHandle | None = None
        self.until(seconds)

    def until(self, seconds: float) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._end)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        self.over = True
        self._abort()


async def _within(seconds: float, awaitable: Awaitable[R], drop: Callable[[R], None]) -> R:
    """What is waited for; if that ends too late, or this side was cancelled meanwhile, it is dropped. (asyncio.wait_for
    loses what ends at the moment of a cancellation, or loses the cancellation.)"""
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise asyncio.TimeoutError
    except (asyncio.CancelledError, asyncio.TimeoutError):
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            drop(task.result())
        raise


class Transport:
    """Sends requests to one of several servers: to the one that answered last, and to the next one in turn when
    that is not there. Connections are kept for the next request, for the event loop that made them."""

    def __init__(self, urls: str | None, token: Token | None, tenant: str, tls: ssl.SSLContext | None) -> None:
        urls = urls or os.environ.get("CODEQ_URL") or "http://127.0.0.1:8080"
        token = os.environ.get("CODEQ_TOKEN", "") if token is None else token
        self.servers = [parse(url) for url in urls.split(",") if url.strip()] or [parse(urls)]
        self.token = _credential(token) if isinstance(token, str) else token
        self.tenant = _credential(tenant)
        self._tls = tls
        self._at = 0
        self._lost_at: dict[int, float] = {}
        self._idle: dict[Address, list[_Connection]] = {}

    @property
    def url(self) -> str:
        return str(self.servers[self._at])

    def lead(self, url: str | None) -> None:
        """Follow a hint of who leads, if it names one of the servers, because the token goes nowhere else, and none that was
        lost a moment ago: others may reach it, and this client not."""
        if url and len(self.servers) > 1:
            with contextlib.suppress(ValueError):
                leader = parse(url)
                for i, server in enumerate(self.servers):
                    there = (server.host, server.port) == (leader.host, leader.port)
                    if there and time.monotonic() - self._lost_at.get(i, -LOST_SECONDS) >= LOST_SECONDS:
                        self._at = i

    def _pass_over(self, failed: int) -> None:
        self._lost_at[failed] = time.monotonic()
        if failed == self._at:
            self._at = (failed + 1) % len(self.servers)

    async def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None, wait: float = 0.0,
        into: BinaryIO | None = None,
    ) -> Answer:
        """One request. Another server is asked only if the one before has certainly not done it. The error has a
        fate; a 2xx is returned, its body in ``into`` if there is one."""
        for turn in range(len(self.servers)):
            at = self._at
            try:
                answer = await self._follow(
                    self.servers[at], path, lambda to, route, own: self._once(to, method, route, body, {**own, **(headers or {})}, wait, into)
                )
                assert isinstance(answer, Answer)
                self.lead(answer.headers.get("codeq-leader"))
                return answer
            except Error as problem:
                if problem.fate & (errors.UNREACHED | errors.AWAY | errors.INTERNAL | errors.BROKEN | errors.GATEWAY):
                    self._pass_over(at)
                if not problem.fate & (errors.UNREACHED | errors.AWAY) or turn == len(self.servers) - 1:
                    raise
        raise AssertionError("a client has at least one server")

    async def _follow(self, server: Address, path: str, send: Callable[[Address, str, Headers], Awaitable[R | Answer]]) -> R | Answer:
        """What ``send`` returns, which is not an Answer, or one of success; at the server or where that sends it on."""
        to, route = server, server.path + API + path
        for hops in range(MAX_HOPS + 1):
            answer = await send(to, route, await self._credential(to, server))
            if not isinstance(answer, Answer) or 200 <= answer.status <= 299:
                return answer
            onward = redirect(to, route, answer, hops)
            if onward is None:
                raise refusal(to, answer)
            to, route = onward
        raise AssertionError("a redirect too many was followed")

    async def _credential(self, to: Address, server: Address) -> Headers:
        """The token and the tenant, if a request goes to the server itself and not to where it was sent on."""
        headers = {}
        if (to.host.lower(), to.port) == (server.host.lower(), server.port):
            try:
                said = self.token() if callable(self.token) else self.token
                token = _credential(said if isinstance(said, str) else await said)
            except Exception as problem:
                raise unreachable(f"nothing was sent to {to}, because there is no token: {problem!r}") from problem
            if token:
                headers["Authorization"] = "Bearer " + token
            if self.tenant:
                headers["X-Codeq-Tenant"] = self.tenant
        return headers

    async def _connect(self, to: Address) -> Streams:
        tls = None
        if to.scheme == "https":
            self._tls = self._tls or ssl.create_default_context()
            tls = self._tls
        try:
            opening = asyncio.open_connection(to.host, to.port, ssl=tls, limit=MAX_MESSAGE // 16)
            return await _within(CONNECT_SECONDS, opening, lambda streams: streams[1].close())
        except ssl.SSLCertVerificationError as problem:
            raise unreachable(f"the certificate of {to} is not trusted: {problem.verify_message}", errors.MISTRUSTED) from problem
        except ssl.SSLError as problem:
            raise unreachable(f"no TLS connection to {to}: {problem}", errors.MISTRUSTED) from problem
        except asyncio.TimeoutError:
            raise unreachable(f"{to} did not accept a connection in time") from None
        except ConnectionRefusedError as problem:
            raise unreachable(f'no codeq server answers at {to}: start one with "codeq serve", or give another address') from problem
        except OSError as problem:
            raise unreachable(f"no connection to {to}: {problem}") from problem

    async def _kept(self, to: Address) -> _Connection | None:
        """A connection of an earlier request that still stands."""
        await asyncio.sleep(0)  # lets the loop see the end of connections that the server has closed
        kept, loop = self._idle.get(to, []), asyncio.get_running_loop()
        while kept:
            connection = kept.pop()
            if connection.loop is loop and not connection.stale():
                return connection
            if connection.loop is loop:
                connection.close()
        return None

    async def _once(
        self, to: Address, method: str, route: str, body: bytes | None, headers: dict[str, str], wait: float, into: BinaryIO | None
    ) -> Answer:
        kept = await self._kept(to)
        if kept is not None:
            try:
                return await self._exchange(kept, to, method, route, body, headers, wait, into)
            except Error as problem:
                if method != "GET" or problem.fate != errors.BROKEN:
                    raise
        fresh = _Connection(await self._connect(to))
        return await self._exchange(fresh, to, method, route, body, headers, wait, into)

    async def _exchange(
        self, connection: _Connection, to: Address, method: str, route: str, body: bytes | None,
        headers: dict[str, str], wait: float, into: BinaryIO | None,
    ) -> Answer:
        reader, writer = connection.reader, connection.writer
        patience = _Patience(writer, wait + ANSWER_SECONDS + len(body or b"") / 50_000)
        how, keep = errors.BROKEN, False
        try:
            writer.write(head(method, route, to, headers, body))
            await writer.drain()
            status, answered = await read_head(reader)
            how = errors.CUT_SHORT
            content, keep = await _read_body(reader, method, status, answered, patience, into if status < 300 else None)
            return Answer(status, answered, content)
        except (OSError, EOFError, asyncio.LimitOverrunError) as problem:
            raise no_answer(to, how, "no answer came in time" if patience.over else _words(problem)) from problem
        except ValueError as problem:
            raise Error(f"{to} did not answer in HTTP ({problem}): is it a codeq server?", code="not_codeq", fate=errors.CUT_SHORT) from problem
        finally:
            patience.stop()
            idle = self._idle.setdefault(to, [])
            if keep and len(idle) < _MAX_IDLE:
                connection.used_at = time.monotonic()
                idle.append(connection)
            else:
                writer.close()

    async def upgrade(self, path: str, subprotocol: str) -> WebSocket:
        """Opens a WebSocket at one of the servers."""
        at = self._at
        try:
            socket = await _within(
                CONNECT_SECONDS + ANSWER_SECONDS,
                self._follow(self.servers[at], path, lambda to, route, own: self._shake_hands(to, route, subprotocol, own)),
                _abort,
            )
        except asyncio.TimeoutError:
            self._pass_over(at)
            raise no_answer(self.servers[at], errors.BROKEN, "no answer came in time") from None
        except Error as problem:
            if problem.fate != errors.REFUSED:
                self._pass_over(at)
            raise
        if isinstance(socket, Answer):
            raise Error(f"{self.servers[at]} opened no WebSocket", code="not_codeq", status=socket.status, fate=errors.FOREIGN)
        return socket

    async def _shake_hands(self, to: Address, route: str, subprotocol: str, headers: Headers) -> WebSocket | Answer:
        reader, writer = await self._connect(to)
        key = new_key()
        headers |= {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key, "Sec-WebSocket-Protocol": subprotocol,
        }
        opened = False
        try:
            writer.write(head("GET", route, to, headers, None))
            status, answered = await read_head(reader)
            if status != 101:
                content, _ = await _read_body(reader, "GET", status, answered, None)
                return Answer(status, answered, content)
            wrong = _wrong_upgrade(answered, key, subprotocol)
            if wrong:
                raise Error(f"{to} opened no WebSocket of codeq: {wrong}", code="not_codeq", fate=errors.GARBLED)
            opened = True
            return WebSocket(reader, writer, MAX_MESSAGE)
        except (OSError, EOFError, asyncio.LimitOverrunError) as problem:
            raise no_answer(to, errors.BROKEN, _words(problem)) from problem
        except ValueError as problem:
            raise Error(f"{to} did not answer in HTTP ({problem}): is it a codeq server?", code="not_codeq", fate=errors.BROKEN) from problem
        finally:
            if not opened:
                writer.close()

    async def close(self) -> None:
        """Closes the connections that no request uses."""
        loop = asyncio.get_running_loop()
        idle = [c for kept in self._idle.values() for c in kept if c.loop is loop]
        self._idle.clear()
        for connection in idle:
            connection.close()
        for connection in idle:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(connection.writer.wait_closed(), 1.0)


def _credential(text: str) -> str:
    trimmed = text.strip()
    if any(c.isspace() or not c.isprintable() for c in trimmed):
        raise ValueError("a token and the name of a tenant have no white space and no control characters")
    return trimmed


def _abort(late: WebSocket | Answer) -> None:
    if isinstance(late, WebSocket):
        late.abort()


def _wrong_upgrade(headers: dict[str, str], key: str, subprotocol: str) -> str:
    if headers.get("upgrade", "").lower() != "websocket" or "upgrade" not in headers.get("connection", "").lower():
        return "the headers Upgrade and Connection are wrong"
    if headers.get("sec-websocket-accept") != accept_for(key):
        return "Sec-WebSocket-Accept is wrong"
    if headers.get("sec-websocket-extensions"):
        return "it uses an extension that was not offered"
    if headers.get("sec-websocket-protocol", subprotocol) != subprotocol:
        return "it speaks another subprotocol"
    return ""


def head(method: str, route: str, to: Address, headers: dict[str, str], body: bytes | None) -> bytes:
    """A request with its body, as one piece."""
    lines = [f"{method} {route} HTTP/1.1", f"Host: {to.authority}", "User-Agent: codeq-python"]
    if body is not None:
        lines += [f"Content-Length: {len(body)}"]
        headers = {"Content-Type": "application/json", **headers}
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer, by names in lower case. Raises ValueError if it is not HTTP."""
    while True:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise ValueError(f"its answer begins with {lines[0][:40]!r}")
        headers: dict[str, str] = {"http-version": version}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        status = int(rest[:3])
        if status >= 200 or status == 101:
            return status, headers


async def _read_body(
    reader: asyncio.StreamReader, method: str, status: int, headers: dict[str, str], patience: _Patience | None,
    into: BinaryIO | None = None,
) -> tuple[bytes, bool]:
    """The body of an answer, unless it goes into a file, and whether the connection can be used again."""
    keep = headers["http-version"] == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
    if method == "HEAD" or status in (204, 304):
        return b"", keep
    body = bytearray()

    async def more(size: int) -> int:
        if patience:
            patience.until(PROGRESS_SECONDS)
        chunk = await reader.read(min(size, 1 << 18))
        if len(body) + len(chunk) > MAX_ANSWER:
            raise ValueError("its answer is too large")
        if into is None:
            body.extend(chunk)
        else:
            into.write(chunk)
        return len(chunk)

    async def exactly(size: int) -> None:
        while size:
            came = await more(size)
            if not came:
                raise EOFError("the answer broke off")
            size -= came

    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            await exactly(size)
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
    elif "content-length" in headers:
        await exactly(int(headers["content-length"]))
    else:
        keep = False
        while await more(1 << 18):
            pass
    return bytes(body), keep


def _words(problem: Exception) -> str:
    return "the connection ended" if isinstance(problem, EOFError) else str(problem) or type(problem).__name__


def unreachable(message: str, fate: int = errors.UNREACHED) -> Error:
    return Error(message, code="unreachable", retryable=fate == errors.UNREACHED, fate=fate)


def no_answer(to: Address, how: int, why: str) -> Error:
    said = "broke off" if how == errors.CUT_SHORT else "did not come"
    return Error(f"the answer of {to} {said}: {why}", code="not_codeq", retryable=True, fate=how)


def redirect(at: Address, route: str, answer: Answer, hops: int) -> tuple[Address, str] | None:
    """Where an answer sends a request on; None if it is no redirect. Only 307 and 308 are followed, which keep
    the method and the body, and never from https to http."""
    if answer.status not in (301, 302, 303, 307, 308):
        return None
    location, said = answer.headers.get("location", ""), f"{at} answered {answer.status}"
    target = urlsplit(urljoin(f"{at.scheme}://{at.authority}{route}", location))
    to: Address | None = None
    with contextlib.suppress(ValueError):
        to = parse(f"{target.scheme}://{target.netloc}")
    if not location or to is None:
        why = f"{said} without the address of a server"
    elif answer.status not in (307, 308):
        why = f"{said}: the server has moved to {to}: give that address"
    elif at.scheme == "https" and to.scheme == "http":
        why = f"{said} and names {to}, which is not encrypted: the request was not sent there"
    elif hops == MAX_HOPS:
        why = f"{said} after {hops} redirects: give the address of the server itself"
    else:
        return to, target.path + (f"?{target.query}" if target.query else "")
    raise Error(why, code="moved", status=answer.status, fate=errors.MOVED)


def refusal(at: Address, answer: Answer) -> Error:
    """The error in an answer that is no 2xx."""
    with contextlib.suppress(ValueError, AttributeError):
        body = json.loads(answer.body)
        if body.get("code"):
            return errors.from_answer(body, answer.status)
    fate, why = errors.FOREIGN, "is it a codeq server?"
    if b"HTTP request to an HTTPS server" in answer.body:
        return unreachable(f"{at} wants TLS: write https:// in the address", errors.MISTRUSTED)
    if answer.status == 429:
        fate, why = errors.PUT_OFF, "a proxy lets no more requests through now"
    elif answer.status >= 500:
        fate, why = errors.GATEWAY, "a proxy has no answer of the server"
    after = answer.headers.get("retry-after", "")
    return Error(
        f"{at} answered {answer.status}, not in the words of codeq: {why}", code="not_codeq", status=answer.status,
        retryable=fate != errors.FOREIGN, retry_after=float(after) if after.isdigit() else 0.0, fate=fate,
    )
