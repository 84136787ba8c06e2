"""Every command: errors in one or two lines, lists for people and for programs, exit codes."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from app.access import Role
from app.cli.opened import current_ledger
from app.settings import Settings
from tests.bursard import BURSARD, CHECKOUT, MAIN, Ledger, environment_with, wait_until
from tests.cli.running import run_here
from tests.cli.terminal import Terminal

COMMANDS = (
    "serve demo doctor apply backup restore migrate verify reconcile export calibrate keys dataset"
)


def with_ada(ledger: Ledger) -> None:
    with current_ledger(Settings.from_environment()) as stores:
        stores.people.create("operator", "ada", Role.ANALYST, None, None, "")


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def lines(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def run_with(ledger: Ledger, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = environment_with({**ledger.environment(), **changes})
    return subprocess.run(
        [*BURSARD, *words], cwd=CHECKOUT, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("words", "changes", "code", "beginning"),
    [
        (["verify"], {"BURSAR_PORT": "many"}, 2, "BURSAR_PORT must be a whole number"),
        (["verify"], {"BURSAR_HMOE": "x"}, 2, "There is no setting BURSAR_HMOE; did you mean"),
        (
            ["verify"],
            {"BURSAR_DATABASE_URL": "postgresql://host:port/x"},
            2,
            "BURSAR_DATABASE_URL must have a host",
        ),
        (
            ["verify"],
            {"BURSAR_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none?connect_timeout=3"},
            1,
            "The ledger's database cannot be reached.",
        ),
        (["export"], {"BURSAR_HOME": "/dev/null/home"}, 2, "/dev/null"),
        (["verify", "--file", "no-such-file"], {}, 2, "no-such-file: No such file"),
        (["verify", "--fiel", "x"], {}, 2, "No such option: --fiel"),
        (["keys", "issue", "ada", "--days", "0"], {}, 2, "Invalid value for '--days'"),
        (["sevre"], {}, 2, "No such command 'sevre'."),
    ],
)
def test_an_error_is_one_or_two_lines_with_its_exit_code(
    ledger: Ledger, words: list[str], changes: dict[str, str], code: int, beginning: str
) -> None:
    done = run_with(ledger, *words, **changes)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(f"bursard: {beginning}"), done.stderr
    assert len(lines(done.stderr)) <= 2, done.stderr
    assert done.stdout == ""


def test_a_file_that_is_no_ledger_is_reported_without_a_traceback(ledger: Ledger) -> None:
    ledger.home.mkdir(parents=True)
    ledger.sqlite_path.write_text("this is no database, but a text long enough for a header" * 9)
    done = run_with(ledger, "verify")
    assert done.returncode == 1
    assert done.stderr.startswith("bursard: The ledger's database cannot be reached.\n")
    assert len(lines(done.stderr)) == 2


def test_keys_are_csv_in_a_pipe_and_json_when_asked_for(ledger: Ledger) -> None:
    with_ada(ledger)
    key = run_here("keys", "issue", "ada", "--days", "7").stdout.strip()
    second = run_here("keys", "issue", "ada").stdout.strip()
    listed = list(csv.DictReader(io.StringIO(run_here("keys", "list", "ada").stdout)))
    assert [row["state"] for row in listed] == ["issued", "issued"]
    assert key.startswith(listed[0]["prefix"].removesuffix("..."))
    assert listed[0]["expires_at"] > listed[0]["created_at"]
    assert run_here("keys", "revoke", listed[1]["id"]).returncode == 0
    as_json = json.loads(run_here("keys", "list", "ada", "--json").stdout)
    assert [row["state"] for row in as_json] == ["issued", "revoked"]
    assert as_json[0]["revoked_at"] is None
    assert as_json[0].keys() == listed[0].keys()
    assert second not in json.dumps(as_json)
    assert run_here("keys", "list", "bob").returncode == 2


def test_keys_are_a_table_on_a_terminal(ledger: Ledger) -> None:
    with_ada(ledger)
    run_here("keys", "issue", "ada")
    terminal = Terminal(ledger, "keys", "list", "ada")
    terminal.wait_for("revoked_at")
    terminal.wait_for("issued")
    assert terminal.end() == 0
    heading, row = terminal.output.strip().splitlines()
    assert heading.index("state") == row.index("issued")
    assert "," not in heading


def test_ctrl_c_ends_a_command_with_one_line(ledger: Ledger) -> None:
    with_ada(ledger)
    run_here("keys", "issue", "ada")
    stopped = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, signal; from app.cli import keys\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "keys.existing_ledger = lambda _: os.kill(os.getpid(), signal.SIGINT)\n" + MAIN,
            *("keys", "list", "ada"),
        ],
        cwd=CHECKOUT,
        env=environment_with(ledger.environment()),
        capture_output=True,
        text=True,
    )
    assert (stopped.returncode, stopped.stderr) == (130, "bursard: cancelled\n")


def test_ctrl_c_stops_a_server_without_an_error(ledger: Ledger) -> None:
    terminal = Terminal(ledger, "serve")
    terminal.wait_for("Bursar serves on ", 60)
    terminal.wait_for("\n")
    url = terminal.output.partition("Bursar serves on ")[2].split()[0]
    wait_until(lambda: is_ready(url), 60, "the server is not ready")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("has stopped")
    assert terminal.end() == 0
    assert not any(word in terminal.output for word in ("Traceback", "ERROR", "withheld"))


def test_a_reader_that_leaves_early_gets_no_traceback(ledger: Ledger) -> None:
    with_ada(ledger)
    for _ in range(3):
        run_here("keys", "issue", "ada")
    script = "import sys; sys.stdout.close = lambda: None; " + MAIN
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-u", "-c", script, "export"],
            cwd=CHECKOUT,
            env=environment_with(ledger.environment()),
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.stderr == ""


def test_shell_completion_knows_the_commands(ledger: Ledger, tmp_path: Path) -> None:
    program = tmp_path / "bursard"
    program.write_text(f"#!{sys.executable}\n{MAIN}\n")
    program.chmod(0o755)
    words = {"_BURSARD_COMPLETE": "complete_bash", "COMP_WORDS": "bursard re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [program], env=environment_with(words), capture_output=True, text=True, check=True
    )
    assert "reconcile" in done.stdout.split()


def test_every_command_is_on_the_page_for_operators() -> None:
    page = (CHECKOUT / "docs" / "operations.md").read_text()
    help_text = run_here("--help").stdout
    for name in COMMANDS.split():
        assert name in help_text
        assert f"`bursard {name}" in page or f"`{name} " in page, name
