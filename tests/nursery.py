"""A process that has imported the app, and forks a `bursard` whenever a test needs one.

Imports take nearly all of a server's start, and the tests start hundreds. A forked server is as
real as any other. It is a process in its own session, with its own environment, that runs the same
`main`. Tests kill, stop and await it by its process id. Decisions that a process makes while it
imports are made again (`_be_another`). test_nursery.py searches for forgotten ones.
"""

import atexit
import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

POLL_SECONDS = 0.01
_MAIN = "from tests.nursery import main; main()"


class Process(Protocol):
    """The part of a process that tests need; a `subprocess.Popen` has it too."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...


class Nursery:
    """The forking process, as seen by the tests. It ends when they do."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, str(theirs.fileno())],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the tests
            )
        self._stream = ours.makefile("rwb")
        ours.close()
        self._lock = Lock()  # tests start servers in threads
        atexit.register(self.close)

    def start(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
        """Fork a `bursard`, which writes to `log`."""
        pid = self.send(words=list(words), environment=dict(environment), log=str(log))
        return _Forked(self, pid)

    def send(self, **order: Any) -> Any:
        with self._lock:
            self._stream.write(json.dumps(order).encode() + b"\n")
            self._stream.flush()
            line = self._stream.readline()
        if not line:
            raise RuntimeError("the process that forks servers has ended")
        return json.loads(line)

    def close(self) -> None:
        atexit.unregister(self.close)
        self._stream.close()
        self._process.wait()


class _Forked:
    """A child of the nursery, which alone can read its exit status."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self._nursery = nursery
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._nursery.send(ended=self.pid)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            code = self.poll()
            if code is not None:
                return code
            if timeout is not None and deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(["bursard"], timeout)
            time.sleep(POLL_SECONDS)

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:  # until then no other process has its id
            os.kill(self.pid, sig)


def main() -> None:
    """Run in the forking process; a child returns from `_serve_orders` and becomes a `bursard`."""
    import alembic.command  # noqa: F401  # what a server loads in its first second
    import uvicorn.lifespan.on
    import uvicorn.loops.uvloop
    import uvicorn.protocols.http.httptools_impl
    import uvicorn.supervisors  # noqa: F401

    import app.engines.files.duckdb
    import app.main  # noqa: F401
    from app.cli import main as bursard

    if _serve_orders(socket.socket(fileno=int(sys.argv[1]))):
        bursard()


def _serve_orders(ours: socket.socket) -> bool:
    """True in a child; False when the tests have ended."""
    children = Children()
    with ours, ours.makefile("rwb") as stream:
        for line in stream:
            order = json.loads(line)
            reply = children.fork() if "words" in order else children.ended(order["ended"])
            if reply == 0 and "words" in order:
                break
            stream.write(json.dumps(reply).encode() + b"\n")
            stream.flush()
        else:
            return False
    _be_another(order)
    return True


class Children:
    """The forked processes and their exit status."""

    def __init__(self) -> None:
        self._ended: dict[int, int] = {}

    def fork(self) -> int:
        threads = len(os.listdir("/proc/self/task"))
        assert threads == 1, "a fork would leave behind locks that other threads hold"
        pid = os.fork()
        self._ended.pop(pid, None)  # an earlier process may have had the same id
        return pid

    def ended(self, pid: int) -> int | None:
        """The exit code, or minus the signal; None while it runs. It may be read repeatedly."""
        if pid not in self._ended:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found == 0:
                return None
            self._ended[pid] = os.waitstatus_to_exitcode(status)
        return self._ended[pid]


def _be_another(order: dict[str, Any]) -> None:
    """In the child: take the state of a program that was started by itself."""
    import app.api.queries
    import app.engines.files.connect
    import app.fault_points
    import app.names

    os.setsid()
    for number, place in ((0, os.devnull), (1, order["log"])):
        opened = os.open(place, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, number)
        os.close(opened)
    os.dup2(1, 2)
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.argv = ["-c", *order["words"]]
    # Decisions made on import
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    armed, _, action = os.environ.get("BURSAR_FAULT", "").partition("=")
    app.fault_points.ARMED, app.fault_points.ACTION = armed, action
    vars(app.api.queries)["ARMED"] = armed  # which has a copy
    app.names._PROCESS = secrets.token_bytes(5)
    app.names._COUNTER = itertools.count(secrets.randbits(30))
    app.engines.files.connect._PROCESS = f"{os.getpid()}-{secrets.token_hex(4)}"
