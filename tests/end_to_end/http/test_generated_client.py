"""A client generated from the OpenAPI description imports and asks a question."""

import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.api.http import application  # noqa: F401  # its import declares every route
from app.api.http.openapi import REQUESTS
from tests.server import World

NAME = "made_bursar_client"


@pytest.fixture(scope="module")
def description(live: World) -> Any:
    return live.admin.get("/openapi.json").json()


@pytest.fixture(scope="module")
def client_folder(description: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_text(json.dumps(description))
    (folder / "config.yml").write_text("post_hooks: []\n")
    program = Path(sys.executable).with_name("openapi-python-client")
    done = subprocess.run(
        [
            *(program, "generate", "--path", "openapi.json", "--config", "config.yml"),
            *("--output-path", NAME, "--meta", "none", "--fail-on-warning"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield folder / NAME
    sys.path.remove(str(folder))


def test_every_generated_module_imports(client_folder: Path) -> None:
    modules = sorted(client_folder.rglob("*.py"))
    assert len(modules) > 200
    for path in modules:
        parts = path.relative_to(client_folder.parent).with_suffix("").parts
        importlib.import_module(".".join(parts).removesuffix(".__init__"))


def test_the_generated_client_asks_a_question_and_gets_an_answer(
    live: World, client_folder: Path
) -> None:
    package = importlib.import_module(NAME)
    ask = importlib.import_module(f"{NAME}.api.queries.ask")
    models = importlib.import_module(f"{NAME}.models")
    question = models.Question(
        dataset="people",
        query=models.Count(kind="count"),
        privacy=models.Privacy(epsilon=0.1),
    )
    key = live.people["ada"].key
    with package.AuthenticatedClient(base_url=live.server.url, token=key) as client:
        answer = ask.sync(client=client, body=question, idempotency_key="made-1")
        again = ask.sync(client=client, body=question, idempotency_key="made-1")
    assert answer.status == "answered"
    assert isinstance(answer.value, int)
    assert answer.charged.epsilon == 0.1
    assert again.to_dict() == answer.to_dict()


def test_no_two_schemas_have_one_name_or_title(description: Any) -> None:
    schemas = description["components"]["schemas"]
    assert len(schemas) > 100
    assert [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name)] == []
    titles = Counter(each.get("title", name) for name, each in schemas.items())
    assert [title for title, number in titles.items() if number > 1] == []
    folded = Counter(name.lower() for name in schemas)
    assert [name for name, number in folded.items() if number > 1] == []


def test_definitions_with_one_name_in_several_bodies_are_equal() -> None:
    """Definitions of all bodies are merged: with equal names, the last would hide the others."""
    merged: dict[str, Any] = {}
    for adapter, _, _ in REQUESTS.values():
        schema = adapter.json_schema(by_alias=True)
        definitions = schema.pop("$defs", {})
        whole = {schema["title"]: schema} if "properties" in schema else {}
        for name, definition in (definitions | whole).items():
            assert merged.setdefault(name, definition) == definition, name
    assert len(merged) > 80
