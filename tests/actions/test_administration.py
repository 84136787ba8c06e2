"""Grants and registrations: permissions of an administrator, and refusals."""

from decimal import Decimal
from typing import Any

import pytest

from app.access import Principal, Role
from app.accounting.units import PICO
from app.errors import (
    Conflict,
    EngineUnavailable,
    IdempotencyConflict,
    Invalid,
    NotFound,
    NotPermitted,
    PreconditionFailed,
)
from app.ledger.account import EVERYBODY
from app.ledger.precondition import MUST_BE_NEW, Precondition, Versions
from tests.actions.service import ADMIN, Service
from tests.queries.cards import COLUMNS, card

NOT_ADMINS = [Principal("a", "x", role, "k") for role in (Role.ANALYST, Role.VIEWER)]


# Grants


def test_a_limit_is_rounded_down(service: Service) -> None:
    account = service.grant("ann", "0.1234567890129")
    assert account.terms.limits == (123_456_789_012, 0)


def test_a_holder_is_one_person_in_every_spelling(service: Service) -> None:
    account = service.grant("ANN", "3")
    assert (account.holder, account.shown) == ("ann", "Ann")
    assert service.account("ann").terms.limits == (3 * PICO, 0)


@pytest.mark.parametrize("principal", NOT_ADMINS)
def test_only_administrators_grant(service: Service, principal: Principal) -> None:
    with pytest.raises(NotPermitted):
        service.grant("ann", "3", principal=principal)


GRANTS: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "an unknown dataset": ({"dataset": "none"}, NotFound),
    "an unknown analyst": ({"holder": "nobody"}, NotFound),
    "an administrator": ({"holder": "admin"}, Invalid),
    "a delta in a pure account": ({"delta": Decimal("1e-6")}, Invalid),
    "no delta in an approximate account": ({"currency": "approximate"}, Invalid),
    "another version": (
        {"precondition": Precondition(Versions(frozenset([99])))},
        PreconditionFailed,
    ),
    "a new one that exists": ({"precondition": MUST_BE_NEW}, PreconditionFailed),
}


@pytest.mark.parametrize("what", GRANTS)
def test_a_grant_is_refused_for(service: Service, what: str) -> None:
    changes, error = GRANTS[what]
    before = service.account("ann")
    with pytest.raises(error):
        service.grant(
            changes.get("holder", "ann"), "3", **{k: v for k, v in changes.items() if k != "holder"}
        )
    assert service.account("ann") == before


def test_an_approximate_account_has_both_limits(service: Service) -> None:
    account = service.grant("ann", "3", currency="approximate", delta=Decimal("1e-6"))
    assert account.terms.limits == (3 * PICO, 10**12)


# Registrations


@pytest.mark.parametrize("principal", NOT_ADMINS)
def test_only_administrators_register(service: Service, principal: Principal) -> None:
    with pytest.raises(NotPermitted):
        service.register("more", principal=principal)


def test_the_same_file_under_another_name_has_the_same_budget(service: Service) -> None:
    other = service.register("people again")
    assert other.book_id == service.dataset.book_id
    copy = service.file.with_name("copy.csv")
    copy.write_bytes(service.file.read_bytes())
    third = service.register("people copied", path="copy.csv")
    assert third.book_id == service.dataset.book_id


def test_a_repeated_registration_is_carried_out_once(service: Service) -> None:
    first = service.register("more", request="r", body="b")
    assert service.register("more", request="r", body="b").id == first.id
    with pytest.raises(IdempotencyConflict):
        service.register("else", request="r", body="c")


REGISTRATIONS: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "a taken name": ({"name": "PEOPLE"}, Conflict),
    "a slash in the name": ({"name": "a/b"}, Invalid),
    "an invisible name": ({"name": "a\u200bb"}, Invalid),
    "an unknown engine": ({"engine": "oracle"}, Invalid),
    "a file outside": ({"path": "../secret.csv"}, Invalid),
    "no file": ({"path": "none.csv"}, Invalid),
    "a column that is not there": (
        {"card": card([{"name": "salary", "type": "integer", "low": 0, "high": 1}])},
        Invalid,
    ),
    "an invisible column": (
        {"card": card([{"name": "a\u200bge", "type": "integer", "low": 0, "high": 1}])},
        Invalid,
    ),
    "another relation": ({"card": card(neighbours="replace_one")}, Conflict),
}


@pytest.mark.parametrize("what", REGISTRATIONS)
def test_a_registration_is_refused_for(service: Service, what: str) -> None:
    changes, error = REGISTRATIONS[what]
    given = {"name": "more", **changes}
    with pytest.raises((error, EngineUnavailable)):
        service.register(given.pop("name"), **given)
    assert [d.name for d in service.stores.datasets.all(holders=None, after="", limit=10)] == [
        "people"
    ]


def test_cells_are_refused_if_a_person_may_be_in_two(service: Service) -> None:
    several = card(COLUMNS[2:], rows_max=2).model_dump()
    several["cells"] = {"column": "city"}
    several["person"]["column"] = "age"
    with pytest.raises(Invalid, match="/cells"):
        service.register("more", card=type(card()).model_validate(several))


def test_everybody_together_is_a_holder(service: Service) -> None:
    assert service.grant(EVERYBODY, "5").terms.limits == (5 * PICO, 0)
    assert ADMIN.role is Role.ADMIN
