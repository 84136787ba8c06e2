"""The pages under docs/ as the tests read them: sections, JSON examples, and shown answers."""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
DOCS = TOP / "docs"
ROUNDING = 1e-4  # answers are shown with five digits
_BLOCK = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(r"\s*Answer, shortened:\s*")


def pages() -> list[Path]:
    """All pages for readers; decisions are records and excluded."""
    return sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "decisions")


def section(path: Path, title: str) -> str:
    """The text below a heading, up to the next heading of the same or a higher level."""
    text = re.sub(r"^```.*?^```$", _without_headings, path.read_text(), flags=re.M | re.S)
    heading = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert heading is not None, f"{path.name} has no section {title}"
    rest = text[heading.end() :]
    end = re.search(rf"^#{{1,{len(heading[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def _without_headings(block: re.Match[str]) -> str:
    return re.sub(r"^# ", " # ", block[0], flags=re.MULTILINE)


def json_values(block: str) -> list[Any]:
    """The JSON values of a block in order. Raises ValueError for anything else."""
    decoder, values, rest = json.JSONDecoder(), [], block.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].strip()
    return values


def examples(text: str) -> list[tuple[Any, Any]]:
    """Every JSON value of the text, with the answer shown for it, or None."""
    blocks = list(_BLOCK.finditer(text))
    pairs: list[tuple[Any, Any]] = []
    end = 0
    for block in blocks:
        values = json_values(block[1])
        if pairs and _ANSWER.fullmatch(text[end : block.start()]):
            (answer,) = values
            pairs[-1] = pairs[-1][0], answer
        else:
            pairs += [(value, None) for value in values]
        end = block.end()
    return pairs


def check_shown(shown: Any, got: Any, free: Collection[str], at: str = "", name: str = "") -> None:
    """Compare a shown reply with a real one; chance decides the fields in `free`.

    A reply may have more fields than are shown; lists are shown whole.
    """
    if isinstance(shown, dict):
        assert isinstance(got, dict), at
        for member, value in shown.items():
            assert member in got, f"{at}/{member}"
            check_shown(value, got[member], free, f"{at}/{member}", member)
    elif isinstance(shown, list):
        assert isinstance(got, list), at
        assert len(shown) == len(got), at
        for index, (one, other) in enumerate(zip(shown, got, strict=True)):
            check_shown(one, other, free, f"{at}/{index}")
    elif name in free:
        assert _kind(shown) == _kind(got), at
    elif _kind(shown) == "number" == _kind(got):
        assert abs(shown - got) <= ROUNDING * abs(got), at
    else:
        assert shown == got, at


def _kind(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if number else type(value).__name__
