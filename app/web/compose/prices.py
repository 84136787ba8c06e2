"""Prices that a form carries, so that nobody pays more than the page has shown."""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

Json = dict[str, Any]
FREE = "free"
MEMBERS = ("epsilon", "delta", "rho")


def price_text(preview: Json) -> str:
    """The exact price of a preview, such as `epsilon 0.1 delta 0.000001`; `free` for a reuse."""
    if preview["reused"]:
        return FREE
    return " ".join(f"{name} {value}" for name, value in _members(preview["price"]).items())


def is_dearer(preview: Json, shown: str) -> bool:
    """True if a question costs more now than a page has shown, or has another unit now."""
    if preview["reused"]:
        return False
    now, before = _members(preview["price"]), _members_of_text(shown)
    if before is None or not before.keys() - {"delta"} <= now.keys():
        return True
    return any(value > before.get(name, 0) for name, value in now.items())


def sum_of_prices(previews: Iterable[Json]) -> Json | None:
    """The sum over the questions that are not free, as a price; None if all of them are."""
    paid = [_members(preview["price"]) for preview in previews if not preview["reused"]]
    if not paid:
        return None
    total: Json = {}
    for name in MEMBERS:
        values = [price[name] for price in paid if name in price]
        total[name] = float(sum(values)) if values else None
        total[f"{name}_exact"] = f"{sum(values):f}" if values else None
    return total


def _members(price: Json) -> dict[str, Decimal]:
    members = {}
    for name in MEMBERS:
        value = price.get(f"{name}_exact") or price.get(name)
        if value is not None:
            members[name] = Decimal(str(value))
    return members if members.get("delta") else {k: v for k, v in members.items() if k != "delta"}


def _members_of_text(shown: str) -> dict[str, Decimal] | None:
    """The members of a text that `price_text` has made; None for any other text."""
    if shown == FREE:
        return {}
    words = shown.split()
    try:
        members = {
            name: Decimal(value) for name, value in zip(words[::2], words[1::2], strict=True)
        }
    except (ValueError, InvalidOperation):
        return None
    usable = members and members.keys() <= set(MEMBERS)
    return members if usable and all(value.is_finite() for value in members.values()) else None
