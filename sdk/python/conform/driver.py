"""The driver of `codeq conform -- python3 sdk/python/conform/driver.py`: commands of the kit on standard input, one JSON
object a line, and what the SDK says about them on standard output. docs/sdk-guide.md has the lines."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import pathlib
import sys
import threading
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "src"))
import codeq  # noqa: E402

Line = dict[str, Any]
CAN = ["progress", "output", "batch", "cancel", "watch", "notstarted", "signals", "nodes", "tokens", "artifacts"]


def say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Driver:
    def __init__(self) -> None:
        self.clients: dict[tuple[str, str], codeq.Client] = {}
        self.worker: codeq.Worker | None = None
        self.work_line: Line | None = None
        self.deliveries: dict[int, tuple[codeq.Job, asyncio.Queue[Line]]] = {}
        self.numbers: dict[codeq.Job, int] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.watches: dict[int, asyncio.Task[None]] = {}
        self.tokens: dict[str, str] = {}  # what a token has become

    def take(self, line: Line) -> None:
        do = line["do"]
        if do == "exit":
            os._exit(0)
        if do == "worker":
            self.spawn(self.work(line))
        elif do in ("drain", "stop") and self.worker is not None:
            getattr(self.worker, do)()
        elif do == "unwatch":
            self.watches.pop(line["id"]).cancel()
        elif do == "watch":
            self.watches[line["id"]] = self.spawn(self.watch(line))
        elif do == "token":
            self.tokens[line["token"]] = line["becomes"]
            say(event="token", id=line["id"])
        elif do in ("enqueue", "batch", "result", "task", "cancel", "download"):
            self.spawn(self.produce(line))
        elif "delivery" in line:
            job, answers = self.deliveries[line["delivery"]]
            if do == "progress":
                job.progress(line.get("percent"), line.get("note") or "")
            elif do == "output":
                job.output(line["text"], line.get("stream") or "stdout")
            elif do == "upload":
                self.spawn(self.upload(job, line))
            else:
                answers.put_nowait(line)

    def spawn(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def token(self, line: Line) -> codeq.Token:
        first = line.get("token") or ""
        return lambda: self.tokens.get(first, first)

    # The worker.

    async def work(self, line: Line) -> None:
        self.work_line = line
        worker = self.worker = codeq.Worker(
            line["url"], token=self.token(line), window=line.get("window") or 1, lease=line.get("leaseSeconds") or 30,
            grace=line.get("graceSeconds", 20), name=line.get("name") or "",
            connected=lambda welcome: say(event="connected", session=welcome["sessionId"]),
            disconnected=lambda problem: say(event="disconnected", message=problem.message),
            settled=self.settled,
        )
        for command in line["commands"]:
            worker.add(self.handler(command), command=command)
        try:
            with worker.signals() if line.get("signals") else contextlib.nullcontext():
                await worker.run()
        except codeq.Error as problem:
            say(event="stopped", code=problem.code, message=problem.message)
        else:
            say(event="stopped")

    def handler(self, command: str) -> Any:
        async def handle(_: Any) -> Any:
            job = codeq.current()
            number = len(self.deliveries) + 1
            answers: asyncio.Queue[Line] = asyncio.Queue()
            self.deliveries[number], self.numbers[job] = (job, answers), number
            say(event="delivery", delivery=number, handler=command, task=job.id, command=job.command, payload=job.payload,
                attempts=job.attempts, maxAttempts=job.max_attempts, number=job.delivery, traceParent=job.trace_parent,
                traceState=job.trace_state, runMs=int((job.timeout or 0) * 1000))
            while True:
                try:
                    return self.end(await answers.get())
                except asyncio.CancelledError:
                    say(event="cancelled", delivery=number, cause=job.reason)
                    if job.reason == "stopping":
                        raise codeq.Release from None

        return handle

    async def upload(self, job: codeq.Job, line: Line) -> None:
        assert self.work_line is not None
        artifact = await self.client(self.work_line).upload(job, line["name"], line["text"].encode())
        say(event="uploaded", delivery=line["delivery"], name=artifact["name"], sizeBytes=artifact["sizeBytes"])

    def end(self, line: Line) -> Any:
        do, reason = line["do"], line.get("reason") or ""
        if do == "complete":
            return line["result"]
        if do == "nack" and line.get("delaySeconds") is not None:
            raise codeq.Retry(line["delaySeconds"], reason)
        if do == "fail":
            raise codeq.Fail(reason)
        if do == "release":
            raise codeq.Release
        if do == "notstarted":
            raise codeq.CannotStart(reason)
        raise RuntimeError(reason)

    def settled(self, end: codeq.Settled) -> None:
        told = {"code": end.error.code, "message": end.error.message} if end.error else {}
        say(event="settled", delivery=self.numbers[end.job], outcome=end.outcome, ok=end.error is None, **told)

    # The producer.

    def client(self, line: Line) -> codeq.Client:
        key = (line["url"], line.get("token") or "")
        if key not in self.clients:
            self.clients[key] = codeq.Client(key[0], token=self.token(line))
        return self.clients[key]

    async def produce(self, line: Line) -> None:
        wait = line.get("waitSeconds") or 30
        try:
            say(id=line["id"], **await asyncio.wait_for(getattr(self, line["do"])(self.client(line), line, wait), wait + 1))
        except codeq.Error as problem:
            say(event="error", id=line["id"], code=problem.code, message=problem.message, retryable=problem.retryable,
                retryAfterSeconds=problem.retry_after, status=problem.status, task=problem.task_id)
        except asyncio.TimeoutError:
            say(event="error", id=line["id"], code="timeout", message="the time of the call is over")

    async def enqueue(self, client: codeq.Client, line: Line, wait: float) -> Line:
        client.timeout = wait
        new = new_task(line)
        task = await client.enqueue(new.command, new.payload, **{
            name: value for name, value in vars(new).items() if name not in ("command", "payload") and value is not None
        })
        return {"event": "enqueued", "task": task.id, "replayed": task.replayed}

    async def batch(self, client: codeq.Client, line: Line, wait: float) -> Line:
        client.timeout = wait
        answers = await client.enqueue_many([new_task(task) for task in line["tasks"]])
        return {"event": "batch", "results": [
            {"code": one.code, "message": one.message} if isinstance(one, codeq.Error) else {"task": one.id, "replayed": one.replayed}
            for one in answers
        ]}

    async def result(self, client: codeq.Client, line: Line, wait: float) -> Line:
        record = await client.record(line["task"], wait)
        return {"event": "result", "status": record["status"], "result": record.get("result"), "reason": record.get("error")}

    async def task(self, client: codeq.Client, line: Line, wait: float) -> Line:
        task = await client.task(line["task"])
        return {"event": "task", "status": task.status, "attempts": task.attempts}

    async def cancel(self, client: codeq.Client, line: Line, wait: float) -> Line:
        return {"event": "cancelled_task", "status": (await client.cancel(line["task"])).status}

    async def download(self, client: codeq.Client, line: Line, wait: float) -> Line:
        into = io.BytesIO()
        await client.download(line["task"], line["name"], into)
        return {"event": "downloaded", "text": into.getvalue().decode()}

    async def watch(self, line: Line) -> None:
        try:
            async with self.client(line).watch("queues", commands=[line["queue"]]) as news:
                async for one in news:
                    say(event="news", id=line["id"], kind=one.kind)
        except codeq.Error as problem:
            say(event="error", id=line["id"], code=problem.code, message=problem.message)


def new_task(line: Line) -> codeq.NewTask:
    def given(name: str) -> Any:
        return line.get(name) or None

    return codeq.NewTask(
        line["command"], line.get("payload"), priority=given("priority"), delay=given("delaySeconds"),
        max_attempts=given("maxAttempts"), timeout=given("timeoutSeconds"), ttl=given("ttlSeconds"), labels=given("labels"),
        idempotency_key=given("key"), concurrency_key=given("concurrencyKey"), trace_parent=given("traceParent"),
        trace_state=given("traceState"),
    )


async def main() -> None:
    driver, loop = Driver(), asyncio.get_running_loop()

    def read() -> None:
        for text in sys.stdin.buffer:
            loop.call_soon_threadsafe(driver.take, json.loads(text))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    say(event="ready", sdk="python", version=codeq.__version__, can=CAN)
    await asyncio.Event().wait()


asyncio.run(main())
