"""The client agrees with the server's description, with itself, and with its promises."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bursar
from app.api.http.problems import STATUSES, slug
from bursar import asynchronous, errors, sync
from tests.client.make_bodies import TARGET, text

FROM_THE_FRAMEWORK = {"method-not-allowed", "internal-error"}
CLIENT = Path(__file__).parents[2] / "client"
PAIRS = ["Question", "Budget", "Stream", "StreamOpener", "Dataset", "Plan", "Client"]


def test_every_problem_of_the_server_has_its_error() -> None:
    assert set(errors.PROBLEMS) == {slug(kind) for kind in STATUSES} | FROM_THE_FRAMEWORK
    for kind in errors.PROBLEMS.values():
        assert getattr(bursar, kind.__name__) is kind


def test_the_types_of_bodies_are_those_of_the_description(openapi: dict[str, Any]) -> None:
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"],
        input=text(openapi),
        capture_output=True,
        text=True,
        check=True,
    )
    assert TARGET.read_text() == formatted.stdout, "run `python -m tests.client.make_bodies`"


@pytest.mark.parametrize("name", PAIRS)
def test_the_asynchronous_client_has_the_same_names_and_parameters(name: str) -> None:
    one, other = getattr(sync, name), getattr(asynchronous, f"Async{name}")
    methods = public_methods(one)
    assert methods == public_methods(other)
    for method in methods:
        here, there = inspect.signature(vars(one)[method]), inspect.signature(vars(other)[method])
        assert list(here.parameters.values()) == [
            p.replace(annotation=q.annotation)
            for p, q in zip(there.parameters.values(), here.parameters.values(), strict=True)
        ], method


def public_methods(kind: type) -> set[str]:
    members = vars(kind).items()
    return {name for name, member in members if not name.startswith("_") and callable(member)}


def test_only_the_transport_imports_httpx() -> None:
    using = [
        path.relative_to(CLIENT).as_posix()
        for path in CLIENT.rglob("*.py")
        if "import httpx" in path.read_text()
    ]
    assert using == ["bursar/http/transport.py"]


def test_the_client_never_imports_the_server() -> None:
    for path in CLIENT.rglob("*.py"):
        source = path.read_text()
        assert "from app" not in source, path
        assert "import app" not in source, path


def test_nothing_but_httpx_is_loaded() -> None:
    code = "import sys, bursar; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "httpx" in loaded
    assert not {"pandas", "polars", "pyarrow", "numpy", "typer", "app"} & set(loaded)
    # httpx loads rich for a program of its own where it is installed; the package never does.
    for path in (CLIENT / "bursar").rglob("*.py"):
        if path.parent.name != "command":
            assert not re.search(r"^ *(from|import) (rich|typer)", path.read_text(), re.M), path


def test_the_time_of_the_import_is_printed() -> None:
    """The goal is 0.4 s; how fast this machine is, is no claim of a test."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import bursar"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("|") for line in done.stderr.splitlines() if line.count("|") == 2]
    (total,) = [int(row[1]) for row in rows if row[2].strip() == "bursar"]
    print(f"import bursar: {total / 1e6:.2f} s (goal: 0.4 s)")


SCRIPT = """
import bursar
from bursar import Answer, Preview, col

b = bursar.connect()
census = b["census"]
question = census.where((col.age >= 18) & col.region.isin(["north"])).mean("income").by("region")
preview: Preview = question.preview(epsilon=0.1, rows=7000)
answer: Answer = question.ask(epsilon=0.1, mechanism=bursar.mechanisms.laplace())
total: float = sum(row["value"] for row in answer.rows())
names: list[str] = [budget.holder for budget in b.budgets(dataset="census")]
stream = census.above_threshold(100, crossings=1, asks_max=5).open(epsilon=0.1)
print(total, names, stream.ask(col.age > 3).above, preview.price.epsilon)
"""


def test_a_script_passes_the_strictest_type_check(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    for source, wrong in ((SCRIPT, ""), (SCRIPT + "\ncensus.cuont()\n", "cuont")):
        script.write_text(source)
        # As for an installed package: only errors in the script itself count.
        options = ["--strict", "--no-incremental", "--config-file", os.devnull]
        options.append("--follow-imports=silent")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", *options, str(script)],
            cwd=tmp_path,
            env={**os.environ, "MYPYPATH": str(CLIENT)},
            capture_output=True,
            text=True,
        )
        assert (done.returncode == 1) == bool(wrong), done.stdout
        assert wrong in done.stdout


def oldest_python() -> str | None:
    """A Python 3.10 that starts; a launcher of several versions may know none."""
    installed = sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python3.10"))
    for program in [shutil.which("python3.10"), *map(str, installed)]:
        if program and subprocess.run([program, "--version"], capture_output=True).returncode == 0:
            return program
    return None


def test_the_client_works_on_the_oldest_python() -> None:
    program = oldest_python()
    if program is None:
        pytest.skip("there is no Python 3.10 on this machine")
    oldest = CLIENT.parent / ".venv" / "oldest"
    if not oldest.exists():
        pytest.skip("the oldest packages are not there: run `make .venv/oldest`")
    code = (
        "import bursar, bursar.command.program, bursar.evidence\n"
        "from bursar import col\n"
        "print(repr(col.age.between(18, 64) & ~col.income.is_null()))"
    )
    path = os.pathsep.join([str(oldest), str(CLIENT)])
    done = subprocess.run(
        [program, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "18 <= age <= 64 & ~(income is missing)\n"
