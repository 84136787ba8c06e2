"""Pictures of the pages, taken from the demo by a real browser.

`python -m tests.web.screenshots` (part of `make pictures`) asks for half a minute, so that the
burn-down has a shape, and writes the pictures that README and docs show. The tests take the same
pictures quickly into build/pages.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
from playwright.sync_api import Browser, sync_playwright

from tests.bursard import START_SECONDS, Server, wait_until
from tests.house.documentation import TOP
from tests.web.conftest import ARGUMENTS, CHROMIUM, NO_BROWSER

PICTURES = TOP / "docs" / "pictures"
PAUSE_SECONDS = 2.5
HEIGHT = 760


class Picture(NamedTuple):
    """One page as one person sees it. `{answered}` in its path is the last question."""

    person: str
    path: str
    theme: Literal["light", "dark"] = "light"
    width: int = 1180
    height: int = HEIGHT


ASK = (
    "/datasets/census/ask?kind=mean&f:column=income&by_column=region&amount=0.05&rows=7000"
    "&w_column=age&w_op=>%3D&w_value=18"
)
SHOWN = {
    "budgets": Picture("viewer", "/"),
    "account": Picture("analyst-1", "/datasets/census/budgets/analyst-1", height=1130),
    "account-dark": Picture("analyst-1", "/datasets/census/budgets/analyst-1", "dark"),
    "ask": Picture("analyst-1", ASK, height=1060),
    "answer": Picture("analyst-1", "/questions/{answered}", height=900),
    "grant": Picture("admin", "/datasets/census/budgets/analyst-1/grant", height=900),
    "phone": Picture("analyst-1", "/datasets/census/budgets/analyst-1", width=390, height=844),
}


@contextmanager
def demo(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The demo on a free port: its address, and the keys of its people."""
    log = folder / "log"
    names = {name: text for name, text in os.environ.items() if not name.startswith("BURSAR")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", "from app.cli import main; main()", "demo"],
            cwd=TOP,
            env={**names, "BURSAR_HOME": str(folder / "home"), "BURSAR_PORT": "0"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, log)
    try:
        wait_until(server._is_ready, START_SECONDS, "the demo is not ready")
        yield server.url, json.loads((folder / "home" / "demo-keys.json").read_text())
    finally:
        server.stop()


def ask(url: str, keys: dict[str, str], pause: float) -> str:
    """Ask as the two analysts do, and return the id of the last question."""
    answered = ""
    for person, dataset, epsilon, query in _questions():
        reply = httpx.post(
            f"{url}/v1/queries",
            headers={"Authorization": f"Bearer {keys[person]}"},
            json={"dataset": dataset, "query": query, "privacy": {"epsilon": epsilon}},
            timeout=60,
        )
        assert reply.status_code == 200, reply.text
        if person == "analyst-1":
            answered = reply.json()["id"]
        time.sleep(pause)
    return answered


def _questions() -> Iterator[tuple[str, str, float, dict[str, Any]]]:
    for age, epsilon in ((18, 0.1), (25, 0.05), (40, 0.2), (50, 0.1), (65, 0.3), (80, 0.1)):
        older = {"column": "age", "op": ">=", "value": age}
        yield "analyst-1", "census", epsilon, {"kind": "count", "where": older}
    by_region = {"kind": "mean", "column": "hours", "group_by": ["region"]}
    yield "analyst-2", "census", 0.25, by_region
    yield "analyst-2", "rand-hie", 2.75, {"kind": "count"}
    yield "analyst-1", "census", 0.4, {"kind": "median", "column": "income"}
    adults = {"column": "age", "op": ">=", "value": 18}
    income = {"kind": "mean", "column": "income", "group_by": ["region"], "where": adults}
    yield "analyst-1", "census", 0.2, income


def take(
    browser: Browser, url: str, keys: dict[str, str], answered: str, folder: Path
) -> list[Path]:
    """Write all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, picture in SHOWN.items():
        context = browser.new_context(
            base_url=url,
            color_scheme=picture.theme,
            viewport={"width": picture.width, "height": picture.height},
        )
        page = context.new_page()
        page.goto(f"/sign-in#key={keys[picture.person]}")
        page.wait_for_url("**/")
        page.goto(picture.path.format(answered=answered))
        page.wait_for_load_state("load")
        charts = page.locator("figure[data-chart]")
        for index in range(charts.count()):
            charts.nth(index).locator("canvas").wait_for()
        if picture.path == "/":
            page.locator("svg.spark").first.wait_for()
        paths.append(folder / f"{name}.png")
        page.screenshot(path=paths[-1])
        context.close()
    return paths


def main() -> None:
    if CHROMIUM is None:
        raise SystemExit(NO_BROWSER)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        with demo(Path(folder)) as (url, keys):
            for path in take(browser, url, keys, ask(url, keys, PAUSE_SECONDS), PICTURES):
                print(path.relative_to(TOP))
        browser.close()


if __name__ == "__main__":
    main()
