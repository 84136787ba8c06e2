"""When two names of one book may both have cells: only if each person has one cell under both.

A query about a cell is charged to that cell alone, under any name. So the ledger's figure for a
cell covers all names only if each person is in the same cell under all of them. Queries to names
without cells are charged to every cell, so such names may hold any rows of the book.
"""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, select

from app.data.card import Card, Dataset
from app.data.columns import EpochColumn
from app.data.expressions import columns_of
from app.errors import Conflict
from app.store import tables
from app.store.administration import Change
from app.store.datasets.keyed_hashes import marked

WITHOUT_CELLS = "Register this name without cells: its questions are then charged to every cell."
FILES = "duckdb"  # its digest is a hash of the file's bytes; a table's digest describes its state


@dataclass(frozen=True, slots=True)
class CelledName:
    dataset_id: str
    engine: str
    digest: str
    epochs: int


def must_agree_on_cells(card: Card, other: Card) -> None:
    """Refuse two cards that would divide the same rows into different cells."""
    if _by_epochs(card) and _by_epochs(other):
        raise Conflict(
            "These data are registered under another name with cells by epoch. The same rows could "
            "be in different epochs of the two names, and both epochs' losses would fall on them. "
            "Declare no cells: questions are then charged to every cell."
        )
    if card.cells and other.cells and _partition(card) != _partition(other):
        raise Conflict(
            "These data are registered under another name with other cells; a loss in one "
            "partition says nothing about the other. Declare the same cells of the same "
            "column, or none."
        )


def must_hold_the_same_rows(
    change: Change, book_id: str, dataset: Dataset, whole_rows: str | None
) -> None:
    """Refuse cells for a name whose rows are not those of every other name with cells.

    `whole_rows`: hash of the dataset's rows (`engines/whole_row_hash.py`).
    """
    others = celled_names(change.connection, book_id)
    if dataset.card.cells is None or not others:
        return
    if any(other.epochs > 1 for other in others):
        raise Conflict(
            "These data are registered under another name with cells, and rows were appended "
            f"there. Both names must hold the same rows. {WITHOUT_CELLS}"
        )
    if not all(_same_rows(change, dataset, other, whole_rows) for other in others):
        raise Conflict(
            "These data are registered under another name with cells. Here the rows, the column "
            "names or the cells of some rows differ. A person could be in different cells under "
            "the two names, with more loss than the ledger shows. "
            f"{WITHOUT_CELLS}"
        )


def must_be_the_only_name_with_cells(connection: Connection, dataset: Dataset) -> None:
    """Refuse new rows for one of several names with cells: the other names would lack them."""
    if dataset.card.cells is None:
        return
    names = celled_names(connection, dataset.book_id)
    if any(name.dataset_id != dataset.id for name in names):
        raise Conflict(
            "These data have cells under another name too, and both must hold the same rows. "
            "Append to a name without cells, or register all rows together under a new name "
            "without cells: its questions are then charged to every cell."
        )


def celled_names(connection: Connection, book_id: str) -> list[CelledName]:
    datasets, versions = tables.datasets, tables.versions
    statement = (
        select(
            *(datasets.c.id, datasets.c.card, datasets.c.source),
            *(versions.c.number, versions.c.digest),
        )
        .join(versions, versions.c.id == datasets.c.version_id)
        .where(datasets.c.book_id == book_id)
    )
    return [
        CelledName(row.id, json.loads(row.source)["engine"], row.digest, row.number)
        for row in connection.execute(statement).all()
        if Card.model_validate_json(row.card).cells is not None
    ]


def cells_mark(dataset_id: str, whole_rows: str) -> str:
    """Text that identifies the whole rows of one name with cells."""
    return f"cells {dataset_id} {whole_rows}"


def _same_rows(change: Change, dataset: Dataset, other: CelledName, whole_rows: str | None) -> bool:
    """True if the file bytes or the hashes of whole rows are equal."""
    if dataset.source.engine == other.engine == FILES and dataset.version.digest == other.digest:
        return True
    return has_whole_rows(change, other.dataset_id, whole_rows)


def has_whole_rows(change: Change, dataset_id: str, whole_rows: str | None) -> bool:
    """True if the name was registered with these whole rows, each in its present cell."""
    if whole_rows is None:
        return False
    (mark,) = marked(change, cells_mark(dataset_id, whole_rows))
    known = tables.fingerprints
    statement = select(known.c.book_id).where(known.c.fingerprint == mark)
    return change.connection.execute(statement).first() is not None


def _by_epochs(card: Card) -> bool:
    return card.cells is not None and isinstance(card.column(card.cells.column), EpochColumn)


def _partition(card: Card) -> tuple[object, ...]:
    """Declarations that decide each person's cell.

    They are the edges and the column's declaration, which orders and clamps its values. For a
    derived column they include the declarations of the columns that it is computed from.
    """
    assert card.cells is not None
    column = card.column(card.cells.column)
    assert column is not None
    names = sorted(set() if column.derived is None else columns_of(column.derived))
    deciding = [column, *(each for name in names if (each := card.column(name)) is not None)]
    return card.cells, *(each.model_copy(update={"description": None}) for each in deciding)
