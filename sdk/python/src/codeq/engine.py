"""The part of a worker that speaks with the server. It has a thread and an event loop of its own, so that no handler
can block heartbeats and pongs. Everything here but :class:`Mailbox` and :meth:`Engine.post` runs on that loop."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import BROKEN, FIRST_LINK, FRAME, WORKER_LINK, Closed, Error, backoff, from_answer, persist
from .http1 import MAX_MESSAGE, Transport
from .job import Job, Settlement, released
from .session import REPLACED, Link, connect

log = logging.getLogger("codeq")

MESSAGE_BYTES = 256 * 1024
MESSAGE_FRAMES = 10_000
HEARTBEAT_TASKS = 10_000
REPORTS = 1000  # that may wait to be sent; more are dropped
FLUSH_SECONDS = 5.0  # for which a stopped worker tries to send outcomes
LAST_MOMENT = 5.0  # for which a handler may run after it was cancelled because the worker stops
START_SECONDS = 5.0  # for which a delivery may wait for a handler before it is handed back
DRAIN_SPREAD = 2.0  # over which the clients of a server that stops connect again
STEADY_SECONDS = 5.0  # after which a link that ends is followed by the next one soon
FIRST_REST, LONGEST_REST = 1.0, 60.0  # the pause after work that could not begin

ARRIVED, READY, RUNNING, ENDED = range(4)


class Mailbox:
    """Calls from any thread on an event loop, with one wake-up for many."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._woken = False

    def post(self, call: Callable[..., None], *args: Any) -> None:
        self._items.append((call, args))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:  # the loop is closed: nobody listens any more
                log.debug("nobody takes %r", call)

    def _run(self) -> None:
        self._woken = False
        for _ in range(len(self._items)):
            call, args = self._items.popleft()
            try:
                call(*args)
            except Exception:
                log.exception("%r failed", call)  # a hook of the program: the others are called all the same


class Delivery:
    """One delivery from its frame to the answer of the server for its outcome."""

    __slots__ = ("job", "token", "id", "seq", "link", "state", "doubtful", "settlement", "asked", "lost", "came", "run_timer")

    def __init__(self, id: str, token: str, link: int, job: Job | None = None, seq: int = 0, came: float = 0.0) -> None:
        self.job, self.id, self.token, self.seq, self.came = job, id, token, seq, came
        self.link = link  # the number of the link that it came over, or of the session that still has it
        self.state = ARRIVED
        self.doubtful = False  # it came over an earlier link; a heartbeat will tell
        self.settlement: Settlement | None = None
        self.asked = 0  # the ref of the outcome on the present link
        self.lost = ""  # why it is no longer this worker's
        self.run_timer: asyncio.TimerHandle | None = None


@dataclass(frozen=True)
class Settled:
    """The end of a delivery. ``error`` is None if the server has taken the outcome (completed, failed, nacked or
    released), else why not; ``retry_in`` is the pause before the next attempt, ``dead`` says that there is none."""

    job: Job
    outcome: str
    error: Error | None = None
    retry_in: float = 0.0
    dead: bool = False


@dataclass(frozen=True)
class Options:
    commands: list[str]
    window: int
    lease: int
    name: str
    grace: float


class Engine:
    """Holds the session of a worker. ``owner`` is told what happens, by methods that post to its own loop."""

    def __init__(self, transport: Transport, options: Options, owner: Any) -> None:
        self._transport, self._options, self._owner = transport, options, owner
        self._lease_third = options.lease / 3
        self.error: Error | None = None
        self._bug: Exception | None = None
        self._early: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._mailbox: Mailbox | None = None
        self._over: asyncio.Event | None = None
        self._wake: asyncio.Event | None = None
        self._link: Link | None = None
        self._links = 0
        self._session = self._resume = ""
        self._deliveries: dict[str, Delivery] = {}
        self._waiting: list[Delivery] = []
        self._running = 0
        self._refs = 0
        self._questions: dict[int, tuple[str, Any]] = {}
        self._out: deque[str] = deque()
        self._here = self._composed = self._left = 0  # seq: come, in a message, sent
        self._carried = 0  # deliveries that came over an earlier link
        self._window_size, self._window_unanswered = 0, 0
        self._unheard = self._goodbye = False
        self._refusals, self._paused = 0, False
        self._rests, self._resting = 0, False
        self._draining = self._stopping = self._flushed = False
        self._timers: dict[str, asyncio.TimerHandle] = {}

    # Called from any thread.

    def post(self, call: Callable[..., None], *args: Any) -> None:
        """Run a method of this engine on its loop."""
        if self._mailbox is None:
            self._early.append((call, args))
        else:
            self._mailbox.post(self._called, call, args)

    def run(self) -> None:
        """Work until the end. It is the target of a thread."""
        asyncio.run(self._main())

    # The life of the links.

    async def _main(self) -> None:
        self._over, self._wake = asyncio.Event(), asyncio.Event()
        self._mailbox = Mailbox(asyncio.get_running_loop())
        for call, args in self._early:
            call(*args)
        links, over = asyncio.create_task(self._keep_linked()), asyncio.create_task(self._over.wait())
        self._step()
        await asyncio.wait({links, over}, return_when=asyncio.FIRST_COMPLETED)
        for timer in self._timers.values():
            timer.cancel()
        over.cancel()
        while not links.done():
            links.cancel()  # again, because a wait that ends at that moment takes a cancellation for its own
            await asyncio.wait({links}, timeout=2)
        ended = None if links.cancelled() else links.exception()
        if isinstance(ended, Error):
            self.error = self.error or ended
        elif ended is not None or self._bug is not None:
            raise ended or self._bug or AssertionError

    async def _keep_linked(self) -> None:
        link = await persist(FIRST_LINK, math.inf, self._connect)
        now, short = asyncio.get_running_loop().time, 0  # links in a row that did not last
        while True:
            since = now()
            writer = asyncio.create_task(self._write(link))
            writer.add_done_callback(self._writer_ended)
            try:
                self._connected(link)
                self._step()
                while True:
                    self._receive_all(await link.frames())
                    self._step()
            except Error as problem:
                self._disconnected(problem)
            finally:
                self._link = None
                writer.cancel()
                await asyncio.gather(writer, return_exceptions=True)
                await link.close()
            self._step()
            short = short + 1 if now() - since < STEADY_SECONDS else 0
            await asyncio.sleep(random.random() * DRAIN_SPREAD if self._goodbye else backoff(max(0, short - 1)))
            self._goodbye = False
            link = await persist(WORKER_LINK, math.inf, self._connect)

    async def _connect(self, _: float) -> Link:
        hello = {"workerId": self._options.name, "maxMessageBytes": MAX_MESSAGE}
        if self._resume:
            hello["resume"] = self._resume
        return await connect(self._transport, "/session", "codeq.v1", hello)

    def _connected(self, link: Link) -> None:
        """Sends the outcomes that the last link may have lost, then a heartbeat for everything else in hand, which
        binds it to this session if it is another one, then the subscription."""
        welcome = link.welcome
        self._links += 1
        self._carried, self._window_unanswered, self._unheard = len(self._deliveries), 0, False
        self._here = self._composed = self._left = 0
        self._link = link
        if self._resume and welcome["sessionId"] == self._session:
            self._resumed(welcome.get("held", []))
        self._session, self._resume = welcome["sessionId"], welcome.get("resume", "")
        self._hand_in_all()
        self._beat()
        self._subscribe()
        log.info("connected to %s as %s, taking %d tasks at a time", self._transport.url, self._options.name, self._options.window)
        self._owner.connected(welcome)

    def _resumed(self, held: list[dict[str, str]]) -> None:
        """Sorts what is in hand by what the server says that the session still has."""
        for ref in held:
            d = self._deliveries.get(ref["leaseToken"])
            if d is None:  # it never arrived here, and goes back
                d = Delivery(ref["taskId"], ref["leaseToken"], self._links)
                d.state, d.settlement = ENDED, released()
                self._deliveries[d.token] = d
            elif d.link != self._links:
                d.link = self._links
                self._carried -= 1
            if d.state == ARRIVED:
                d.state, d.doubtful = READY, False
        for d in list(self._deliveries.values()):
            if d.link != self._links and d.state != ENDED:
                self._lose(d, "lease_lost", "the session does not have it any more")

    def _disconnected(self, problem: Error) -> None:
        """Handlers go on; what has not begun waits until a heartbeat over the next link says whose it is."""
        log.warning("%s; the worker connects again", problem.message)
        if isinstance(problem, Closed) and problem.close_code == REPLACED:
            self._resume = ""
        self._out.clear()
        self._questions.clear()
        for d in self._deliveries.values():
            d.asked = 0
        for d in self._waiting:
            d.state, d.doubtful = ARRIVED, True
        self._owner.disconnected(problem)

    async def _write(self, link: Link) -> None:
        """Sends what waits. The longer a write takes, the more frames go into the next message."""
        assert self._wake is not None
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._link is link and (self._out or self._here > self._composed):
                link.socket.send(self._compose())
                composed = self._composed
                await link.socket.drain()
                self._left = composed
            for d in self._waiting:
                if d.state == ARRIVED and not d.doubtful and d.seq <= self._left:
                    d.state = READY
            self._step()

    def _writer_ended(self, writer: asyncio.Task[None]) -> None:
        if not writer.cancelled() and writer.exception() is not None:
            log.error("the connection is given up", exc_info=writer.exception())
            if self._link is not None:
                self._link.socket.abort()

    def _compose(self) -> str:
        frames, size = [], 0
        if self._here > self._composed:
            self._composed = self._here
            frames.append(f'{{"type":"received","through":{self._here}}}')
        while self._out and len(frames) < MESSAGE_FRAMES:
            size += len(self._out[0])
            if frames and size > MESSAGE_BYTES:
                break
            frames.append(self._out.popleft())
        return f"[{','.join(frames)}]"

    def _called(self, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        try:
            call(*args)
            self._step()
        except Exception as bug:  # the state is not to be trusted any more: run raises it
            assert self._over is not None
            self._bug = bug
            self._over.set()

    def _step(self) -> None:
        """Does what can be done now: runs after everything that changes the state."""
        if self._waiting:
            self._start_ready()
        if self._link is not None and (self._out or self._here > self._composed):
            assert self._wake is not None
            self._wake.set()
        if (self._draining or self._stopping) and not self._running:
            self._end_if_done()

    def _end_if_done(self) -> None:
        assert self._over is not None
        answered = self._link is None or not self._window_unanswered
        if not self._deliveries and answered or self._flushed:
            self._over.set()
        elif self._stopping and "flush" not in self._timers:
            self._later("flush", FLUSH_SECONDS, self._flush_over)

    def _flush_over(self) -> None:
        self._flushed = True
        log.warning("the outcomes of %d tasks could not be handed in", len(self._deliveries))

    def _later(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        """Calls once after a time, in place of what was to be called under that name."""
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, self._called, call, ())

    # The end of the worker.

    def drain(self) -> None:
        """Take nothing more, hand back what has not begun, and wait for the handlers, at most for the grace."""
        if not self._draining:
            self._draining = True
            self._later("grace", self._options.grace, self.stop)
            self._state_window()

    def stop(self) -> None:
        """Cancel the handlers and send their outcomes, for a moment."""
        if self._stopping:
            return
        self._stopping = True
        for d in self._deliveries.values():
            if d.state == RUNNING and d.job is not None:
                self._owner.cancel(d.job, "stopping")
        self._later("moment", LAST_MOMENT, self._leave_alone)
        self._state_window()

    def _leave_alone(self) -> None:
        for d in list(self._deliveries.values()):
            if d.state == RUNNING:
                log.warning("the handler of task %s still runs after it was cancelled; it is left alone", d.id)
                self._end(d, released(stopping=True))

    # Deliveries.

    def _arrive(self, frame: dict[str, Any]) -> None:
        self._here = max(self._here, frame["seq"])
        token = frame["leaseToken"]
        if token in self._deliveries:
            return
        now = asyncio.get_running_loop().time()
        job = Job(frame, self._report, self._owner)
        d = Delivery(job.id, token, self._links, job, frame["seq"], now)
        if job.timeout is not None:
            d.run_timer = asyncio.get_running_loop().call_later(job.timeout, self._called, self._lose, (d, "timeout", "its time is over"))
        self._deliveries[token] = d
        self._waiting.append(d)

    def _start_ready(self) -> None:
        if self._draining or self._stopping or self._resting:
            return self._hand_back(lambda d: True)
        kept, begun = [], []
        for d in self._waiting:
            if d.state != READY or self._running >= self._options.window:
                kept.append(d)
                continue
            d.state = RUNNING
            self._running += 1
            begun.append(d)
        self._waiting = kept
        if begun:
            self._owner.begin([(d.job, d) for d in begun])
        if any(d.state == READY for d in kept) and "stale" not in self._timers:
            self._later("stale", START_SECONDS, self._hand_back_stale)

    def _hand_back_stale(self) -> None:
        del self._timers["stale"]
        now = asyncio.get_running_loop().time()
        self._hand_back(lambda d: now - d.came >= START_SECONDS)

    def _hand_back(self, which: Callable[[Delivery], bool]) -> None:
        """Hands back what no handler has begun. Without a link it is left to the server, which misses this worker
        soon enough, if the worker ends; else it waits."""
        ending = self._draining or self._stopping
        back = [d for d in self._waiting if which(d) and (ending or d.state == READY and self._link is not None)]
        self._waiting = [d for d in self._waiting if d not in back]
        for d in back:
            if self._link is None:
                self._forget(d)
            else:
                self._end(d, released(started=False, stopping=ending))

    def finish(self, d: Delivery, settlement: Settlement) -> None:
        """The handler of a delivery has ended."""
        if d.state == RUNNING:
            self._end(d, settlement)

    def _end(self, d: Delivery, settlement: Settlement) -> None:
        if d.state == RUNNING:
            if settlement.outcome == "released" and (self._draining or self._stopping):
                settlement = released(not settlement.not_started, True, settlement.reason)
            self._pace(d, settlement)
            self._running -= 1
        if d.run_timer is not None:
            d.run_timer.cancel()
        d.state, d.settlement = ENDED, settlement
        self._hand_in(d)

    def _pace(self, d: Delivery, settlement: Settlement) -> None:
        """Rests after work that could not begin. The server is told before the task goes back, so that it does not
        send it here again."""
        if not settlement.not_started:
            self._rests = 0
        elif not self._resting and not self._draining and not self._stopping:
            pause = min(FIRST_REST * 2 ** min(self._rests, 16), LONGEST_REST)
            log.warning("task %s could not be begun: %s; taking nothing for %g s", d.id, settlement.reason, pause)
            self._rests += 1
            self._resting = True
            self._state_window()
            self._later("rest", pause, self._rested)

    def _rested(self) -> None:
        self._resting = False
        self._state_window()

    def _hand_in(self, d: Delivery) -> None:
        if self._link is None or d.settlement is None:
            return
        d.asked = self._ask("outcome", d)
        self._out.append(f'{{"ref":{d.asked},"taskId":"{d.id}","leaseToken":"{d.token}",{d.settlement.frame}}}')

    def _hand_in_all(self) -> None:
        for d in self._deliveries.values():
            if d.state == ENDED and not d.asked:
                self._hand_in(d)

    def _lose(self, d: Delivery, reason: str, why: str) -> None:
        """Notes that a delivery is no longer this worker's. A handler that runs is told; its outcome is handed in all
        the same, because only an answer gives the place in the window back, and a completion may still count."""
        if d.lost or d.token not in self._deliveries:
            return
        d.lost = why
        if d.state == RUNNING and d.job is not None:
            self._owner.cancel(d.job, reason)
        elif d.state in (ARRIVED, READY):
            self._waiting.remove(d)
            if d.link == self._links and self._link is not None:
                self._end(d, released())
            else:
                self._forget(d)
                self._state_window()

    def _forget(self, d: Delivery) -> None:
        if d.run_timer is not None:
            d.run_timer.cancel()
        del self._deliveries[d.token]
        if d.link != self._links:
            self._carried -= 1

    def _report(self, job: Job, members: str) -> None:
        """Called from the threads of handlers."""
        self.post(self._send_report, job, members)

    def _send_report(self, job: Job, members: str) -> None:
        d = self._deliveries.get(job.token)
        if d is not None and d.state == RUNNING and not d.lost and self._link is not None and len(self._out) < REPORTS:
            self._out.append(f'{{"taskId":"{d.id}","leaseToken":"{d.token}",{members}}}')

    # Frames.

    def _ask(self, kind: str, about: Any = None) -> int:
        self._refs += 1
        self._questions[self._refs] = (kind, about)
        return self._refs

    def _subscribe(self) -> None:
        self._window_size = self._wanted_window()
        self._out.append(json.dumps({
            "type": "subscribe", "ref": self._ask("subscribe"), "commands": self._options.commands,
            "leaseSeconds": self._options.lease, "window": self._window_size,
        }))

    def _wanted_window(self) -> int:
        """Leaves out what an earlier session brought along: the server counts only what it sent over this one."""
        if self._draining or self._stopping or self._resting:
            return 0
        return max(0, self._options.window - self._carried)

    def _state_window(self) -> None:
        wanted = self._wanted_window()
        if self._link is not None and wanted != self._window_size:
            self._window_size = wanted
            self._window_unanswered += 1
            self._out.append(f'{{"type":"window","ref":{self._ask("window")},"size":{wanted}}}')

    def _beat(self) -> None:
        """Renews the leases of all that is in hand, by token."""
        self._later("beat", self._lease_third, self._beat)
        if self._link is None:
            return
        named = [d for d in self._deliveries.values() if not d.lost and not d.asked]
        for at in range(0, len(named), HEARTBEAT_TASKS):
            part = named[at : at + HEARTBEAT_TASKS]
            tasks = ",".join(f'{{"taskId":"{d.id}","leaseToken":"{d.token}"}}' for d in part)
            self._out.append(
                f'{{"type":"heartbeat","ref":{self._ask("heartbeat", part)},"extendSeconds":{self._options.lease},"tasks":[{tasks}]}}'
            )

    def _receive_all(self, frames: list[dict[str, Any]]) -> None:
        try:
            for frame in frames:
                self._receive(frame)
        except (KeyError, TypeError, ValueError) as problem:
            raise Error(f"a frame of the server was not understood: {problem!r}", code="not_codeq", fate=BROKEN) from problem

    def _receive(self, frame: dict[str, Any]) -> None:
        kind = frame.get("type")
        if kind == "task":
            self._arrive(frame)
        elif kind == "ok":
            self._answered(frame)
        elif kind == "error":
            self._refused(frame)
        elif kind == "revoked":
            d = self._deliveries.get(frame["leaseToken"])
            if d is not None:
                reason = frame.get("reason", "")
                self._lose(d, "timeout" if reason == "timeout" else "lease_lost", reason)
        elif kind == "draining":
            self._goodbye = True
            log.warning("the server sends no more tasks: %s", frame.get("reason"))

    def _answered(self, frame: dict[str, Any]) -> None:
        kind, about = self._questions.pop(frame.get("ref", 0), ("", None))
        if kind == "outcome":
            self._refusals = 0
            self._taken(about, None, frame)
        elif kind == "heartbeat":
            self._beaten(about, frame.get("lost", []))
        elif kind == "window":
            self._window_unanswered -= 1

    def _beaten(self, named: list[Delivery], lost: list[dict[str, str]]) -> None:
        """What the answer to a heartbeat does not call lost is this worker's, also what came over an earlier link."""
        for ref in lost:
            d = self._deliveries.get(ref["leaseToken"])
            if d is not None:
                self._lose(d, "lease_lost", "the server does not count it as this worker's any more")
        for d in named:
            if d.state == ARRIVED and d.doubtful and not d.lost:
                d.state, d.doubtful = READY, False

    def _taken(self, d: Delivery, refusal: Error | None, frame: dict[str, Any]) -> None:
        """Ends a delivery with the server's answer for its outcome."""
        if d.token not in self._deliveries:
            return
        self._forget(d)
        if d.job is not None and d.settlement is not None:
            if refusal is not None and d.lost:
                refusal = Error(f"the delivery was lost: {d.lost}", code="lease_lost")
            self._owner.settled(Settled(
                d.job, d.settlement.outcome, refusal, float(frame.get("delaySeconds") or 0), frame.get("status") in ("dlq", "expired")
            ))
        self._state_window()

    def _refused(self, frame: dict[str, Any]) -> None:
        kind, about = self._questions.pop(frame.get("ref", 0), ("", None))
        refusal = from_answer(frame)
        again = bool(refusal.fate & FRAME)
        if kind == "outcome":
            self._outcome_refused(about, refusal, again)
        elif kind == "heartbeat" and again:
            self._later("beat", min(backoff(0), self._lease_third / 2), self._beat)
        elif kind == "heartbeat":
            log.warning("a heartbeat was refused: %s", refusal.message)
        elif kind == "subscribe" and again:
            self._unheard = True
            self._put_off(refusal)
        elif kind == "subscribe":
            self.error = refusal
            self.stop()
        elif kind == "window":
            self._window_unanswered -= 1
            self._window_size = -1  # the server knows another one; the next change states it again

    def _outcome_refused(self, d: Delivery, refusal: Error, again: bool) -> None:
        """Hands an outcome in again, or another one in its place, or takes the answer for final."""
        d.asked = 0
        if again:
            return self._put_off(refusal)
        other = None if d.lost or d.settlement is None else d.settlement.instead_of(refusal)
        if other is None:
            return self._taken(d, refusal, {})
        d.settlement = other
        self._hand_in(d)

    def _put_off(self, refusal: Error) -> None:
        """Pauses before what was refused for now is sent again. Refusals during a pause count once."""
        if self._paused:
            return
        self._paused = True
        self._later("pause", backoff(self._refusals, refusal), self._ask_again)
        self._refusals += 1
        if self._refusals == 4:
            log.warning("the server puts this worker off: %s", refusal.message)

    def _ask_again(self) -> None:
        self._paused = False
        if self._link is None:
            return
        self._hand_in_all()
        if self._unheard:
            self._unheard = False
            self._subscribe()
