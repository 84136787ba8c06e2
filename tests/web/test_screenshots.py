"""Pictures of the pages: taken in every run, and those that the documentation shows."""

import re
import struct
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.house.documentation import TOP
from tests.web.screenshots import PICTURES, SHOWN, ask, demo, take

LINK = re.compile(r"\]\((?:[^)]*/)?pictures/([a-z-]+\.png)\)")


def size(path: Path) -> tuple[int, int]:
    """Width and height, from the header of a PNG file."""
    header = path.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n", path
    width, height = struct.unpack(">II", header[16:24])
    return width, height


@pytest.mark.served
def test_pictures_are_taken_of_the_demo(browser: Browser, tmp_path: Path) -> None:
    with demo(tmp_path) as (url, keys):
        paths = take(browser, url, keys, ask(url, keys, 0), TOP / "build" / "pages")
    assert {path.stem: size(path) for path in paths} == {
        name: (picture.width, picture.height) for name, picture in SHOWN.items()
    }


def test_the_documentation_shows_the_pictures_of_this_program() -> None:
    pages = [TOP / "README.md", *(TOP / "docs").rglob("*.md")]
    linked = {name for page in pages for name in LINK.findall(page.read_text(encoding="utf-8"))}
    assert linked == {path.name for path in PICTURES.glob("*.png")}
    assert {Path(name).stem for name in linked} == set(SHOWN)
    for name, picture in SHOWN.items():
        assert size(PICTURES / f"{name}.png") == (picture.width, picture.height)
