"""Names of one book that declare cells, and the seed they share, on both stores."""

from typing import Any

import pytest

from app.data.card import Card
from app.data.inspection import Inspection
from app.errors import Conflict
from tests.store.ledgers import CELLED, Ledger, register

CARD = Card.model_validate(CELLED)


def join(ledger: Ledger, name: str, **changes: Any) -> Any:
    """Register another name for data with equal columns."""
    given = {"content": "the same", "place": f"{ledger.dataset.name} {name}.csv", **changes}
    return register(ledger.datasets, f"{ledger.dataset.name} {name}", **given)


def content(ledger: Ledger) -> str:
    return f"the same as {ledger.dataset.name}"


def test_names_with_cells_have_the_same_whole_rows(ledger: Ledger) -> None:
    same: dict[str, Any] = {"content": content(ledger), "card": CARD}
    first = join(ledger, "first", **same, digest="1", celled="whole")
    assert join(ledger, "second", **same, digest="2", celled="whole").book_id == first.book_id
    for other in ({"digest": "3", "celled": "else"}, {"digest": "3"}):
        with pytest.raises(Conflict, match="without cells"):
            join(ledger, "third", **same, **other)
    plain = join(ledger, "third", content=content(ledger), digest="3")
    assert plain.book_id == first.book_id
    with pytest.raises(Conflict, match="without cells"):
        join(ledger, "fourth", **same, digest="3", celled="else")


def test_a_name_without_a_hash_of_whole_rows_is_matched_by_its_bytes(ledger: Ledger) -> None:
    """An earlier release registered such names."""
    same: dict[str, Any] = {"content": content(ledger), "card": CARD}
    first = join(ledger, "first", **same, digest="1")
    with pytest.raises(Conflict, match="without cells"):
        join(ledger, "second", **same, digest="2", celled="whole")
    second = join(ledger, "second", **same, digest="1", celled="whole")
    assert second.book_id == first.book_id
    with pytest.raises(Conflict, match="without cells"):
        join(ledger, "third", **same, digest="2", celled="whole")


def test_a_hash_matches_only_names_of_its_own_book(ledger: Ledger) -> None:
    """Names without a hash and names of other books do not match."""
    here: dict[str, Any] = {"content": content(ledger), "card": CARD}
    there: dict[str, Any] = {"content": f"not {content(ledger)}", "card": CARD}
    join(ledger, "first", **here, digest="1", celled="one")
    join(ledger, "alien", **there, digest="2", celled="two")
    with pytest.raises(Conflict, match="without cells"):
        join(ledger, "second", **here, digest="2", celled="two")


def test_a_name_that_joins_a_book_takes_the_seed_of_its_first_name(ledger: Ledger) -> None:
    mine = content(ledger)
    rows = Inspection("1", mine, "nowhere.csv")
    assert ledger.datasets.known_seed(rows) is None
    first = join(ledger, "first", content=mine, seed="one")
    assert ledger.datasets.known_seed(rows) == "one"
    with pytest.raises(Conflict, match="try again"):
        join(ledger, "second", content=mine, seed="two")
    second = join(ledger, "second", content=mine, seed="one")
    assert (second.book_id, second.version.seed) == (first.book_id, "one")
    two_books = Inspection("1", mine, f"{ledger.dataset.name}.csv")
    assert ledger.datasets.known_seed(two_books) is None, (
        "a registration with another seed is refused"
    )
