"""The recipes of docs/recipes, run against a demo server of their own."""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.bursard import Server

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A demo; the environment names it and the key of the first analyst."""
    settings = {"BURSAR_HOME": str(tmp_path / "home"), "BURSAR_PORT": "0"}
    server = Server.start(settings, tmp_path / "log", command="demo")
    keys = json.loads((tmp_path / "home" / "demo-keys.json").read_text())
    monkeypatch.setenv("BURSAR_URL", server.url)
    monkeypatch.setenv("BURSAR_KEY", keys["analyst-1"])
    monkeypatch.setenv("HOME", str(tmp_path))
    yield server
    server.stop()


def blocks(page: str, language: str) -> list[str]:
    text = (RECIPES / page).read_text()
    return [code for name, code in BLOCK.findall(text) if name == language]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def run_notebook(name: str, folder: Path) -> list[Any]:
    """The code cells of a notebook after they were run."""
    notebook = read(RECIPES / name)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def pages_of(cells: list[Any]) -> list[str]:
    """The HTML that cells show."""
    shown = [output for cell in cells for output in cell.outputs if "data" in output]
    return [output["data"]["text/html"] for output in shown if "text/html" in output["data"]]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_tour_shows_its_answers_as_pictures(demo: Server, tmp_path: Path) -> None:
    pages = pages_of(run_notebook("tour.ipynb", tmp_path))
    assert len(pages) >= 12
    assert sum("<svg" in page for page in pages) >= 6
    assert not any("<script" in page for page in pages)
    for page in pages:
        for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
            check_picture(picture)


def check_picture(picture: str) -> None:
    """A picture that renders: well-formed, with finite coordinates inside its frame."""
    svg = ElementTree.fromstring(picture)
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for element in svg.iter():
        for name, value in element.attrib.items():
            assert not re.search(r"\b(nan|inf|None)\b", value), (name, value)
            if name in ("x", "x1", "x2", "cx") and not value.endswith("%"):
                assert -1 <= float(value) <= width + 1, (name, value)
            if name in ("y", "y1", "y2", "cy") and not value.endswith("%"):
                assert -1 <= float(value) <= height + 1, (name, value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_planning_notebook_says_where_the_budget_stops(demo: Server, tmp_path: Path) -> None:
    pages = pages_of(run_notebook("planning.ipynb", tmp_path))
    assert any("The budget pays for" in page for page in pages)
    assert any("fit the budget" in page for page in pages)


def test_notebooks_are_stored_without_output() -> None:
    for path in RECIPES.glob("*.ipynb"):
        cells = read(path).cells
        assert not any(cell.get("outputs") for cell in cells), path.name


def test_the_recipe_for_r_runs(demo: Server, tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        if os.environ.get("CI"):
            pytest.fail("R is missing: .ci/run installs it")
        pytest.skip("there is no R on this machine: apt-get install r-cran-httr2 r-cran-jsonlite")
    shutil.copy(RECIPES / "bursar.R", tmp_path)
    script = tmp_path / "recipe.R"
    script.write_text("\n".join(blocks("r.md", "r")))
    done = subprocess.run(
        ["Rscript", "--vanilla", str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"region\s+value\s+low\s+high", done.stdout)
    assert "north" in done.stdout
    assert re.search(r"\[1\] 2\.\d+", done.stdout)  # the largest epsilon that fits


def test_the_recipe_for_curl_runs(demo: Server) -> None:
    commands = [
        command.replace("\\\n", " ")
        for block in blocks("curl.md", "console")
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)
        if command.startswith("curl")
    ]
    assert len(commands) == 6
    for command in commands:
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        reply = json.loads(done.stdout)
        assert "type" not in reply, reply


def test_the_recipe_for_sql_runs(demo: Server, tmp_path: Path) -> None:
    code = "\n".join(blocks("from-sql.md", "python"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "mean_income" in done.stdout
    assert "costs ε 0.1" in done.stdout
