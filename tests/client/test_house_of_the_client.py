"""The client agrees with the server's description, with itself, and with its promises."""

import inspect
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
