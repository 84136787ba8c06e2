"""Changes of budgets that a file asks for: compared by their frozen terms, not by their texts."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from app.access import GROUP, Role, holder_of
from app.accounting import COMPOSITION_RULES
from app.cli.apply.changes import Field, PlannedChange, reason_of
from app.cli.apply.lines import SourceLines
from app.cli.apply.models import ApplyFile, BudgetItem
from app.cli.opened import operator
from app.data.card import Dataset
from app.errors import Conflict, NotFound, PreconditionFailed
from app.ledger.account import EVERYBODY, Account
from app.ledger.balance import Balance
from app.ledger.precondition import MUST_BE_NEW, Precondition, Versions
from app.names import folded

if TYPE_CHECKING:
    from app.main.stores import Stores

OTHER = "another budget is there now than was shown, perhaps of the same rows under another name"


def planned_budgets(
    stores: "Stores",
    file: ApplyFile,
    read: SourceLines,
    datasets: Mapping[str, Dataset | None],
    people: Mapping[str, tuple[Role, tuple[str, ...]]],
) -> Iterator[PlannedChange]:
    """`datasets` and `people`: those of the file, by folded name, as they are afterwards."""
    accounts: set[tuple[str, str]] = set()
    for index, item in enumerate(file.budgets):
        pointer = f"/budgets/{index}"
        with read.at(pointer):
            dataset = _dataset(stores, item, datasets)
            _must_exist(stores, item.holder, people)
            key = folded(item.dataset), holder_of(item.holder)
            if key in accounts:
                raise read.wrong(f"{pointer}/holder", "this budget is there twice")
            accounts.add(key)
            before = _account(stores, *key)
            after = _after(before, item, dataset)
        if before is None or (before.currency, before.terms) != (after.currency, after.terms):
            yield _planned(stores, item, pointer, before, after, reason_of(file, item))


def _dataset(
    stores: "Stores", item: BudgetItem, datasets: Mapping[str, Dataset | None]
) -> Dataset | None:
    """The dataset; None if this file registers it."""
    if folded(item.dataset) in datasets:
        return datasets[folded(item.dataset)]
    return stores.datasets.find(item.dataset)


def _must_exist(
    stores: "Stores", holder: str, people: Mapping[str, tuple[Role, tuple[str, ...]]]
) -> None:
    """Raises NotFound for a holder who is neither registered nor in the file."""
    if holder == EVERYBODY:
        return
    if holder.startswith(GROUP):
        name = folded(holder.removeprefix(GROUP))
        if not any(name in map(folded, groups) for _, groups in people.values()):
            stores.people.group(holder.removeprefix(GROUP))
        return
    known = people.get(folded(holder))
    role = stores.people.find(holder).role if known is None else known[0]
    if role is not Role.ANALYST:
        raise NotFound("a budget is for an analyst, group:name, or * for everybody")


def _account(stores: "Stores", dataset: str, holder: str) -> Account | None:
    rows = stores.budgets.all(holders=(holder,), after="", limit=1, dataset=dataset)
    return rows[0][1].account if rows else None


def _after(before: Account | None, item: BudgetItem, dataset: Dataset | None) -> Account:
    from app.store.budgets import granted_account

    holder = holder_of(item.holder)
    if dataset is None:  # registered by the same file; its rows decide later which book it is
        rule = COMPOSITION_RULES[item.currency]
        terms, nothing = rule.freeze(item.wish()), Balance(rule.nothing)
        return Account("", holder, item.holder, item.currency, terms, nothing, 1)
    return granted_account(before, dataset, holder, item.holder, item.currency, item.wish())


def _planned(
    stores: "Stores",
    item: BudgetItem,
    pointer: str,
    before: Account | None,
    after: Account,
    reason: str,
) -> PlannedChange:
    seen = MUST_BE_NEW
    if before is not None:
        seen = Precondition(match=Versions(frozenset({before.version})))

    def make() -> None:
        try:
            stores.grant_budget(
                operator(),
                dataset=item.dataset,
                holder=item.holder,
                currency=item.currency,
                wish=item.wish(),
                precondition=seen,
                reason=reason,
            )
        except PreconditionFailed:
            raise Conflict(OTHER) from None

    return PlannedChange(
        "create" if before is None else "change",
        f"budget of {item.holder} on {item.dataset}",
        pointer,
        tuple(_fields(before, after)),
        make,
        tuple(_lowered(before, after)),
        item.allow_lower,
    )


def _fields(before: Account | None, after: Account) -> Iterator[Field]:
    old, new = {} if before is None else _shown(before), _shown(after)
    for name in [*new, *(old.keys() - new.keys())]:
        if before is None or old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _shown(account: Account) -> dict[str, Any]:
    """The promise and the frozen terms behind it."""
    limit = {name: value for name, value in account.limit.items() if value is not None}
    terms = json.loads(account.terms.text())
    split = {"conversion": terms["conversion"]} if terms["conversion"] else {}
    return {"currency": account.currency, **limit, **split}


def _lowered(before: Account | None, after: Account) -> Iterator[str]:
    if before is None:
        return
    old, new = before.terms, after.terms
    if new.epsilon < old.epsilon:
        yield "a part of epsilon"
    if new.delta < old.delta:
        yield "a part of delta"
    same = (new.epsilon, new.delta) == (old.epsilon, old.delta)
    if same and before.currency == after.currency:
        pairs = zip(new.limits, old.limits, strict=True)
        if any(limit < earlier for limit, earlier in pairs):
            yield "a part of its limits"
