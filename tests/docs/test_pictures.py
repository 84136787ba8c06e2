"""The pictures and tables of the guide are those that their scripts make."""

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from app.demo import census
from app.demo.cards import CENSUS
from benchmarks.harness.prepared import card_of, prepared
from docs.tools import draw_guide, measure_guide
from tests.house.documentation import DOCS, TOP

RUNS = 400


def test_the_pictures_are_drawn_from_the_code() -> None:
    stale = [path.name for path, text in draw_guide.pictures().items() if path.read_text() != text]
    assert stale == [], "run `make pictures`"


@pytest.mark.parametrize("name", draw_guide.DRAWN)
def test_a_picture_is_complete_and_shown(name: str) -> None:
    text = (DOCS / "guide" / name).read_text()
    root = ElementTree.fromstring(text)  # our own file
    assert root.get("role") == "img"
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert any(f"({name})" in page.read_text() for page in (DOCS / "guide").glob("*.md"))


def test_the_table_of_errors_is_the_measured_one() -> None:
    page = measure_guide.PAGE.read_text()
    assert page == measure_guide.page_with(page, measure_guide.read_rows()), "run `make plots`"


def test_the_figures_of_the_attacker_are_those_of_the_curves() -> None:
    page = (DOCS / "guide" / "epsilon.md").read_text()
    for price in ("0.1", "1", "3"):
        shares = [100 * draw_guide.caught(price, accused) for accused in (0.01, 0.05, 0.1)]
        line = " | ".join(f"at most {share:.1f} %" for share in shares)
        assert f"| epsilon {price} | {line} |" in page


def test_the_figures_of_the_worked_example_hold() -> None:
    page = (DOCS / "guide" / "currencies.md").read_text()
    assert "At epsilon 0.02, 150 in `pure` and 925 in `zcdp`." in page
    assert (draw_guide.counts_of("pure", "0.02"), draw_guide.counts_of("zcdp", "0.02")) == (
        150,
        925,
    )
    assert draw_guide.half_width(0.0188) <= 160
    assert draw_guide.counts_of("zcdp", "0.0188") >= 1000  # "accept ±160 rows"


@pytest.mark.statistical
def test_some_errors_are_measured_again(tmp_path: Path) -> None:
    """False alarms: below 1e-5. The median of 400 errors has a standard error of at most 8 %, that
    of 1,000 of 5 %; a factor of 1.5 is more than four times both together."""
    rows = {(row.question, row.mechanism, row.price): row for row in measure_guide.read_rows()}
    with prepared(tmp_path, card_of(CENSUS), census.write) as bench:
        subjects = measure_guide.subjects(tmp_path / "data" / "rows.parquet")
        for subject in (one for one in subjects if one.query["kind"] in ("mean", "histogram")):
            for mechanism, price, _ in subject.ways:
                again = measure_guide.measure(bench, subject, (mechanism, price, RUNS))
                shown = rows[subject.title, mechanism, price]
                assert 1 / 1.5 < (again.median + 0.5) / (shown.median + 0.5) < 1.5, shown


def test_a_stale_page_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(TOP / "docs" / "guide", tmp_path / "guide")
    page = tmp_path / "guide" / "currencies.md"
    page.write_text(page.read_text().replace("3,701", "3,702"))
    monkeypatch.setattr(draw_guide, "CURRENCIES_PAGE", page)
    assert draw_guide.currencies_page() != page.read_text()
