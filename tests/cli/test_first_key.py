"""Only a server that has its port makes the first administrator's key."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bursard import MAIN, Server

KEY = re.compile(r"^bursar_\S+$", re.MULTILINE)


def environment(home: Path, port: int) -> dict[str, str]:
    return {"BURSAR_HOME": str(home), "BURSAR_PORT": str(port), "BURSAR_HOST": "127.0.0.1"}


def listening() -> socket.socket:
    taken = socket.create_server(("127.0.0.1", 0))
    return taken


def bursard(command: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("BURSAR_")}
    words = [sys.executable, "-c", MAIN, command]
    return subprocess.run(words, env=plain | settings, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_no_key_is_made_while_another_program_has_the_port(tmp_path: Path, command: str) -> None:
    with listening() as taken:
        port = taken.getsockname()[1]
        ended = bursard(command, environment(tmp_path / "home", port))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"bursard: Cannot listen on 127.0.0.1:{port}: ")
    assert not KEY.search(ended.stdout)
    assert not (tmp_path / "home" / "ledger.db").exists()


def test_of_two_servers_on_one_port_one_makes_a_key_that_works(tmp_path: Path) -> None:
    with listening() as free:
        port = free.getsockname()[1]
    settings = environment(tmp_path / "home", port)
    server = Server.start(settings, tmp_path / "first.log")
    try:
        second = bursard("serve", settings)
        assert second.returncode == 2
        assert not KEY.search(second.stdout)
        (key,) = KEY.findall(server.output())
        assert server.client(key).get("/v1/analysts").status_code == 200
    finally:
        server.stop()


def test_an_unknown_setting_stops_the_start(tmp_path: Path) -> None:
    ended = bursard("serve", {**environment(tmp_path / "home", 0), "BURSAR_PRT": "8001"})
    assert ended.returncode == 2
    assert ended.stderr == "bursard: There is no setting BURSAR_PRT; did you mean BURSAR_PORT?\n"
