"""The client's own suite against a demo server, with the newest and the oldest packages."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bursard import Server

TOP = Path(__file__).parents[2]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Server]:
    settings = {"BURSAR_HOME": str(tmp_path / "home"), "BURSAR_PORT": "0"}
    server = Server.start(settings, tmp_path / "log", command="demo")
    yield server
    server.stop()


@pytest.mark.parametrize("packages", ["newest", "oldest"])
def test_the_clients_own_suite_passes(demo: Server, packages: str, tmp_path: Path) -> None:
    folder = TOP / ".venv" / packages
    if not folder.exists():
        pytest.fail(f"the {packages} packages are not there: run `make .venv/{packages}`")
    paths = [str(folder), str(TOP / "client")]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("BURSAR_")},
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "BURSAR_URL": demo.url,
        "BURSAR_DEMO_KEYS": str(tmp_path / "home" / "demo-keys.json"),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        "client",
    ]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "-c", os.devnull, "client/suite"],
        cwd=TOP,
        env=environment,
        capture_output=True,
        text=True,
    )
    print(done.stdout[-6000:])
    print(f"{packages} packages: {time.monotonic() - began:.0f} s")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
