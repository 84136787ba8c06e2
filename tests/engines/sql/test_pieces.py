"""Large tallies: many small statements with the same numbers, and one large statement at a time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from app.engines import sql_engine
from app.engines.files.made_up_rows import MadeUpEngine
from app.engines.remote.engine import RemoteEngine
from app.engines.sql.tally_statement import Rendered, render
from app.queries.pieces import COMPARISONS_MAX, COUNTS_MAX, is_large, pieces
from app.queries.tally import (
    AnyOf,
    Compare,
    Condition,
    CountRows,
    CountWhere,
    OneOf,
    Split,
    Tally,
)
from tests.engines.reference import reference
from tests.engines.remote.tables import CARD, Room, Row, write_parquet

ROWS: list[Row] = [
    {"age": i % 103 if i % 7 else None, "income": i * 9.5, "rate": None}
    | {"city": None, "member": None, "born": None}
    for i in range(200)
]


def any_of(number: int, parts: int) -> Condition:
    signs: Any = (">=", "<", ">", "==")
    columns = ("age", "income")
    return AnyOf(
        tuple(
            Compare(columns[k % 2], signs[(number + k) % 4], (number + 7 * k) % 110)
            for k in range(parts)
        )
    )


def counts(predicates: int, parts: int, where: Condition | None = None) -> Tally:
    listed = tuple(CountWhere(any_of(i, parts)) for i in range(predicates))
    return Tally(where, (), listed)


LARGE = [
    counts(1000, 1),
    counts(1000, 8),
    counts(COUNTS_MAX + 1, 1, Compare("age", ">=", 18)),
    counts(40, 200),
    Tally(None, (), (CountWhere(OneOf("age", tuple(range(10_000)))),) * 3),
]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[Tally]:
    """The tallies of all statements, in order."""
    asked: list[Tally] = []

    def noted(layout: Any, tally: Tally) -> Rendered:
        asked.append(tally)
        return render(layout, tally)

    monkeypatch.setattr(sql_engine, "render", noted)
    return asked


@pytest.mark.parametrize("tally", LARGE)
def test_no_statement_of_many_counts_has_many_comparisons(
    tally: Tally, room: Room, statements: list[Tally]
) -> None:
    write_parquet(room.data / "t.parquet", ROWS)
    numbers = room.ask(room.prepared("t.parquet"), tally)
    assert numbers == reference(CARD, ROWS, tally)
    assert len(statements) > 1
    for statement in statements:
        assert len(statement.aggregates) <= COUNTS_MAX
        least = statement.leaves() <= COMPARISONS_MAX + 1 or len(statement.aggregates) == 1
        assert least, (statement.leaves(), len(statement.aggregates))


@pytest.mark.parametrize(
    "tally", [counts(COUNTS_MAX, 2), counts(2, 200), Tally(None, (), (CountRows(),))]
)
def test_a_small_tally_is_one_statement(tally: Tally) -> None:
    assert list(pieces(tally)) == [tally]


def test_only_engines_inside_this_process_divide_a_tally() -> None:
    """A database would read another snapshot for each statement."""
    assert not RemoteEngine.inside_process
    assert MadeUpEngine.inside_process


@pytest.fixture
def large_split() -> Tally:
    split = Split(tuple(any_of(i, 8) for i in range(COMPARISONS_MAX // 8 + 1)), (0, 1))
    tally = Tally(None, (), (CountRows(),), split)
    assert is_large(tally)
    return tally


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


def test_large_statements_run_one_at_a_time_and_small_ones_beside_them(
    room: Room, large_split: Tally, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(room.data / "t.parquet", ROWS)
    dataset = room.prepared("t.parquet")
    first, second, go_on = Event(), Event(), Event()

    def held(layout: Any, tally: Tally) -> Rendered:
        if tally.split is not None:
            (second if first.is_set() else first).set()
            go_on.wait(60)
        return render(layout, tally)

    monkeypatch.setattr(sql_engine, "render", held)
    answers = [threads.submit(room.ask, dataset, large_split) for _ in range(2)]
    assert first.wait(60)
    small = threads.submit(room.ask, dataset, Tally(None, (), (CountRows(),)))
    assert small.result(60) == ((len(ROWS),),)
    assert not second.wait(0.5), "two large statements at once"
    go_on.set()
    assert answers[0].result(60) == answers[1].result(60)
    assert second.is_set()
