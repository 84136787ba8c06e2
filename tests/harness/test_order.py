"""The longest files start first, and no test is lost or moved within its file."""

from dataclasses import dataclass
from typing import Any, cast

from tests.bursard import CHECKOUT
from tests.order import LONGEST, longest_first


@dataclass(frozen=True)
class Item:
    nodeid: str


def test_long_files_come_first_in_their_order_and_others_keep_theirs() -> None:
    first, second = (f"tests/{name}" for name in LONGEST[:2])
    names = ["tests/b.py::x", f"{second}::z", f"{second}::a", "tests/a.py::y", f"{first}::m[1]"]
    items = cast("Any", [Item(name) for name in names])
    found = [item.nodeid for item in longest_first(items)]
    assert found == [names[4], names[1], names[2], names[0], names[3]]


def test_every_long_file_exists_once() -> None:
    assert len(set(LONGEST)) == len(LONGEST)
    for name in LONGEST:
        assert (CHECKOUT / "tests" / name).is_file(), name
