"""Declare a new version of rows that have changed in place.

A source that differs from the registered one is not queried. Declared again, it is the same dataset
with the same book: the spend stays, because the persons in it are the same or new ones.

Refused if epochs were appended, because a row stays in its epoch. Different rows are refused in two
more cases. With cells, a person may have moved to another cell, and the losses of both would fall
on them. Under replace_one, their public number would be declared without being counted.

`engine.prepare`, the check that queries pass, also decides whether anything has changed. So this
never reports "nothing" while queries are refused.
"""

from dataclasses import dataclass, replace

from app.access import Principal, Role
from app.actions.datasets.clear_versions import ClearVersions
from app.actions.datasets.prepared_version import dropped_if_refused
from app.data.card import Dataset, Version
from app.data.inspection import Inspection
from app.errors import Conflict, EngineUnavailable, FieldError, Invalid, SourceChanged
from app.names import new_id
from app.ports.engines import Engine, Engines
from app.ports.registry import Datasets

LOOKS_MAX = 3
NOTHING = "The source is what was registered: there is nothing to declare."
NOT_COUNTED = (
    "The rows have changed, but the database has not counted the writes yet. Nothing was declared; "
    "try again in a few seconds."
)
CHANGING = "The source keeps changing while it is read. Nothing was declared; try again."


@dataclass(slots=True)
class RefreshDataset:
    datasets: Datasets
    engines: Engines
    clear_versions: ClearVersions

    def __call__(self, principal: Principal, *, name: str, reason: str | None) -> Dataset:
        principal.must_be(Role.ADMIN)
        before = self.datasets.find(name)
        if before.version.number > 1:
            rule = "only for a dataset without appended epochs: a row stays in its epoch for ever"
            raise Invalid.field("/refresh", rule)
        engine = self.engines.engine(before.source.engine)
        inspection = self._changed(engine, before)
        self._must_be_free_to_change(before, inspection)
        version = Version(new_id("v"), 1, inspection.digest, before.version.seed)
        after = replace(before, version=version)
        try:
            engine.prepare(after)
        except SourceChanged:
            raise EngineUnavailable(CHANGING) from None
        with dropped_if_refused(engine, after.version.id):
            stored = self.datasets.refresh(principal.name, before, after, inspection, reason=reason)
        self.clear_versions()
        return stored

    def _changed(self, engine: Engine, before: Dataset) -> Inspection:
        """Inspect the source, if queries about it are refused. Raises Conflict if they are not."""
        for _ in range(LOOKS_MAX):
            inspection = _inspected(engine, before)
            if inspection.digest != before.version.digest:
                return inspection
            if not engine.has_prepared_files and not self.datasets.holds(before, inspection):
                raise EngineUnavailable(NOT_COUNTED)
            try:
                engine.prepare(before)
            except SourceChanged:
                continue  # it changed after it was inspected
            raise Conflict(NOTHING)
        raise EngineUnavailable(CHANGING)

    def _must_be_free_to_change(self, before: Dataset, inspection: Inspection) -> None:
        """Refuse different rows under replace_one or with cells.

        The same rows are always allowed: then only the state of the table has changed. With cells
        whole rows are compared, because equal columns do not show each person's cell.
        """
        replaced = before.card.neighbours == "replace_one"
        if replaced and not self.datasets.holds(before, inspection):
            rule = "only for a dataset under add_remove: replace_one fixes the number of rows"
            raise Invalid.field("/refresh", rule)
        if before.celled and not self.datasets.holds_whole_rows(before, inspection):
            rule = "only for a dataset without cells: a person may be in another cell than before"
            raise Invalid.field("/refresh", rule)


def _inspected(engine: Engine, before: Dataset) -> Inspection:
    try:
        return engine.inspect(before.source, before.card)
    except Invalid as unfit:  # it names fields of a registration, which this request has not
        rules = (f"{each.pointer} as it was registered: {each.rule}" for each in unfit.fields)
        fields = [FieldError("/refresh", rule) for rule in rules]
        raise Invalid("/refresh: a source that fits the registered card", *fields) from None
