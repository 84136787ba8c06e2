"""A terminal for a command, and what the operator types."""

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.bursard import BURSARD, CHECKOUT, Ledger, environment_with, wait_until


class Terminal:
    """The command on its own terminal, controlled line by line."""

    def __init__(self, ledger: Ledger, *words: str) -> None:
        ours, theirs = pty.openpty()
        self.output, self._ours, self._seen = "", ours, 0
        self.process = subprocess.Popen(
            [*BURSARD, *words],
            cwd=CHECKOUT,
            env=environment_with(ledger.environment()) | {"TERM": "dumb", "COLUMNS": "200"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # A shell lets background processes ignore Ctrl-C, and children inherit this.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)

    def wait_for(self, words: str, seconds: float = 30) -> None:
        """Output after the last match; several prompts may come in one read."""
        deadline = time.monotonic() + seconds
        while words not in self.output[self._seen :]:
            ready, _, _ = select.select([self._ours], [], [], 0.1)
            if ready:
                try:
                    read = os.read(self._ours, 4096)
                except OSError:  # a terminal ends like this on Linux
                    read = b""
                if not read:
                    break
                self.output += read.decode(errors="replace")
            elif time.monotonic() > deadline:
                break
        if words not in self.output[self._seen :]:
            self.process.kill()
            self.process.wait()
            pytest.fail(f"{words!r} did not come:\n{self.output[-1500:]}")
        self._seen = self.output.index(words, self._seen) + len(words)

    def interrupt(self) -> None:
        """Send Ctrl-C while it waits for a line: Python ignores it in the instant before."""
        wait_until(self._is_reading, 60, "the command does not read")
        self.process.send_signal(signal.SIGINT)

    def _is_reading(self) -> bool:
        calls = Path(f"/proc/{self.process.pid}/syscall").read_text().split()
        return calls[:2] in (["0", "0x0"], ["63", "0x0"])  # `read` of file 0, by either number

    def say(self, line: str) -> None:
        os.write(self._ours, line.encode() + b"\n")

    def end(self) -> int:
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()
            os.close(self._ours)
