"""From a fresh clone to the first private answer in Python, with the commands of the guide."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bursard import START_SECONDS, Server, wait_until
from tests.conftest import Counts
from tests.house.documentation import TOP

SESSIONS = Path(__file__).parent / "sessions"


@pytest.mark.timeout(900)
def test_a_fresh_clone_answers_a_first_question(tmp_path: Path, counts: Counts) -> None:
    began = time.monotonic()
    clone = tmp_path / "bursar"
    subprocess.run(["git", "clone", "--quiet", str(TOP), str(clone)], check=True)
    assert not (clone / ".venv").exists(), "a committed link would be installed into"
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BURSAR", "PYTEST", "PYTHONPATH", "VIRTUAL_ENV", "MAKE"))
    }
    environment = {**kept, "HOME": str(tmp_path), "BURSAR_PORT": "0", "PYTHONUNBUFFERED": "1"}
    pip_cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pip"
    setup = subprocess.run(
        ["make", "setup", f"PYTHON={sys.executable}"],
        cwd=clone,
        env={**kept, "PIP_CACHE_DIR": str(pip_cache)},
        capture_output=True,
        text=True,
    )
    assert setup.returncode == 0, setup.stderr[-2000:]
    built = time.monotonic()
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [clone / ".venv" / "bin" / "bursard", "demo"],
            cwd=clone,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, log)
    try:
        wait_until(server._is_ready, START_SECONDS, "the demo is not ready")
        ready = time.monotonic()
        key = re.search(r"^ +analyst-1 +(\S+)$", server.output(), re.MULTILINE)
        assert key is not None
        connected = {**environment, "BURSAR_URL": server.url, "BURSAR_KEY": key[1]}
        first = run_session(clone, "first_question.py", connected)
        assert first.startswith("count where age >= 65: ")
        ended = time.monotonic()
        run_session(clone, "analyst.py", connected)
        run_session(clone, "terminal.sh", connected)
        whole = time.monotonic()
    finally:
        server.stop()
    print(
        f"clone and setup {built - began:.0f} s, demo {ready - built:.0f} s, "
        f"first answer {ended - ready:.1f} s, the whole sessions {whole - ended:.0f} s"
    )
    counts("seconds from a fresh clone to the first private answer", round(ended - began))


def run_session(clone: Path, name: str, environment: dict[str, str]) -> str:
    """Run an ideal session in a shell whose path has the programs of the clone."""
    programs = clone / ".venv" / "bin"
    done = subprocess.run(
        [programs / "python" if name.endswith(".py") else "bash", SESSIONS / name],
        cwd=clone,
        env={**environment, "PATH": os.pathsep.join([str(programs), environment["PATH"]])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    print(done.stdout[-3000:])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout
