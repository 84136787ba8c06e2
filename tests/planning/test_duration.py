"""Public durations: they count every statement that a question needs."""

import json

import pytest

from app.data.card import Card
from app.mechanisms.work import Work
from app.planning.duration import ROW, SPEEDS, slot_seconds
from app.queries.pieces import pieces, pieces_needed
from app.queries.tally import Compare, CountRows, CountWhere, Tally

CARD = Card.model_validate_json(
    json.dumps(
        {
            "person": {"kind": "row"},
            "neighbours": "add_remove",
            "columns": [{"name": "age", "type": "integer", "low": 0, "high": 120}],
        }
    )
)


def work_of(predicates: int) -> Work:
    counts = tuple(CountWhere(Compare("age", ">=", number)) for number in range(predicates))
    return Work.of(Tally(None, (), counts))


@pytest.mark.parametrize("predicates", [1, 64, 65, 1000])
def test_a_slot_knows_the_number_of_pieces(predicates: int) -> None:
    tally = Tally(None, (), (CountWhere(Compare("age", ">=", 1)),) * predicates)
    work = Work.of(tally)
    assert pieces_needed(work.conditional_counts, work.leaves) == len(list(pieces(tally)))


def test_each_piece_adds_a_statement_that_reads_every_row() -> None:
    work, speed = work_of(65), SPEEDS["duckdb"]
    together = slot_seconds(work_of(64), CARD, "duckdb")
    least = 2 * (speed.statement + 100_000 * ROW)
    assert slot_seconds(work, CARD, "duckdb") - together >= least


@pytest.mark.parametrize("engine", ["postgresql", "spark"])
def test_a_database_runs_one_statement(engine: str) -> None:
    slot = slot_seconds(work_of(1000), CARD, engine)
    assert slot < 2 * slot_seconds(work_of(500), CARD, engine)


def test_a_conditional_count_takes_longer_than_a_count_of_rows() -> None:
    plain = Work.of(Tally(None, (), (CountRows(),) * 20))
    assert slot_seconds(work_of(20), CARD, "duckdb") > slot_seconds(plain, CARD, "duckdb")
