"""Text reading rules belong to a dataset; names with cells in one book must use the same rules."""

import json

import pytest

from app.data.card import PLAIN, WITH_FRACTIONS, Card, Dataset, Inspection, Source, Version
from app.errors import Conflict
from app.names import new_id
from tests.store.ledgers import CARD, CELLED, Ledger, execute


def forget_reading(ledger: Ledger) -> None:
    """Remove the reading rules, as in ledgers written before a second set of rules existed."""
    source = json.dumps({"engine": "duckdb", "path": "x.csv", "connection": None})
    statement = "UPDATE datasets SET source = :source WHERE id = :id"
    execute(ledger.database, statement, source=source, id=ledger.dataset.id)


def again(ledger: Ledger, card: Card, reading: int) -> Dataset:
    """Register the same rows under another name."""
    first = ledger.dataset.name
    source = Source("duckdb", f"{first}.csv", reading=reading)
    version = Version(new_id("v"), 1, "digest", "seed")
    name = f"{first} {new_id('n')}"
    dataset = Dataset(new_id("d"), name, "", "", card, source, version, False, 0)
    inspection = Inspection(digest="digest", content=f"rows of {first}", place=f"{first}.csv")
    return ledger.datasets.register(
        "admin", dataset, inspection, reason=None, request=None, body=""
    )


def test_an_older_dataset_keeps_its_reading_rules(ledger: Ledger) -> None:
    assert ledger.datasets.find(ledger.dataset.name).source.reading == WITH_FRACTIONS
    forget_reading(ledger)
    assert ledger.datasets.find(ledger.dataset.name).source.reading == PLAIN


def test_names_with_cells_need_the_same_reading_rules(celled: Ledger) -> None:
    same = Card.model_validate(CELLED)
    again(celled, same, WITH_FRACTIONS)
    with pytest.raises(Conflict, match="parsed texts"):
        again(celled, same, PLAIN)
    again(celled, CARD, PLAIN)  # without cells it is charged to every cell


def test_an_older_name_with_cells_excludes_names_with_newer_rules(celled: Ledger) -> None:
    forget_reading(celled)
    with pytest.raises(Conflict, match="parsed texts"):
        again(celled, Card.model_validate(CELLED), WITH_FRACTIONS)
    joined = again(celled, Card.model_validate(CELLED), PLAIN)
    assert joined.book_id == celled.dataset.book_id
