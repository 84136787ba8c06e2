"""The rules of the house that a machine can check: errors, reference, randomness, direction."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from app import errors
from app.api.http.problems import STATUSES, TITLES, slug
from app.errors import AppError
from app.ledger.chain import ENTRY_KINDS
from app.mechanisms import MECHANISMS
from app.mechanisms.streams import above_threshold, tree_counter
from app.planning.request import Question
from app.queries import QUERIES
from app.store.rollback import anchor_check
from tests.house.documentation import DOCS, examples

TOP = Path(__file__).resolve().parents[2]
APP = TOP / "app"


def tree(kind: type[AppError] = AppError) -> Iterator[type[AppError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from tree(below)


@cache
def sources() -> list[tuple[Path, ast.Module]]:
    """All files of the app; parsing them takes half a second."""
    paths = sorted(APP.rglob("*.py"))
    return [(path.relative_to(TOP), ast.parse(path.read_text())) for path in paths]


# The reference


def test_every_mechanism_appears_in_a_question_of_the_reference() -> None:
    text = "".join(path.read_text() for path in sorted((DOCS / "questions").glob("*.md")))
    bodies = [body for body, _ in examples(text) if "query" in body and "mechanism" in body]
    questions = [Question.model_validate(body) for body in bodies]
    named = {each.mechanism.kind for each in questions if each.mechanism is not None}
    assert named == set(MECHANISMS)


# Errors


def test_every_error_class_has_a_status_and_every_status_an_error_class() -> None:
    own = {kind for kind in tree() if kind.__module__ == errors.__name__}
    leaves = {kind for kind in own if not kind.__subclasses__()}
    assert leaves <= set(STATUSES) <= own


def test_every_raised_error_has_a_status() -> None:
    """This includes classes that are not leaves, such as Invalid."""
    names = {kind.__name__: kind for kind in tree()}
    raised: set[str] = set()
    for _, module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).removesuffix(".field").removeprefix("errors.")
                if called in names:
                    raised.add(called)
    assert len(raised) > 15
    assert {names[name] for name in raised} <= set(STATUSES)


def test_the_tree_in_the_docstring_shows_every_error() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or ""))
    assert drawn | {"AppError"} == {kind.__name__ for kind in tree()}


def test_only_retryable_errors_are_5xx_and_every_status_has_a_title() -> None:
    assert {status for status in STATUSES.values() if status >= 500} == {503}
    assert set(STATUSES.values()) <= set(TITLES)
    slugs = [slug(kind) for kind in STATUSES]
    assert len(set(slugs)) == len(slugs)


# The reference


def variables() -> set[str]:
    return set(re.findall(r'"(BURSAR_[A-Z_]+)"', (APP / "settings.py").read_text()))


STREAMS = above_threshold.KIND, tree_counter.KIND
# Each documented word, with the page that must have it.
WORDS = (
    {("setting", name): "settings.md" for name in sorted(variables())}
    | {("error", kind.__name__): "errors.md" for kind in STATUSES}
    | {("mechanism", name): "questions/mechanisms.md" for name in MECHANISMS}
    | {("query", name): "questions/README.md" for name in QUERIES}
    | {("stream", name): "streams.md" for name in STREAMS}
    | {("entry", name): "ledger.md" for name in ENTRY_KINDS}
)


def test_there_are_settings_to_check() -> None:
    assert len(variables()) >= 13


@pytest.mark.parametrize("what", WORDS, ids=" ".join)
def test_the_reference_documents(what: tuple[str, str]) -> None:
    page = WORDS[what]
    assert f"`{what[1]}`" in (DOCS / page).read_text(), f"docs/{page} does not mention {what}"


# Entries


def test_every_kind_of_entry_is_a_search_filter() -> None:
    written: set[str] = set()
    for path in sorted((APP / "store").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and "append" in ast.unparse(node.func):
                kinds = [each.value for each in node.keywords if each.arg == "kind"]
                written |= {str(each.value) for each in kinds if isinstance(each, ast.Constant)}
                names = {each.id for each in kinds if isinstance(each, ast.Name)}
                written |= {getattr(anchor_check, name) for name in names if name.isupper()}
    assert written == set(ENTRY_KINDS)


# Randomness


@cache
def imports() -> list[tuple[str, str]]:
    """Pairs of a file and the full name of an import."""
    pairs = []
    for path, module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                pairs += [(str(path), alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                pairs += [(str(path), f"{node.module}.{alias.name}") for alias in node.names]
    return pairs


def importers(*roots: str) -> set[str]:
    return {
        path
        for path, name in imports()
        if any(name == root or name.startswith(f"{root}.") for root in roots)
    }


def test_noise_comes_from_one_room_and_no_seedable_generator_exists() -> None:
    assert importers("random", "numpy.random", "scipy.stats", "uuid") == set()
    assert importers("opendp") <= {
        "app/mechanisms/sampling/system.py",
        "app/mechanisms/sampling/opendp_ffi.py",
    }
    assert importers("app.mechanisms.sampling.opendp_ffi") == {"app/mechanisms/sampling/system.py"}
    identifiers = {"app/names.py", "app/engines/files/connect.py"}
    assert importers("secrets") == {"app/mechanisms/sampling/system.py", *identifiers}
    for path, module in sources():
        text = ast.unparse(module)
        assert "os.urandom" not in text, path
        assert "getrandom" not in text, path
        assert not re.search(r"\bnp\.random|\bnumpy\.random|\bscipy\.stats", text), path


def test_scipy_is_imported_lazily_so_the_service_starts_without_it() -> None:
    """Importing scipy.optimize takes about as long as the rest of the start."""
    for path, module in sources():
        for node in module.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "scipy" not in ast.unparse(node), path


@pytest.mark.parametrize(
    "line", ["import random", "from random import Random", "import numpy.random"]
)
def test_ruff_refuses_other_randomness_in_every_folder(line: str) -> None:
    for path in ("app/planning/noise.py", "app/mechanisms/noise.py", "tests/noise.py"):
        done = subprocess.run(
            [ruff(), "check", "--no-cache", "--stdin-filename", path, "-"],
            input=f'"""A file."""\n\n{line}\n',
            cwd=TOP,
            capture_output=True,
            text=True,
        )
        assert "TID251" in done.stdout, path


def ruff() -> Path:
    return Path(sys.executable).with_name("ruff")


# Direction


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=120
    )


def test_rooms_depend_downwards_only() -> None:
    done = lint_imports(TOP)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("app/ledger/chain.py", "import sqlalchemy"),
        ("app/queries/sums/count.py", "import app.planning.plan"),
        ("app/store/writer/writer.py", "import app.api.http.json_body"),
    ],
)
def test_an_upward_import_is_noticed(tmp_path: Path, file: str, line: str) -> None:
    shutil.copytree(
        APP, tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__", "*.parquet")
    )
    shutil.copy(TOP / "pyproject.toml", tmp_path)
    path = tmp_path / file
    path.write_text(f"{path.read_text()}\n{line}\n")
    assert lint_imports(tmp_path).returncode == 1


def test_no_package_hides_its_own_modules() -> None:
    """`from a.b import x as c` in a/__init__.py would hide the module a/c.py behind `a.c`."""
    for path in APP.rglob("__init__.py"):
        own = {child.stem for child in path.parent.iterdir()}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                bound = {alias.asname or alias.name: alias.name for alias in node.names}
                package = ".".join(path.parent.relative_to(APP.parent).parts)
                hidden = {
                    name
                    for name in bound
                    if name in own and f"{node.module}.{bound[name]}" != f"{package}.{name}"
                }
                assert not hidden, f"{path.relative_to(APP.parent)} hides {hidden}"
