"""Measures one worker process and one producer process of each SDK, in turn, each pair with a server of its own:
python3 sdk/bench/bench.py [TASKS=50000] [WINDOW=256] [ROUNDS=3]. Needs `make build`, Go, and sdk/typescript built. Up to
WINDOW posts wait for their answers at a time, and the worker has up to WINDOW tasks; a handler returns a part of its
payload. The producer of Go posts over a session, that of TypeScript in requests that its calls share, that of Python in
requests of their own."""

from __future__ import annotations

import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "sdk" / "python" / part) for part in ("src", "tests")]
import codeq  # noqa: E402


async def produce(tasks: int, window: int) -> None:
    print("began", flush=True)
    numbers = iter(range(1, tasks + 1))
    async with codeq.Client() as queue:

        async def post() -> None:
            for n in numbers:
                await queue.enqueue("bench", {"n": n, "text": "x" * 80})

        await asyncio.gather(*(post() for _ in range(window)))
    print("posted", flush=True)


def work(tasks: int, window: int, threads: bool) -> None:
    left = tasks

    def settled(end: codeq.Settled) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            print("done", flush=True)
            worker.drain()

    async def coroutine(payload: dict[str, object]) -> dict[str, object]:
        return {"n": payload["n"]}

    def function(payload: dict[str, object]) -> dict[str, object]:
        return {"n": payload["n"]}

    worker = codeq.Worker(window=window, settled=settled)
    worker.add(function if threads else coroutine, command="bench")
    worker.main()


def measure(peer: list[str], tasks: int, window: int) -> tuple[float, float]:
    """Tasks a second from the first post to the last outcome, and posts a second."""
    import codeq.sync
    from support import Server

    with Server() as server, codeq.sync.Client(server.url) as queue:
        environment = {**os.environ, "CODEQ_URL": server.url}

        def start(role: str) -> subprocess.Popen[str]:
            return subprocess.Popen([*peer, role, "bench", str(tasks), str(window)], env=environment, stdout=subprocess.PIPE, text=True)

        def line(process: subprocess.Popen[str], want: str) -> None:
            assert process.stdout is not None
            while (said := process.stdout.readline().strip()) != want:
                assert said, f"{peer} ended before {want}"

        worker = start("worker")
        while not next((one for one in queue.watch("workers")), None).data["sessions"]:  # type: ignore[union-attr]
            time.sleep(0.05)
        producer = start("producer")
        line(producer, "began")
        began = time.monotonic()
        line(producer, "posted")
        posted = time.monotonic() - began
        line(worker, "done")
        took = time.monotonic() - began
        for process in (worker, producer):
            process.communicate()
        return tasks / took, tasks / posted


def main(tasks: int = 50_000, window: int = 256, rounds: int = 3) -> None:
    go, source = ROOT / "bin" / "gopeer", ROOT / "bin" / "gopeer.go"  # where git does not look
    source.write_text((ROOT / "sdk" / "bench" / "gopeer.go.txt").read_text())
    subprocess.run(["go", "build", "-o", go, source], cwd=ROOT, check=True)
    me = [sys.executable, __file__]
    peers = {"go": [str(go)], "typescript": ["node", str(ROOT / "sdk" / "typescript" / "bench" / "peer.mjs")], "python": me, "python's threads": [*me, "threads"]}
    for number in range(1, rounds + 1):
        base = 0.0
        for name, peer in peers.items():
            all_, posts = measure(peer, tasks, window)
            base = base or all_
            print(f"round {number}: {name} {all_:.0f} tasks/s (posted at {posts:.0f}/s), {all_ / base:.2f} of go", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    threads = arguments[:1] == ["threads"]
    if threads:
        arguments.pop(0)
    if arguments[:1] == ["producer"]:
        asyncio.run(produce(int(arguments[2]), int(arguments[3])))
    elif arguments[:1] == ["worker"]:
        work(int(arguments[2]), int(arguments[3]), threads)
    else:
        main(*map(int, arguments))
