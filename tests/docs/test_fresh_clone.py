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

FIRST_QUESTION = """
import bursar
from bursar import col

answer = bursar.connect()["census"].where(col.age >= 65).count().ask(epsilon=0.1)
print(answer)
"""


@pytest.mark.timeout(900)
def test_a_fresh_clone_answers_a_first_question(tmp_path: Path, counts: Counts) -> None:
    began = time.monotonic()
    clone = tmp_path / "bursar"
    subprocess.run(["git", "clone", "--quiet", str(TOP), str(clone)], check=True)
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
        done = subprocess.run(
            [clone / ".venv" / "bin" / "python", "-c", FIRST_QUESTION],
            cwd=clone,
            env={**environment, "BURSAR_URL": server.url, "BURSAR_KEY": key[1]},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("count where age >= 65: ")
        ended = time.monotonic()
    finally:
        server.stop()
    print(
        f"clone and setup {built - began:.0f} s, demo {ready - built:.0f} s, "
        f"first answer {ended - ready:.1f} s"
    )
    counts("seconds from a fresh clone to the first private answer", round(ended - began))
