"""Each block of the README is run; the package is built, looked at, and used from where it was unpacked."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
import zipfile
from collections.abc import Iterator
from typing import Any

import support
from support import Server, codeq

import codeq.sync

README = (support.SDK / "README.md").read_text()
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", README, re.S))
NEEDED = os.environ.get("CODEQ_TEST_PYTHON") == "required"  # in CI nothing is skipped


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def needs(*modules: str) -> Any:
    missing = [m for m in modules if not has(m)]
    return unittest.skipIf(missing and not NEEDED, f"needs {', '.join(missing)}")


class Blocks(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in FILES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self.server = Server()
        self.server.start()
        self.addCleanup(self.server.__exit__)
        self.environment = {**support.ENVIRONMENT, "CODEQ_URL": self.server.url}
        self.queue = codeq.sync.Client(self.server.url)
        self.addCleanup(self.queue.close)

    def run_file(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-B", "-X", "dev", *arguments], env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        self.assertEqual((done.returncode, support.warnings_in(done.stderr)), (0, ""))
        return done.stdout

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-B", *arguments], env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, said)
        finally:
            process.kill()
            process.communicate()

    def test_every_block_is_run_here(self) -> None:
        self.assertEqual(len(FILES), README.count("```python"))
        self.assertEqual(sorted(FILES), sorted([
            "tasks.py", "producer.py", "threads.py", "many.py", "worker.py", "report.py", "news.py", "shop/orders.py",
            "shop/management/commands/codeq_work.py", "app.py", "test_reminder.py",
        ]))
        # Those of the shell are in words: make build, codeq serve, venv, pip install, codeq work.
        self.assertEqual(README.count("```text"), 3)

    def test_five_minutes(self) -> None:
        with self.running("-m", "codeq", "work", "tasks", "--window", "8"):
            said = self.run_file("producer.py")
            self.assertRegex(said, r"^[0-9a-f-]{36} \{'sha256': '[0-9a-f]{64}'\}\n$")
            self.assertRegex(self.run_file("threads.py"), r"^[0-9a-f]{64}\n$")
            self.assertIn("event", self.run_file("news.py"))
            self.assertIn("CANCELLED", self.run_file("many.py"))
        self.assertEqual(self.run_file("report.py"), "{'bytes': 10}\nb'year\\n2026\\n'\n")

    def test_worker(self) -> None:
        with self.running("worker.py"):
            self.assertEqual(self.queue.result(self.queue.enqueue("square", 4), 120), {"square": 16})
            self.assertEqual(self.queue.result(self.queue.enqueue("crunch", 5), 120), {"rounds": 5})
            with self.assertRaisesRegex(codeq.TaskFailed, "must not be negative"):
                self.queue.result(self.queue.enqueue("square", -1), 120)

    @needs("django")
    def test_django(self) -> None:
        for name, text in {
            "shop/__init__.py": "", "shop/management/__init__.py": "", "shop/management/commands/__init__.py": "",
            "shop/models.py": "from django.db import models\n\n\nclass Order(models.Model):\n"
            "    item = models.CharField(max_length=20)\n    sent = models.BooleanField(default=False)\n",
            "settings.py": "INSTALLED_APPS = ['shop']\nSECRET_KEY = 'x'\nDEFAULT_AUTO_FIELD = 'django.db.models.AutoField'\nUSE_TZ = True\n"
            f"DATABASES = {{'default': {{'ENGINE': 'django.db.backends.sqlite3', 'NAME': {str(self.folder / 'db')!r}}}}}\n",
            "place.py": "import django\ndjango.setup()\nfrom django.db import transaction\nfrom shop import orders\n"
            "try:\n    with transaction.atomic():\n        orders.place('none')\n        raise KeyError\nexcept KeyError:\n    pass\n"
            "print(orders.place('lamp').pk)\n",
        }.items():
            (self.folder / name).write_text(text)
        self.environment["DJANGO_SETTINGS_MODULE"] = "settings"
        subprocess.run(
            [sys.executable, "-B", "-m", "django", "migrate", "--run-syncdb", "-v", "0"], env=self.environment, cwd=self.folder, check=True, timeout=120
        )
        subprocess.run([sys.executable, "-B", "place.py"], env=self.environment, cwd=self.folder, check=True, timeout=120, stdout=subprocess.DEVNULL)
        waiting = list(self.queue.list("receipt", "ready"))
        self.assertEqual(len(waiting), 1)  # the order that was rolled back has none
        with self.running("-m", "django", "codeq_work", "--window", "2"):
            self.assertEqual(self.queue.result(waiting[0], 120), {"item": "lamp"})

    @needs("fastapi", "uvicorn")
    def test_fastapi(self) -> None:
        # FastAPI has the parameter lifespan since 0.93; before that the router has it.
        (self.folder / "run.py").write_text(
            "import sys\nimport uvicorn\nfrom app import app, lifespan\napp.router.lifespan_context = lifespan\n"
            "uvicorn.run(app, port=int(sys.argv[1]), log_level='warning')\n"
        )
        port = support.free_port()
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with self.running("run.py", str(port)):
            until = time.monotonic() + 120
            while True:
                try:
                    with direct.open(urllib.request.Request(f"http://127.0.0.1:{port}/greetings/ada", method="POST"), timeout=10) as answer:
                        task = json.load(answer)["task"]
                    break
                except OSError:
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.05)
            with direct.open(f"http://127.0.0.1:{port}/greetings/{task}", timeout=120) as answer:
                self.assertEqual(json.load(answer), {"text": "hello ada"})


class Package(unittest.TestCase):
    @needs("setuptools", "wheel")
    def test_the_wheel(self) -> None:
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            for name in ("src", "pyproject.toml", "README.md"):
                subprocess.run(["cp", "-r", support.SDK / name, folder], check=True)
            built = subprocess.run(
                [sys.executable, "-B", "-c", "import setuptools.build_meta as b; print(b.build_wheel('.'))"], cwd=folder, capture_output=True, text=True
            )
            self.assertEqual(built.returncode, 0, built.stderr)
            wheel = folder / "codeq-0.1.0-py3-none-any.whl"
            with zipfile.ZipFile(wheel) as archive:
                names = {n for n in archive.namelist() if ".dist-info/" not in n}
                archive.extractall(folder / "site")
            self.assertEqual(names, {f"codeq/{f.name}" for f in (support.SDK / "src" / "codeq").iterdir() if f.is_file()})
            self.assertIn("codeq/py.typed", names)
            installed = {**support.ENVIRONMENT, "PYTHONPATH": str(folder / "site")}
            said = subprocess.run(
                [sys.executable, "-B", "-m", "codeq", "--help"], env=installed, cwd=folder / "site", capture_output=True, text=True, check=True
            )
            self.assertIn("usage: python -m codeq", said.stdout)
            if NEEDED or has("pytest"):
                (folder / "test_reminder.py").write_text(FILES["test_reminder.py"])
                tested = subprocess.run(
                    [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_reminder.py"], env=installed, cwd=folder,
                    capture_output=True, text=True, timeout=120,
                )
                self.assertIn("1 passed", tested.stdout, tested.stdout + tested.stderr)

    @needs("mypy")
    def test_types(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            use = pathlib.Path(folder) / "use.py"
            use.write_text(
                "import codeq\n\n\nasync def post(queue: codeq.Client) -> str:\n"
                '    await queue.enqueue("a", {"b": 1}, priority="high")\n'  # line 5
                '    return (await queue.enqueue(square, 1, priority=3, labels={"a": "b"})).id\n\n\n'
                '@codeq.handler("square")\ndef square(n: int) -> dict[str, int]:\n    return {"square": n * n}\n\n\n'
                'square("a")\n'  # line 14
            )
            done = subprocess.run(
                [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "src", str(use)], cwd=support.SDK, capture_output=True, text=True, timeout=120
            )
        wrong = re.findall(r"use.py:(\d+): error: (.*)", done.stdout)
        self.assertEqual([line for line, _ in wrong], ["5", "14"], done.stdout)
        self.assertIn("Found 2 errors in 1 file", done.stdout)

    def test_nothing_but_the_standard_library(self) -> None:
        imported = set()
        for file in (support.SDK / "src" / "codeq").glob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    imported |= {name.name.partition(".")[0] for name in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    imported.add(str(node.module).partition(".")[0])
        self.assertLessEqual(imported - {"pytest"}, set(sys.stdlib_module_names))  # pytest only where it is there
