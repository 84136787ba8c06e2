"""Previews: free, computed from public facts, and equal to the later charge."""

import json
from decimal import Decimal

import pytest

from app.access import Principal, Role, holders_of
from app.accounting.rules.terms import GrantTerms
from app.actions.asking.paying_accounts import Payer
from app.errors import BudgetExhausted, Invalid, NoGrant, NotFound
from app.ledger.account import EVERYBODY
from tests.actions.service import Service, body

COUNT = {"kind": "count"}
THREE = Payer(currency="pure", terms=GrantTerms(epsilon=Decimal(3)))


def person(name: str, role: Role, *groups: str) -> Principal:
    return Principal("a", name, role, "k", holders_of(name, groups))


AUDITORS = [person("admin", Role.ADMIN), person("v", Role.VIEWER)]


def test_a_preview_charges_nothing_and_shows_the_later_price(service: Service) -> None:
    (preview,) = service.preview(body(COUNT, epsilon="0.3"))
    assert service.account("ann").balance.common == (0, 0)
    assert preview["price"] == {"epsilon": 0.3, "delta": 0.0}
    assert preview["fits"]
    assert preview["refusal"] is None
    answer = json.loads(service.ask(COUNT, epsilon="0.3").text)
    assert answer["charged"]["epsilon"] == 0.3
    assert answer["mechanism"] == preview["mechanism"]
    assert answer["charged"]["accounts"][0]["remaining"] == preview["remaining_after"]
    assert answer["theorem"] == preview["theorem"]


def test_a_list_is_previewed_as_if_each_question_were_paid_before_the_next(
    service: Service,
) -> None:
    previews = service.preview(*[body(COUNT, epsilon=e) for e in ("0.6", "0.5", "0.4", "0.1")])
    assert [preview["fits"] for preview in previews] == [True, False, True, False]
    assert previews[1]["refusal"]["largest_epsilon"] == 0.4
    assert previews[2]["remaining_after"]["epsilon"] == 0.0
    service.ask(COUNT, epsilon="0.6")
    with pytest.raises(BudgetExhausted):
        service.ask(COUNT, epsilon="0.5")
    service.ask(COUNT, epsilon="0.4")


def test_the_largest_epsilon_of_a_preview_fits_and_a_unit_more_does_not(service: Service) -> None:
    """This includes everybody's account: a refusal by it shows the same epsilon."""
    (preview,) = service.preview(body(COUNT))
    assert preview["largest_epsilon"] == 1.0
    service.grant(EVERYBODY, "0.7")
    (preview,) = service.preview(body(COUNT))
    assert preview["largest_epsilon"] == 0.7
    fits, passes = (
        service.preview(body(COUNT, epsilon=epsilon))[0] for epsilon in ("0.7", "0.700000000001")
    )
    assert fits["fits"]
    assert not passes["fits"]


def test_a_preview_needs_no_data(service: Service) -> None:
    service.file.unlink()
    (preview,) = service.preview(body({"kind": "histogram", "column": "city"}))
    assert preview["groups"] == 3
    assert preview["expected_error"]["half_width"] > 0
    (mean,) = service.preview(body({"kind": "mean", "column": "age"}))
    assert mean["expected_error"]["half_width"] is None


def test_a_closed_dataset_does_not_fit(service: Service) -> None:
    service.stores.datasets.alter("admin", "people", description=None, closed=True, reason=None)
    (preview,) = service.preview(body(COUNT))
    assert not preview["fits"]
    assert preview["refusal"] is not None


def test_an_error_in_a_list_is_reported_with_its_index(service: Service) -> None:
    wrong = body({"kind": "sum", "column": "salary"})
    with pytest.raises(Invalid) as caught:
        service.preview(body(COUNT), wrong)
    assert caught.value.fields[0].pointer == "/1/query/column"
    with pytest.raises(Invalid) as caught:
        service.preview(wrong, listed=False)
    assert caught.value.fields[0].pointer == "/query/column"


def test_previews_need_a_budget_or_a_named_payer(service: Service) -> None:
    for role, name, error in (
        (Role.ADMIN, "admin", Invalid),
        (Role.VIEWER, "v", Invalid),
        (Role.ANALYST, "Bob", NoGrant),
    ):
        with pytest.raises(error) as caught:
            service.preview(body(COUNT), principal=person(name, role), listed=False)
        if isinstance(caught.value, Invalid):
            assert caught.value.fields[0].pointer == "/as"
    with pytest.raises(NoGrant):
        service.preview({**body(COUNT), "dataset": "none"})


def test_an_assumed_number_of_rows_gives_an_estimate_and_changes_no_price(service: Service) -> None:
    mean = body({"kind": "mean", "column": "age"})
    plain, guessed = service.preview(mean, {**mean, "assume": {"rows": 5_000}})
    assert plain["expected_error"]["half_width"] is None
    error = guessed["expected_error"]
    assert 0 < error["half_width"] < 1
    assert error["promise"] is False
    assert error["text"].startswith("Estimate for 5,000 rows: with 95 % confidence")
    assert guessed["price"] == plain["price"]
    assert guessed["mechanism"] == plain["mechanism"]
    others = [other["expected_error"] for other in guessed["alternatives"]]
    assert error in others


# Curves


def test_a_curve_has_a_point_for_each_epsilon_by_itself(service: Service) -> None:
    """The analyst has 1 left: 0.6 and 0.9 each fit, though not together."""
    epsilons = tuple(map(Decimal, ("0.1", "0.6", "0.9", "1.1")))
    (preview,) = service.preview(body(COUNT, epsilon="0.5"), listed=False, epsilons=epsilons)
    curve = preview["curve"]
    assert [point["epsilon"] for point in curve] == [0.1, 0.6, 0.9, 1.1]
    assert [point["price"]["epsilon"] for point in curve] == [0.1, 0.6, 0.9, 1.1]
    assert [point["fits"] for point in curve] == [True, True, True, False]
    widths = [point["expected_error"]["half_width"] for point in curve]
    assert widths == sorted(widths, reverse=True)
    alone = [service.preview(body(COUNT, epsilon=str(epsilon)))[0] for epsilon in epsilons]
    for point, one in zip(curve, alone, strict=True):
        assert point["expected_error"] == one["expected_error"]
        assert (point["price"], point["fits"]) == (one["price"], one["fits"])
    assert service.account("ann").untouched


def test_a_curve_needs_an_epsilon_and_names_a_bad_one(service: Service) -> None:
    by_rho = {**body(COUNT), "privacy": {"half_width": 5}}
    with pytest.raises(Invalid) as caught:
        service.preview(by_rho, listed=False, epsilons=(Decimal(1),))
    assert caught.value.fields[0].pointer == "/epsilons"
    with pytest.raises(Invalid) as caught:
        service.preview(body(COUNT), listed=False, epsilons=(Decimal(1), Decimal(5000)))
    assert caught.value.fields[0].pointer == "/epsilons/1"
    edges = [*range(50_000)]
    long = body({"kind": "workload", "predicates": predicates(edges)})
    with pytest.raises(Invalid, match="at most 1000000"):
        service.preview(long, listed=False, epsilons=(Decimal(1),) * 50)


def predicates(values: list[int]) -> list[dict[str, object]]:
    parts = [values[start : start + 10_000] for start in range(0, len(values), 10_000)]
    return [
        {"name": f"p{i}", "where": {"column": "age", "op": "in", "value": part}}
        for i, part in enumerate(parts)
    ]


# Payers


@pytest.mark.parametrize("auditor", AUDITORS, ids=lambda principal: principal.role)
def test_auditors_preview_as_a_holder(service: Service, auditor: Principal) -> None:
    sent = body(COUNT, epsilon="0.3")
    (own,) = service.preview(sent, listed=False)
    (seen,) = service.preview(sent, listed=False, principal=auditor, payer=Payer("Ann"))
    assert seen == {**own, "questions_left": 3}
    assert json.loads(service.ask(COUNT, epsilon="0.3").text)["charged"]["epsilon"] == 0.3
    (later,) = service.preview(sent, listed=False, principal=auditor, payer=Payer("ann"))
    assert later["questions_left"] == 2
    assert later["reused"] is False
    (everybody,) = service.preview(sent, listed=False, principal=auditor, payer=Payer("*"))
    assert everybody["questions_left"] == 5
    assert everybody["remaining_after"]["epsilon"] == 1.4
    for nobody in ("nobody", "group:none"):
        with pytest.raises(NotFound):
            service.preview(sent, principal=auditor, payer=Payer(nobody))


def test_analysts_preview_only_as_their_own_holders(service: Service) -> None:
    sent = body(COUNT, epsilon="0.3")
    (own,) = service.preview(sent, payer=Payer("Ann"))
    assert own["questions_left"] == 3
    (everybody,) = service.preview(sent, payer=Payer("*"))
    assert everybody["questions_left"] == 6
    assert everybody["remaining_after"] is None
    service.person("Bob", Role.ANALYST)
    for other in ("Bob", "nobody", "group:lab"):
        with pytest.raises(Invalid) as caught:
            service.preview(sent, payer=Payer(other))
        assert caught.value.fields[0].pointer == "/as"


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_made_up_account_shows_what_a_budget_buys(service: Service, index: int) -> None:
    principal = [*AUDITORS, service.ann][index]
    service.ask(COUNT, epsilon="0.9")
    sent = body(COUNT, epsilon="0.7")
    (seen,) = service.preview(sent, principal=principal, payer=THREE)
    assert (seen["fits"], seen["questions_left"]) == (True, 4)
    assert seen["remaining_after"]["epsilon"] == 2.3
    assert seen["largest_epsilon"] == 3.0
    assert service.account("ann").balance.common[0] == 9 * 10**11
    listed = service.preview(*[{**sent, "fresh": True}] * 5, principal=principal, payer=THREE)
    assert [item["fits"] for item in listed] == [True] * 4 + [False]


def test_a_made_up_account_is_what_a_grant_would_make(service: Service) -> None:
    terms = GrantTerms(epsilon=Decimal(3), delta=Decimal("1e-6"))
    payer = Payer(currency="zcdp", terms=terms)
    sent = body(COUNT, epsilon="0.1")
    (seen,) = service.preview(sent, principal=AUDITORS[0], payer=payer)
    service.grant("ann", "3", delta=Decimal("1e-6"), currency="approximate")
    service.person("Bob", Role.ANALYST)
    granted = service.grant("Bob", "3", delta=Decimal("1e-6"), currency="zcdp")
    assert seen["questions_left"] == granted.questions_left()
    bad = Payer(currency="zcdp", terms=GrantTerms(epsilon=Decimal(3)))
    with pytest.raises(Invalid) as caught:
        service.preview(sent, principal=AUDITORS[0], payer=bad)
    assert caught.value.fields[0].pointer == "/account/delta"
    both = Payer("Ann", currency="pure", terms=GrantTerms(epsilon=Decimal(3)))
    with pytest.raises(Invalid) as caught:
        service.preview(sent, principal=AUDITORS[0], payer=both)
    assert caught.value.fields[0].pointer == "/account"
