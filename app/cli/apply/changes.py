"""Changes of people and datasets that a file asks for, each with its before and after."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.access import Analyst, Role
from app.api.analysts import group_names
from app.cli.apply.lines import SourceLines
from app.cli.apply.models import ApplyFile, DatasetItem, PersonItem
from app.cli.opened import OPERATOR, operator
from app.data.card import Card, Dataset
from app.errors import NotFound
from app.names import check_name, folded

if TYPE_CHECKING:
    from app.main.stores import Stores

REASON = "applied by the operator"
RANKS = (Role.VIEWER, Role.ANALYST, Role.ADMIN)
Field = tuple[str, Any, Any]  # name, before, after


@dataclass(frozen=True, slots=True)
class PlannedChange:
    action: str  # create or change
    what: str
    pointer: str  # in the file
    fields: tuple[Field, ...]
    make: Callable[[], object]
    takes: tuple[str, ...] = ()  # what it takes away, in words
    allowed: bool = False  # whether the file allows that

    def rows(self) -> Iterator[dict[str, Any]]:
        for name, before, after in self.fields:
            yield {
                "action": self.action,
                "what": self.what,
                "field": name,
                "before": before,
                "after": after,
            }


def reason_of(file: ApplyFile, item: Any) -> str:
    return item.reason or file.reason or REASON


# People


def planned_people(
    stores: "Stores", file: ApplyFile, read: SourceLines
) -> Iterator[tuple[str, Role, tuple[str, ...], PlannedChange | None]]:
    """Each person's name, role and groups afterwards, and the change that leads there."""
    names: set[str] = set()
    for index, item in enumerate(file.people):
        pointer = f"/people/{index}"
        with read.at(pointer):
            name = check_name(item.name, "/name", forbidden="/*:")
            groups = group_names(item.groups)
        if folded(name) in names:
            raise read.wrong(f"{pointer}/name", "this person is there twice")
        names.add(folded(name))
        reason = reason_of(file, item)
        try:
            before = stores.people.find(name)
        except NotFound:
            yield _new_person(stores, item, pointer, name, groups or (), reason)
        else:
            yield _changed_person(stores, item, pointer, before, groups, reason)


def _new_person(
    stores: "Stores",
    item: PersonItem,
    pointer: str,
    name: str,
    groups: tuple[str, ...],
    reason: str,
) -> tuple[str, Role, tuple[str, ...], PlannedChange]:
    role, enabled = item.role or Role.ANALYST, item.enabled is not False

    def make() -> None:
        stores.people.create(OPERATOR, name, role, reason, None, "", groups)
        if not enabled:
            stores.people.alter(
                OPERATOR, name, role=None, enabled=False, groups=None, reason=reason
            )

    fields: list[Field] = [("role", None, role.value)]
    fields += [("groups", None, list(groups))] if groups else []
    fields += [] if enabled else [("enabled", None, False)]
    change = PlannedChange("create", f"person {name}", pointer, tuple(fields), make)
    return name, role, groups, change


def _changed_person(
    stores: "Stores",
    item: PersonItem,
    pointer: str,
    before: Analyst,
    groups: tuple[str, ...] | None,
    reason: str,
) -> tuple[str, Role, tuple[str, ...], PlannedChange | None]:
    role = before.role if item.role is None else item.role
    enabled = before.enabled if item.enabled is None else item.enabled
    after = before.groups if groups is None else groups
    fields: list[Field] = []
    takes = []
    if role is not before.role:
        fields.append(("role", before.role.value, role.value))
        if RANKS.index(role) < RANKS.index(before.role):
            takes.append(f"the role {before.role.value}")
    if set(map(folded, after)) != set(map(folded, before.groups)):
        fields.append(("groups", list(before.groups), list(after)))
        left = [group for group in before.groups if folded(group) not in set(map(folded, after))]
        takes += [f"the group {group}" for group in left]
    if enabled is not before.enabled:
        fields.append(("enabled", before.enabled, enabled))
        takes += [] if enabled else ["all access"]
    if not fields:
        return before.name, role, after, None
    change = PlannedChange(
        "change",
        f"person {before.name}",
        pointer,
        tuple(fields),
        lambda: stores.people.alter(
            OPERATOR, before.name, role=role, enabled=enabled, groups=after, reason=reason
        ),
        tuple(takes),
        item.allow_lower,
    )
    return before.name, role, after, change


# Datasets


def planned_datasets(
    stores: "Stores", file: ApplyFile, read: SourceLines
) -> Iterator[tuple[str, Dataset | None, PlannedChange | None]]:
    """Each dataset's name, the dataset if it is registered, and what would change."""
    names: set[str] = set()
    for index, item in enumerate(file.datasets):
        pointer = f"/datasets/{index}"
        with read.at(pointer):
            name = check_name(item.name, "/name", forbidden="/")
            source = item.source.source()
        if folded(name) in names:
            raise read.wrong(f"{pointer}/name", "this dataset is there twice")
        names.add(folded(name))
        reason = reason_of(file, item)
        try:
            before = stores.datasets.find(name)
        except NotFound:
            yield name, None, _new_dataset(stores, item, pointer, name, reason)
            continue
        differ = _differences(before.card, item)
        differ += [] if source == before.source else ["source"]
        if differ:
            raise read.wrong(
                f"{pointer}/{differ[0]}",
                f"a registered dataset keeps its card and source; {', '.join(differ)} differ: "
                "withdraw the name first, or use another name",
            )
        yield before.name, before, _changed_dataset(stores, item, pointer, before, reason)


def card_of(item: DatasetItem) -> Card:
    return Card.model_construct(**{name: getattr(item, name) for name in Card.model_fields})


def _differences(card: Card, item: DatasetItem) -> list[str]:
    before = json.loads(card.model_dump_json())
    after = json.loads(card_of(item).model_dump_json())
    return [name for name in Card.model_fields if before.get(name) != after.get(name)]


def _new_dataset(
    stores: "Stores", item: DatasetItem, pointer: str, name: str, reason: str
) -> PlannedChange:
    source = item.source.source()

    def make() -> None:
        stores.register_dataset(
            operator(),
            name=name,
            description=item.description,
            source=source,
            card=card_of(item),
            reason=reason,
            request=None,
            body="",
        )
        if item.status == "closed":
            stores.datasets.alter(OPERATOR, name, description=None, closed=True, reason=reason)

    where = source.path if source.connection is None else f"{source.connection}: {source.path}"
    fields: list[Field] = [
        ("source", None, f"{source.engine}, {where}"),
        ("person", None, json.loads(item.person.model_dump_json())),
        ("neighbours", None, item.neighbours),
        ("columns", None, [column.name for column in item.columns]),
    ]
    fields += [("status", None, "closed")] if item.status == "closed" else []
    return PlannedChange("create", f"dataset {name}", pointer, tuple(fields), make)


def _changed_dataset(
    stores: "Stores", item: DatasetItem, pointer: str, before: Dataset, reason: str
) -> PlannedChange | None:
    described = "description" in item.model_fields_set
    closed = before.closed if item.status is None else item.status == "closed"
    fields: list[Field] = []
    if described and item.description != before.description:
        fields.append(("description", before.description, item.description))
    if closed is not before.closed:
        shown = {True: "closed", False: "open"}
        fields.append(("status", shown[before.closed], shown[closed]))
    if not fields:
        return None
    return PlannedChange(
        "change",
        f"dataset {before.name}",
        pointer,
        tuple(fields),
        lambda: stores.datasets.alter(
            OPERATOR,
            before.name,
            description=item.description if described else None,
            closed=closed,
            reason=reason,
        ),
        ("every new question",) if closed and not before.closed else (),
        item.allow_lower,
    )
