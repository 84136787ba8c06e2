"""Groups that are asked for one by one, and what their parts cost together."""

import itertools
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from bursar.ask.amounts import Loss
from bursar.errors import BadQuestion

GROUPS_MAX = 100
Part = tuple[Loss, Sequence[Any] | None]  # a loss, and the cells that it charges; None is all


def combinations(
    values: Mapping[str, Sequence[Any]], where: Mapping[str, Any] | None
) -> tuple[list[dict[str, Any]], int]:
    """Every combination of values that the filter allows, and the number of the others."""
    every = [dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())]
    kept = [group for group in every if where is None or holds(where, group) is not False]
    if not kept:
        raise BadQuestion("The filter excludes every group.", hint="Leave out where() or by().")
    if len(kept) > GROUPS_MAX:
        raise BadQuestion(f"There are {len(kept)} groups; at most {GROUPS_MAX}.")
    return kept, len(every) - len(kept)


def holds(where: Mapping[str, Any], group: Mapping[str, Any]) -> bool | None:
    """Whether the rows of a group meet a filter; None if other columns decide."""
    match dict(where):
        case {"all": list(parts)}:
            return _every([holds(part, group) for part in parts])
        case {"any": list(parts)}:
            found = [holds(part, group) for part in parts]
            return _negated(_every([_negated(one) for one in found]))
        case {"not": Mapping() as part}:
            return _negated(holds(part, group))
        case {"column": column, "op": operator} if column in group:
            return _compared(group[column], operator, where.get("value"))
    return None


def _compared(own: Any, operator: str, value: Any) -> bool | None:
    match operator:
        case "==":
            return bool(own == value)
        case "!=":
            return bool(own != value)
        case "in":
            return own in value
        case "is_null":
            return False
    return None


def _every(found: list[bool | None]) -> bool | None:
    if False in found:
        return False
    return None if None in found else True


def _negated(found: bool | None) -> bool | None:
    return None if found is None else not found


def together(parts: Sequence[Part], *, replace_one: bool) -> Loss:
    """Loss of several parts, as the ledger adds it up.

    Parts about one cell add up, and parts about disjoint cells cost as much as the dearest cell.
    Under `replace_one` a person may leave one cell and enter another: there the two dearest cells
    add up. Parts about everybody come on top.
    """
    names = ("epsilon", "delta", "rho")
    return Loss(*(_together([(getattr(p[0], n), p[1]) for p in parts], replace_one) for n in names))


def _together(
    parts: list[tuple[float | None, Sequence[Any] | None]], replace_one: bool
) -> float | None:
    present = [(Decimal(str(amount)), cells) for amount, cells in parts if amount is not None]
    if not present:
        return None
    everybody = sum((amount for amount, cells in present if not cells), Decimal(0))
    by_cell: dict[str, Decimal] = {}
    for amount, cells in present:
        for cell in cells or ():
            by_cell[repr(cell)] = by_cell.get(repr(cell), Decimal(0)) + amount
    dearest = sorted(by_cell.values(), reverse=True)[: 2 if replace_one else 1]
    return float(everybody + sum(dearest, Decimal(0)))
