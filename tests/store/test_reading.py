"""How texts are read stays with a dataset, and names of one book with cells must agree on it."""

import json

import pytest

from app.data.card import PLAIN, WITH_FRACTIONS, Card, Dataset, Inspection, Source, Version
from app.errors import Conflict
from app.names import new_id
from tests.store.ledgers import CARD, CELLED, Ledger, execute


def forget_reading(ledger: Ledger) -> None:
    """As ledgers were written before there was another reading."""
    source = json.dumps({"engine": "duckdb", "path": "x.csv", "connection": None})
    statement = "UPDATE datasets SET source = :source WHERE id = :id"
    execute(ledger.database, statement, source=source, id=ledger.dataset.id)


def again(ledger: Ledger, card: Card, reading: int) -> Dataset:
    """The same rows under another name."""
    first = ledger.dataset.name
    source = Source("duckdb", f"{first}.csv", reading=reading)
    version = Version(new_id("v"), 1, "digest", "seed")
    name = f"{first} {new_id('n')}"
    dataset = Dataset(new_id("d"), name, "", "", card, source, version, False, 0)
    inspection = Inspection(digest="digest", content=f"rows of {first}", place=f"{first}.csv")
    return ledger.datasets.register(
        "admin", dataset, inspection, reason=None, request=None, body=""
    )


def test_an_older_dataset_keeps_the_reading_it_had(ledger: Ledger) -> None:
    assert ledger.datasets.find(ledger.dataset.name).source.reading == WITH_FRACTIONS
    forget_reading(ledger)
    assert ledger.datasets.find(ledger.dataset.name).source.reading == PLAIN


def test_names_with_cells_are_read_alike_or_refused(celled: Ledger) -> None:
    same = Card.model_validate(CELLED)
    again(celled, same, WITH_FRACTIONS)
    with pytest.raises(Conflict, match="read texts"):
        again(celled, same, PLAIN)
    again(celled, CARD, PLAIN)  # without cells it is charged to all of them


def test_an_older_name_with_cells_keeps_newer_ones_out(celled: Ledger) -> None:
    forget_reading(celled)
    with pytest.raises(Conflict, match="read texts"):
        again(celled, Card.model_validate(CELLED), WITH_FRACTIONS)
    joined = again(celled, Card.model_validate(CELLED), PLAIN)
    assert joined.book_id == celled.dataset.book_id
