"""Register a dataset: its card is public, and its rows are read only to recognize them again."""

from dataclasses import dataclass

from app.access import Principal, Role
from app.actions.datasets.prepared_version import dropped_if_refused
from app.data.card import Card, ColumnPerson, Dataset, RowPerson, Source, Version
from app.errors import Invalid
from app.ledger.chain import SYSTEM_BOOK
from app.mechanisms.sampling.system import secret_text
from app.names import check_name, folded, new_id
from app.ports.engines import Engines
from app.ports.registry import Datasets


@dataclass(slots=True)
class RegisterDataset:
    datasets: Datasets
    engines: Engines

    def __call__(
        self,
        principal: Principal,
        *,
        name: str,
        description: str,
        source: Source,
        card: Card,
        reason: str | None,
        request: str | None,
        body: str,
    ) -> Dataset:
        principal.must_be(Role.ADMIN)
        if (earlier := self.datasets.remembered(request, body)) is not None:
            return earlier
        shown = check_name(name, "/name", forbidden="/")
        _check_names(shown, card)
        _check_cells(card)
        engine = self.engines.engine(source.engine)
        inspection = engine.inspect(source, card)
        # All names of a book keep the same rows of a person with more rows than are kept.
        seed = self.datasets.known_seed(inspection) or secret_text(32)
        dataset = Dataset(
            id=new_id("d"),
            name=shown,
            description=description,
            book_id="",  # the store finds the book of these rows
            card=card,
            source=source,
            version=Version(new_id("v"), 1, inspection.digest, seed),
            closed=False,
            created_at=0,
        )
        engine.prepare(dataset)
        with dropped_if_refused(engine, dataset.version.id):
            stored = self.datasets.register(
                principal.name, dataset, inspection, reason=reason, request=request, body=body
            )
        if stored.version.id != dataset.version.id:  # the same request was stored meanwhile
            engine.drop(dataset.version.id)
        return stored


def _check_names(shown: str, card: Card) -> None:
    if folded(shown) == SYSTEM_BOOK:
        raise Invalid.field("/name", "another name: this one is reserved for the ledger of people")
    for index, column in enumerate(card.columns):
        check_name(column.name, f"/columns/{index}/name")
    if isinstance(card.person, ColumnPerson):
        check_name(card.person.column, "/person/column")


def _check_cells(card: Card) -> None:
    """A person must be in one cell only.

    Even if one row of a person is kept, another name of the data may keep another row.
    """
    if card.cells is None or isinstance(card.person, RowPerson) or card.cells.one_per_person:
        return
    rule = (
        "cells need a row for each person, or the promise one_per_person: a person with "
        "several rows may be in two"
    )
    raise Invalid.field("/cells", rule)
