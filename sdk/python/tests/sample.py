"""Handlers for the tests of the command line."""

import asyncio

import codeq

NUMBER = 1


@codeq.handler("sample.square")
def square(n: int) -> dict[str, int]:
    return {"square": n * n}


@codeq.handler("sample.slow")
async def slow(seconds: float) -> dict[str, float]:
    await asyncio.sleep(seconds)
    return {"slept": seconds}


def add(numbers: list[int]) -> dict[str, int]:
    return {"sum": sum(numbers)}
