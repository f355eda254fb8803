"""python -m codeq work: a worker from the command line."""

from __future__ import annotations

import argparse
import importlib
import inspect
import logging
import os
import sys
from typing import Any

from .errors import Error
from .worker import Worker


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codeq", description="A worker for the codeq task queue.")
    work = parser.add_subparsers(dest="do", required=True).add_parser(
        "work", help="run handlers for tasks",
        description="Runs handlers for tasks. TERM or Ctrl-C waits for them and ends; a second one stops them.",
    )
    work.add_argument(
        "target", nargs="+",
        help="module:function, or command=module:function, or a module for all functions that @codeq.handler names",
    )
    work.add_argument("--url", help="the server, or several with commas; else that of CODEQ_URL, else http://127.0.0.1:8080")
    work.add_argument("--token", help="the token; else that of CODEQ_TOKEN")
    work.add_argument("--window", type=int, default=8, metavar="N", help="the most tasks at a time; %(default)s")
    work.add_argument("--lease", type=int, default=30, metavar="SECONDS", help="until a task of a dead worker is tried again; %(default)s")
    work.add_argument("--grace", type=float, default=20, metavar="SECONDS", help="for handlers after the first signal; %(default)s")
    work.add_argument("--name", help="a name for people")
    work.add_argument("--verbose", action="store_true", help="say more")
    given = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if given.verbose else logging.INFO, stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    sys.path.insert(0, os.getcwd())
    try:
        worker = Worker(given.url, token=given.token, window=given.window, lease=given.lease, grace=given.grace, name=given.name)
        for target in given.target:
            _add(worker, target)
    except (_Wrong, ValueError) as problem:
        print(f"codeq: {problem}", file=sys.stderr)
        return 64
    try:
        worker.main()
    except Error as problem:
        print(f"codeq: {problem.message} ({problem.code})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


class _Wrong(Exception):
    """A target cannot be used."""


def _add(worker: Worker, target: str) -> None:
    command, _, place = target.rpartition("=")
    module_name, _, name = place.partition(":")
    module = _imported(module_name)
    if not name:
        found = [f for _, f in inspect.getmembers(module, callable) if hasattr(f, "__codeq_command__") and f.__module__ == module.__name__]
        if not found:
            raise _Wrong(f"{module_name} has no function with @codeq.handler; name one: {module_name}:FUNCTION")
        return worker.add(*found)
    function: Any = module
    for part in name.split("."):
        if not hasattr(function, part):
            known = ", ".join(sorted(n for n, f in vars(module).items() if callable(f) and not n.startswith("_"))) or "none"
            raise _Wrong(f"{module_name} has no function {name}; it has: {known}")
        function = getattr(function, part)
    if not callable(function):
        raise _Wrong(f"{place} is no function, it is {type(function).__name__}")
    worker.add(function, command=command or None)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and (name == problem.name or name.startswith(problem.name + ".")):
            raise _Wrong(f"there is no module {name} here or in the path of Python") from problem
        raise _Wrong(f"{name} cannot be imported: {problem}") from problem
    except Exception as problem:
        raise _Wrong(f"{name} cannot be imported: {type(problem).__name__}: {problem}") from problem


if __name__ == "__main__":
    sys.exit(main())
