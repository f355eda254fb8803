"""For the tests of programs that use codeq: the real server, in memory, with a clock that stands still until it is moved.

With pytest the fixture ``codeq_server`` is a :class:`TestServer` of one test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any


class TestServer:
    """Starts ``codeq test-server`` and ends it: ``with TestServer() as server: …``. The program is that of the
    variable CODEQ_TEST_PROGRAM, else ``codeq`` in the PATH. Leases, delays, backoff and retention follow its clock."""

    __test__ = False  # it is no test, whatever its name says to pytest

    def __init__(self, *arguments: str, program: str | None = None) -> None:
        self._command = [program or os.environ.get("CODEQ_TEST_PROGRAM") or "codeq", "test-server", "--until-eof", *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> TestServer:
        if shutil.which(self._command[0]) is None:
            raise FileNotFoundError(f"there is no program {self._command[0]}: put codeq into the PATH, or its path into CODEQ_TEST_PROGRAM")
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = _open(self._process.stdout).readline()
        if not line:
            self.__exit__()
            raise RuntimeError(f"{self._command[0]} test-server did not start; it says why on standard error")
        self.url = json.loads(line)["url"]
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            _open(self._process.stdin).close()  # its end
            self._process.wait(60)
            _open(self._process.stdout).close()
            self._process = None

    def advance(self, ms: int) -> datetime:
        """Move the clock by so many milliseconds. It returns the time of the server when all that became due is done
        and on disk."""
        request = urllib.request.Request(self.url + "/advance", json.dumps({"ms": ms}).encode(), {"Content-Type": "application/json"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=60) as answer:
            return datetime.fromisoformat(json.load(answer)["now"].replace("Z", "+00:00"))


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


try:
    import pytest
except ImportError:  # unittest is enough
    pass
else:

    @pytest.fixture
    def codeq_server() -> Iterator[Any]:
        """A TestServer for one test."""
        with TestServer() as server:
            yield server
