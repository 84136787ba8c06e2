"""The README's transcript runs command by command against the demo it describes."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.demo.populate import PYTHON
from tests.bursard import BURSARD, CHECKOUT, START_SECONDS, Server, wait_until
from tests.house.documentation import check_shown

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
# Fields that noise decides; all others are as printed.
FREE = {"value", "low", "high"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """The demo's address, the key it prints for analyst-1, and its whole output."""
    home = tmp_path_factory.mktemp("demo")
    log = home / "demo.log"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("BURSAR_")},
        "BURSAR_HOME": str(home / "home"),
        "BURSAR_PORT": "0",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*BURSARD, "demo"],
            cwd=CHECKOUT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, log)
    try:
        wait_until(server._is_ready, START_SECONDS, "the demo is not ready")
        key = re.search(r"^ +analyst-1 +(\S+)$", server.output(), re.MULTILINE)
        assert key is not None
        yield server.url, key[1], server.output()
    finally:
        server.stop()


def transcript() -> list[tuple[str, Any]]:
    """HTTP commands, each with the part of the reply that the README shows."""
    commands = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        command, brace, reply = block.partition("\n{")
        if "$ curl" in command:
            commands.append((command[command.index("$ curl") + 2 :], json.loads(brace + reply)))
    return commands


def test_the_transcript_matches_the_readme(demo: tuple[str, str, str]) -> None:
    url, key, _ = demo
    commands = transcript()
    assert [shown["status"] for _, shown in commands] == ["answered"]
    for command, shown in commands:
        reply = run(command, url, key)
        check_shown(shown, json.loads(reply), FREE)
        assert set(json.loads(reply)) > set(shown), "the README marks the reply as shortened"
    first, _ = commands[0]
    assert run(first, url, key) == run(first, url, key), "the same key must give the same bytes"


def run(command: str, url: str, key: str) -> str:
    environment = {**os.environ, "BURSAR_URL": url, "BURSAR_KEY": key}
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_question_printed_by_the_demo_can_be_pasted(demo: tuple[str, str, str]) -> None:
    printed = re.search(r"^curl .*?}'$", demo[2], re.DOTALL | re.MULTILINE)
    assert printed is not None
    command = re.sub(r"http://127\.0\.0\.1:\d+", demo[0], printed[0])
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout)["status"] == "answered"


@pytest.mark.parametrize("last", ["python -c '.*?'", "bursar ask .*?"], ids=["python", "bursar"])
def test_the_lines_printed_by_the_demo_for_its_client_can_be_pasted(
    demo: tuple[str, str, str], last: str, tmp_path: Path
) -> None:
    exports = re.search(r"^export BURSAR_URL=.*?PATH\"$", demo[2], re.DOTALL | re.MULTILINE)
    command = re.search(rf"^{last}$", demo[2], re.DOTALL | re.MULTILINE)
    assert exports is not None
    assert command is not None
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("BURSAR")
    }
    done = subprocess.run(
        ["bash", "-c", f"{exports[0]}\n{command[0]}"],
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b5,?[34]\d\d\b", done.stdout), done.stdout
    assert "reused, free" in done.stdout + done.stderr or "charged" in done.stdout + done.stderr


@pytest.mark.parametrize("program", ["python", "bursar"])
def test_what_the_readme_says_can_be_pasted_after_the_export_command(
    demo: tuple[str, str, str], program: str, tmp_path: Path
) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (command,) = re.findall(r"`(bursar ask .*?)`", README)
    exports = re.search(r"^export BURSAR_URL=.*?PATH\"$", demo[2], re.DOTALL | re.MULTILINE)
    assert exports is not None
    line = f"python <<'END'\n{block}END" if program == "python" else command
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURSAR")}
    done = subprocess.run(
        ["bash", "-c", f"{exports[0]}\n{line}"],
        cwd=tmp_path,
        env={**kept, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\b5,?[34]\d\d\b", done.stdout), done.stdout


def test_the_readme_fits_two_screens() -> None:
    lines = README.splitlines()
    assert len(lines) <= 95
    assert max(map(len, lines)) <= 120


def test_the_python_of_the_readme_and_of_the_demo_are_the_same_question() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert [line for line in block.splitlines() if line] == PYTHON.splitlines()
