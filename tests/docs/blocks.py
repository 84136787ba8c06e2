"""Run the blocks of a page in order, against a demo server: Python, console commands and files.

Python blocks of one page share their names. A `text` block below `<!-- prints -->` shows what the
Python block before it prints. A block below `<!-- file: name -->` is a file of the demo's data
folder, where commands run. A line `...` in a shown output stands for any text; numbers are free,
because noise decides them, unless the page computes them itself with `assert`.
"""

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser

from tests.house.documentation import check_shown

# Programs that a console block may run. Others, such as make and export, are for the reader only.
RUN = {"bursar": "bursar.command", "bursard": "app.cli", "curl": ""}
FREE = {"value", "low", "high"}
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
BAR = re.compile(r"\[[#.]+\]")
SECONDS = 60


class Page:
    """A page, the folder in which its files are, and what its last Python block printed."""

    def __init__(self, path: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self.path, self.folder, self.environment = path, folder, environment
        self.printed = ""
        self.count = 0
        self._python = PythonEvaluator()

    def run(self) -> int:
        """Run every block; the number of those that ran."""
        evaluators = {
            "python": self._run_python,
            "console": self._run_console,
            "text": self._check_printed,
            "csv": self._write_file,
            "json": self._write_file,
        }
        parsers = [CodeBlockParser(language, run) for language, run in evaluators.items()]
        document = Sybil(parsers).parse(self.path)
        for example in document.examples():
            example.evaluate()
        blocks = len(re.findall(r"^ *```(?:python|console)$", document.text, re.MULTILINE))
        assert self.count == blocks, f"{self.path.name}: some blocks did not run"
        return self.count

    def _run_python(self, example: Example) -> None:
        self.count += 1
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.chdir(self.folder):
            self._python(example)
        self.printed = output.getvalue()

    def _check_printed(self, example: Example) -> None:
        if _above(example) == "<!-- prints -->":
            check_output(str(example.parsed), self.printed)

    def _write_file(self, example: Example) -> None:
        named = re.fullmatch(r"<!-- file: (\S+) -->", _above(example))
        if named is not None:
            (self.folder / named[1]).write_text(str(example.parsed))

    def _run_console(self, example: Example) -> None:
        self.count += 1
        for command, shown in commands(str(example.parsed)):
            program = shlex.split(command, comments=True)[0]
            if program in RUN:
                self._run_command(command, shown, is_json=shown.startswith("{"))

    def _run_command(self, command: str, shown: str, *, is_json: bool) -> None:
        shells = [
            f'{name}() {{ "{sys.executable}" -c "from {module} import main; main()" "$@"; }}'
            for name, module in RUN.items()
            if module
        ]
        script = "\n".join([*shells, command])
        if is_json:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=self.folder,
                env=dict(self.environment),
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=True,
            )
            check_shown(json.loads(shown), json.loads(done.stdout), FREE)
        else:
            check_output(shown, on_a_terminal(script, self.folder, self.environment))


def _above(example: Example) -> str:
    return example.document.text[: example.start].rstrip().rsplit("\n", 1)[-1]


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows."""
    pairs: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], ""))
        elif pairs and _is_open(pairs[-1][0]):
            pairs[-1] = (f"{pairs[-1][0]}\n{line}", "")
        elif pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]}{line}\n")
    return pairs


def _is_open(command: str) -> bool:
    return command.endswith("\\") or command.count("'") % 2 == 1


def on_a_terminal(script: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The output of a script that believes to write to a terminal of 120 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env={**environment, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "120", "LINES": "50"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
        while piece := os.read(ours, 65536):
            output += piece
    os.close(ours)
    code = process.wait(SECONDS)
    text = output.decode().replace("\r\n", "\n")
    assert code == 0, f"exit code {code} of {script.splitlines()[-1]}\n{text}"
    return text


def check_output(shown: str, printed: str) -> None:
    """Every passage of the shown text is in the output, in this order, up to numbers and spaces."""
    rest = _plain(printed)
    for passage in re.split(r"\.\.\.", BAR.sub("[bar]", shown)):
        expected = _plain(passage)
        assert expected in rest, f"not printed: {expected!r}\nprinted: {rest!r}"
        rest = rest[rest.index(expected) + len(expected) :]


def _plain(text: str) -> str:
    return " ".join(NUMBER.sub("0", BAR.sub("[bar]", text)).split())


def environment_of(url: str, keys: Mapping[str, Any], home: Path) -> dict[str, str]:
    """The variables that the pages use, and none of the caller's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURSAR")}
    top = Path(__file__).parents[2]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join([str(top), str(top / "client")]),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "BURSAR_HOME": str(home),
        "BURSAR_URL": url,
        "BURSAR_KEY": keys["analyst-1"],
        "BURSAR_ADMIN_KEY": keys["admin"],
    }
