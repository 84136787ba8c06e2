"""`make docs` builds a site whose links hold and which loads nothing from elsewhere."""

import time
from pathlib import Path

import pytest

from docs.tools import build_site
from tests.house.documentation import TOP, pages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    began = time.monotonic()
    built = build_site.build(tmp_path_factory.mktemp("build"))
    print(f"the site: {time.monotonic() - began:.1f} s")
    return built


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in pages():
        name = page.relative_to(TOP).with_suffix(".html")
        built = name.with_name("index.html") if name.name == "README.html" else name
        assert (site / built).is_file(), built
        assert "<h1" in (site / built).read_text(encoding="utf-8")


def test_the_contents_have_a_section_for_each_reader() -> None:
    titles = [next(iter(section)) for section in build_site.contents()]
    readers = ["For analysts", "For data owners", "For operators", "For developers"]
    assert titles == ["Bursar", "Contents", *readers]


def test_pictures_and_styles_are_there(site: Path) -> None:
    page = build_site.Page((site / "docs" / "guide" / "epsilon.html").read_text(encoding="utf-8"))
    loaded = {reference.target for reference in page.references if reference.loaded}
    assert {"tradeoff.svg", "error.svg", "burn-down.svg"} <= loaded
    assert any(target.endswith(".css") for target in loaded)
    assert build_site.problems(site) == []


@pytest.mark.parametrize(
    ("planted", "message"),
    [
        ('<a href="gone.html">x</a>', "there is no gone.html"),
        ('<a href="other.html#gone">x</a>', "no such heading"),
        ('<a href="../../secret">x</a>', "there is no ../../secret"),
        ('<img src="gone.svg">', "there is no gone.svg"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example"),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', "loads //fonts.example"),
        ('<link rel="preconnect" href="https://fonts.example">', "loads https://fonts.example"),
        ('<pre class="mermaid">graph</pre>', "has mermaid"),
    ],
)
def test_a_planted_problem_is_noticed(planted: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<h1 id="here">x</h1><a href="https://example.org">x</a>')
    (tmp_path / "index.html").write_text('<a href="other.html#here">x</a>')
    assert build_site.problems(tmp_path) == []
    (tmp_path / "index.html").write_text(planted)
    (problem,) = build_site.problems(tmp_path)
    assert message in problem


def test_an_outside_font_in_a_style_sheet_is_noticed(tmp_path: Path) -> None:
    sheet = tmp_path / "x.css"
    sheet.write_text("@import 'own.css'; a { background: url(data:image/png;base64,AA) }")
    assert build_site.problems(tmp_path) == []
    sheet.write_text("@font-face { src: url('https://fonts.example/x.woff2') }")
    assert build_site.problems(tmp_path) == ["x.css: loads https://fonts.example/x.woff2"]
