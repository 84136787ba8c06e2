"""Append an epoch: a file of new rows, which together with all earlier rows is the next version.

Versions never change. Running queries continue on the version they were charged for. An answer
about an older version is never returned as one about the new version. Card and loss stay. A row
stays in its epoch for ever.
"""

from dataclasses import dataclass, replace

from app.access import Principal, Role
from app.actions.datasets.clear_versions import ClearVersions
from app.actions.datasets.prepared_version import dropped_if_refused
from app.data.card import EPOCHS_MAX, Dataset, Epoch, Version
from app.data.columns import EpochColumn
from app.errors import Conflict, Invalid
from app.names import new_id
from app.ports.engines import Engines
from app.ports.registry import Datasets


@dataclass(slots=True)
class AppendEpoch:
    datasets: Datasets
    engines: Engines
    clear_versions: ClearVersions

    def __call__(
        self, principal: Principal, *, name: str, path: str, reason: str | None
    ) -> Dataset:
        principal.must_be(Role.ADMIN)
        before = self.datasets.find(name)
        if before.card.neighbours != "add_remove":
            # The public number of rows would be wrong, and so would the answers that used it.
            rule = "only for a dataset under add_remove: replace_one fixes the number of rows"
            raise Invalid.field("/append", rule)
        version = before.version
        declared = [each.high for each in before.card.columns if isinstance(each, EpochColumn)]
        most = min([EPOCHS_MAX, *declared])
        if version.number >= most:
            raise Conflict(f"This dataset has at most {most} epochs.")
        engine = self.engines.engine(before.source.engine)
        inspection = engine.inspect_epoch(before, path)
        epochs = (*version.appended, Epoch(path, inspection.digest))
        # The same seed keeps the same rows of a person as before.
        after = replace(
            before,
            version=Version(new_id("v"), version.number + 1, version.digest, version.seed, epochs),
        )
        engine.prepare(after)
        with dropped_if_refused(engine, after.version.id):
            stored = self.datasets.append(principal.name, before, after, inspection, reason=reason)
        self.clear_versions()
        return stored
