"""The client of test/websocket: connects so many times, one after another, and sends each message back."""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "src"))
from codeq.errors import Closed  # noqa: E402
from codeq.http1 import Transport  # noqa: E402


async def echo(url: str) -> None:
    socket = await Transport(url, "", "", None).upgrade("/session", "codeq.v1")
    try:
        while True:
            socket.send(await socket.receive())
            await socket.drain()
    except Closed:
        await socket.close()


async def main(url: str, times: int) -> None:
    asyncio.get_running_loop().slow_callback_duration = 10  # 4 MiB take a while
    for _ in range(times):
        await echo(url)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
