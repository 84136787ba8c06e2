"""Every Python and console block of the guide runs against a demo, page by page."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import bursar
from tests.bursard import Server
from tests.docs.blocks import Page, check_output, commands, environment_of
from tests.house.documentation import DOCS, TOP

GUIDE = DOCS / "guide"
PAGES = [*sorted(GUIDE.glob("*.md")), TOP / "client" / "README.md"]
WITH_BLOCKS = [
    page for page in PAGES if re.search(r"^ *```(python|console)$", page.read_text(), re.M)
]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Server]:
    settings = {"BURSAR_HOME": str(tmp_path / "home"), "BURSAR_PORT": "0"}
    server = Server.start(settings, tmp_path / "log", command="demo")
    yield server
    server.stop()


@pytest.mark.parametrize("path", WITH_BLOCKS, ids=lambda path: str(path.relative_to(TOP)))
def test_every_block_of_a_page_runs(
    demo: Server, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    keys = json.loads((home / "demo-keys.json").read_text())
    environment = environment_of(demo.url, keys, home)
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    connect = bursar.connect
    clients = []

    def connect_and_close_later() -> bursar.Client:
        clients.append(connect())
        return clients[-1]

    monkeypatch.setattr(bursar, "connect", connect_and_close_later)
    began = time.monotonic()
    count = Page(path, home / "data", environment).run()
    for client in clients:
        client.close()
    print(f"{path.name}: {count} blocks, {time.monotonic() - began:.1f} s")


def test_the_table_of_counts_is_that_of_the_service(demo: Server, tmp_path: Path) -> None:
    """The script computes the table beside the service; here the service itself is asked."""
    key = json.loads((tmp_path / "home" / "demo-keys.json").read_text())["viewer"]
    page = (GUIDE / "currencies.md").read_text()
    head, _, *lines = re.findall(r"^\| (.*) \|$|^\|(---)", page.split("counts: begin")[1], re.M)
    prices = head[0].split(" | ")[1:]
    rows = [line[0].split(" | ") for line in lines if line[0].startswith("`")]
    assert len(rows) == 5
    for currency, *counts in rows:
        terms = {"currency": currency.strip("`"), "epsilon": 3}
        terms |= {} if terms["currency"] == "pure" else {"delta": 1e-6}
        for price, count in zip(prices, counts, strict=True):
            body = {"dataset": "census", "query": {"kind": "count"}, "account": terms}
            reply = httpx.post(
                f"{demo.url}/v1/queries/preview",
                headers={"Authorization": f"Bearer {key}"},
                json={**body, "privacy": {"epsilon": price}},
            )
            assert reply.json()["questions_left"] == int(count.replace(",", "")), (currency, price)


def test_a_different_output_is_noticed() -> None:
    check_output("charged ε 0.1; ...\n", "charged ε 0.2; ε 2.8 left; laplace\n")
    check_output("a 1\n...\nb 2", "a  3\nsomething\nb 4\nmore")
    for printed in ("", "charged nothing", "b 2\na 1"):
        with pytest.raises(AssertionError, match="not printed"):
            check_output("a 1\n...\nb 2", printed)


def test_commands_may_have_several_lines() -> None:
    block = "$ curl -d '\n  {}'\n{\"a\": 1}\n$ bursar x \\\n  y\nz\n"
    assert commands(block) == [("curl -d '\n  {}'", '{"a": 1}\n'), ("bursar x \\\n  y", "z\n")]
