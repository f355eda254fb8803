"""The Python SDK of codeq, a durable task queue: it posts tasks, waits for results, and works on tasks.

Nothing but the standard library is needed. Payloads and results are JSON, never pickles.
"""

from .client import Client, NewTask, Query, Task
from .engine import Settled
from .errors import CannotStart, Cancelled, Closed, Error, Fail, Release, Retry, TaskFailed, Timeout
from .http1 import Token
from .job import Job, current
from .watch import FIGURES, News, Watch
from .worker import Worker, handler

__version__ = "0.1.0"

__all__ = [
    "FIGURES", "CannotStart", "Cancelled", "Client", "Closed", "Error", "Fail", "Job", "NewTask", "News", "Query",
    "Release", "Retry", "Settled", "Task", "TaskFailed", "Timeout", "Token", "Watch", "Worker", "current", "handler",
]
