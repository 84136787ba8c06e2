"""The program `bursar`, as a person or a script would run it."""

import csv
import io
import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import bursar
from bursar.command import program
from bursar.http.flow import Call, send

PROGRAM = [sys.executable, "-c", "from bursar.command import main; main()"]
Run = Any


@pytest.fixture
def run(keys: dict[str, str], own_home: Path) -> Run:
    """Run a command as the second analyst; what it printed, and its exit code."""

    def command(
        *words: str, key: str = "analyst-2", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        names = {"BURSAR_KEY": keys.get(key, key), "HOME": str(own_home), **environment}
        full = {**os.environ, **names}
        kept = {name: value for name, value in full.items() if value}
        return subprocess.run(
            [*PROGRAM, *words], env=kept, capture_output=True, text=True, input="", timeout=60
        )

    return command


def test_a_pipe_gets_csv_and_json_on_request(run: Run) -> None:
    asked = run("ask", "census", "mean", "income", "--by", "region", "-e", "0.05")
    assert asked.returncode == 0, asked.stderr
    rows = list(csv.DictReader(io.StringIO(asked.stdout)))
    assert [row["region"] for row in rows] == ["north", "south", "east", "west"]
    assert "ε 0.05" in asked.stderr or "reused" in asked.stderr
    counted = run("ask", "census", "count", "-w", "age>=65", "-e", "0.02", "--json")
    assert isinstance(json.loads(counted.stdout)[0]["value"], int)


def test_every_command_of_the_guide_works(run: Run, tmp_path: Path) -> None:
    assert "census" in run("datasets").stdout
    assert "household_size" in run("show", "census").stdout
    assert len(run("sample", "census", "-n", "3").stdout.splitlines()) == 4
    priced = run("price", "census", "count", "-w", "age>=65", "--within", "100")
    assert priced.returncode == 0
    assert "costs ε 0.0298" in priced.stdout
    sql = "SELECT region, AVG(income) FROM census GROUP BY region"
    assert "north" in run("sql", sql, "-e", "0.1").stdout
    other = sql.replace("income", "hours")
    assert "costs ε 0.1" in run("sql", other, "-e", "0.1", "--preview").stdout
    rehearsed = run("rehearse", "census", "median", "income", "--by", "region", "-e", "0.1")
    assert "MADE-UP" in rehearsed.stderr
    assert {row["made_up"] for row in csv.DictReader(io.StringIO(rehearsed.stdout))} == {"True"}
    assert run("history", "--kind", "mean").returncode == 0
    budgets = list(csv.DictReader(io.StringIO(run("budget", "census").stdout)))
    assert [row["holder"] for row in budgets] == ["analyst-2"]


def test_a_plan_says_where_the_budget_stops(run: Run, tmp_path: Path) -> None:
    count = {"dataset": "census", "query": {"kind": "count"}}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps([{**count, "privacy": {"epsilon": 0.001}}, count]))
    fits = run("plan", str(file), "-e", "0.002")
    assert fits.returncode == 0, fits.stderr
    assert "pays for 2 of 2" in fits.stderr
    stops = run("plan", str(file), "-e", "50")
    assert stops.returncode == 3
    assert "pays for 1 of 2" in stops.stderr
    none = run("plan", str(file), "-e", "50", "--ask")
    assert none.returncode == 3
    assert "none was asked" in none.stderr
    both = run("plan", str(file), "-e", "0.002", "--ask", "--json")
    assert len(json.loads(both.stdout)) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"dataset": "census", "query": "count"}]', "query is an object"),
        ("[" * 100_000, "is not JSON"),
        ('{"dataset": "census"}', "holds no list"),
    ],
)
def test_a_broken_plan_is_refused_in_two_lines(
    run: Run, tmp_path: Path, text: str, problem: str
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    done = run("plan", str(file), "-e", "0.1")
    assert done.returncode == 2
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_preview_of_sql_is_json_on_request(run: Run) -> None:
    done = run("sql", "SELECT COUNT(*) FROM census", "-e", "0.1", "--preview", "--json")
    assert json.loads(done.stdout)["price"]["epsilon"] == 0.1


def test_ctrl_c_says_what_became_of_the_charge(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt("It was charged.")

    def command(standalone_mode: bool) -> None:
        program._interruptible(interrupted)()

    monkeypatch.setattr(program, "cli", command)
    assert program.run() == 130
    assert capsys.readouterr().err == "bursar: cancelled\n        It was charged.\n"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["ask", "census", "count", "-e", "9"], 3, "The most you can ask for now: --epsilon "),
        (["ask", "census", "mean", "incme", "-e", "0.1"], 2, "did you mean 'income'?"),
        (["ask", "census", "cuont", "-e", "0.1"], 2, "did you mean 'count'?"),
        (["ask", "cenus", "count", "-e", "0.1"], 2, "did you mean 'census'?"),
        (["ask", "census", "count"], 2, "Give exactly one of --epsilon 0.1"),
        (["ask", "census", "histogram", "age", "--set", "egdes=[0,9]", "-e", "1"], 2, "'edges'?"),
        (["ask", "census", "histogram", "age", "--set", "edges=5", "-e", "1"], 2, "list of values"),
        (["ask", "census", "count", "-w", "age!!3", "-e", "1"], 2, "is not a filter"),
        (["ask", "census", "count", "-w", "age>=old", "-e", "1"], 2, "age is of type integer"),
        (["ask", "census", "count", "-e", "lots"], 2, "privacy.epsilon"),
        (["ask", "census", "quantile", "income", "-e", "1"], 2, "A quantile takes column, q"),
        (["plan", "nowhere.json"], 2, "cannot be read"),
        (["budget", "cens"], 2, "did you mean 'census'?"),
        (["ask", "census", "ratio", "--set", "numerator=3", "-e", "1"], 2, "ratio"),
        (["frobnicate"], 2, "No such command"),
        (["verify", "nowhere.ndjson"], 2, "cannot be read"),
    ],
)
def test_errors_are_short_and_have_their_code(
    run: Run, words: list[str], code: int, text: str
) -> None:
    done = run(*words)
    assert done.returncode == code
    assert text in done.stderr
    assert done.stderr.startswith("bursar: ")
    assert len(done.stderr.splitlines()) <= 2
    assert done.stdout == ""


def test_a_wrong_key_and_a_missing_login_have_their_own_code(run: Run) -> None:
    assert run("datasets", key="wrong").returncode == 4
    nobody = run("datasets", key="", BURSAR_URL="")
    assert nobody.returncode == 4
    assert "bursar login" in nobody.stderr
    away = run("datasets", BURSAR_URL="http://127.0.0.1:9")
    assert away.returncode == 2
    assert "Is the server running?" in away.stderr


def test_a_login_is_stored_and_forgotten(run: Run, keys: dict[str, str], own_home: Path) -> None:
    url = os.environ["BURSAR_URL"]
    environment = {**os.environ, "HOME": str(own_home)}
    environment.pop("BURSAR_KEY", None)
    done = subprocess.run(
        [*PROGRAM, "login", url],
        env=environment,
        input=keys["analyst-1"] + "\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert keys["analyst-1"] not in done.stdout + done.stderr
    file = own_home / ".config" / "bursar" / "login.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "census" in run("datasets", key="", BURSAR_URL="").stdout
    assert run("logout").returncode == 0
    assert run("datasets", key="", BURSAR_URL="").returncode == 4


def test_an_export_is_checked_offline(run: Run, keys: dict[str, str], tmp_path: Path) -> None:
    answer = bursar.connect(key=keys["analyst-1"])["census"].count().ask(epsilon=0.01)
    admin = bursar.connect(key=keys["admin"])
    export = tmp_path / "export.ndjson"
    export.write_bytes(admin._transport.run(send(Call("GET", "/v1/ledger/export"))).content)
    receipt = tmp_path / "answer.json"
    receipt.write_text(json.dumps(answer.members))
    nowhere = {"BURSAR_URL": "http://127.0.0.1:9"}
    sound = run("verify", str(export), "--answer", str(receipt), **nowhere)
    assert sound.returncode == 0, sound.stderr
    assert "the receipt is in the export" in sound.stderr
    lines = export.read_text().splitlines(keepends=True)
    tampered = {
        "cut off": lines[:-3],
        "an entry left out": [*lines[:4], *lines[5:]],
        "an entry changed": [line.replace("analyst-1", "analyst-9", 1) for line in lines],
        "another end": [*lines[:-1], lines[-1].replace('"entries":', '"entries":1')],
    }
    for name, changed in tampered.items():
        export.write_text("".join(changed))
        assert run("verify", str(export)).returncode == 1, name
    export.write_text("".join(lines))
    other = {**answer.members, "receipt": {"entry": 1, "hash": "00"}}
    receipt.write_text(json.dumps(other))
    assert run("verify", str(export), "--answer", str(receipt)).returncode == 1


def test_a_terminal_gets_a_table_and_a_moving_budget(keys: dict[str, str], own_home: Path) -> None:
    environment = {**os.environ, "HOME": str(own_home), "BURSAR_KEY": keys["analyst-2"]}
    environment["TERM"] = "xterm"
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "budget", "census", "--watch"],
        env=environment,
        stdout=follower,
        stderr=follower,
        close_fds=True,
    )
    os.close(follower)
    text = ""
    deadline = time.monotonic() + 30
    while text.count("budget of analyst-2") < 2 and time.monotonic() < deadline:
        if select.select([leader], [], [], 1)[0]:
            text += os.read(leader, 4096).decode()
    process.send_signal(2)
    assert process.wait(10) == 130
    os.close(leader)
    assert text.count("budget of analyst-2") >= 2
    assert "% used" in text


def test_the_program_alone_prints_its_help_only(run: Run) -> None:
    alone = run()
    assert alone.returncode == 0
    assert "Usage" in alone.stdout
    assert alone.stderr == ""
    assert run("--version").stdout == f"bursar {bursar.__version__}\n"


def test_a_whole_answer_is_printed_and_its_receipt_checked(
    run: Run, keys: dict[str, str], tmp_path: Path
) -> None:
    asked = run("ask", "census", "count", "-w", "age>=71", "-e", "0.01", "--full")
    answer = json.loads(asked.stdout)
    assert {"id", "charged", "mechanism", "receipt", "rows", "question"} <= set(answer)
    groups = run("ask", "census", "median", "hours", "--by", "sex", "-e", "0.01", "--full")
    assert len(json.loads(groups.stdout)["rows"]) == 2
    rows = run("ask", "census", "count", "-w", "age>=71", "-e", "0.01", "--json")
    assert json.loads(rows.stdout)[0]["value"] == answer["value"]
    admin = bursar.connect(key=keys["admin"])
    export = tmp_path / "export.ndjson"
    export.write_bytes(admin._transport.run(send(Call("GET", "/v1/ledger/export"))).content)
    file = tmp_path / "answer.json"
    for whole in (asked, groups):
        file.write_text(whole.stdout)
        checked = run("verify", str(export), "--answer", str(file))
        assert checked.returncode == 0, checked.stderr
    for other in (rows.stdout, "5", "null", "[]", '"text"', '{"receipt": 5}', "[1]", "{"):
        file.write_text(other)
        checked = run("verify", str(export), "--answer", str(file))
        assert checked.returncode == 2, other
        assert len(checked.stderr.splitlines()) <= 2, other


def test_every_value_of_a_category_is_in_a_pipe(run: Run) -> None:
    shown = csv.DictReader(io.StringIO(run("show", "census").stdout))
    assert not any("more" in row["values"] for row in shown)


def test_completion_can_be_installed(run: Run) -> None:
    assert "--install-completion" in run("--help", COLUMNS="200").stdout
