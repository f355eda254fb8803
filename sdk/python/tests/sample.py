"""Handlers for the tests of the command line."""

import asyncio
import os
import time

import codeq

NUMBER = 1


@codeq.handler("sample.square")
def square(n: int) -> dict[str, int]:
    return {"square": n * n}


@codeq.handler("sample.slow")
async def slow(seconds: float) -> dict[str, float]:
    codeq.current().progress(1)
    await asyncio.sleep(seconds)
    return {"slept": seconds}


@codeq.handler("sample.block")
async def block(file: str) -> None:
    codeq.current().progress(1)
    while os.path.exists(file):
        time.sleep(0.02)  # holds up the event loop


def add(numbers: list[int]) -> dict[str, int]:
    return {"sum": sum(numbers)}
