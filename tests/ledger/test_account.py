"""Accounts: admission within the limit, refusal without a change, refunds never below zero."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, pure_loss
from app.accounting.rules.spending import Spend, plus
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import PICO, UNITS_MAX
from app.errors import AccountFrozen, BudgetExhausted, Invalid
from app.ledger.account import Account, account_id
from app.ledger.balance import Balance
from app.ledger.chain import canonical

amounts = st.integers(0, 40) | st.integers(0, UNITS_MAX - 1)
losses = st.builds(Loss, amounts, amounts)


def made(limit: Spend, spent: Spend, version: int, currency: str = "approximate") -> Account:
    terms = AccountTerms(limit[0], limit[1], limit)
    return Account("b", "ann", "Ann", currency, terms, Balance(spent), version)


accounts = st.builds(
    made, st.tuples(amounts, amounts), st.tuples(amounts, amounts), st.integers(1, 100)
)


def account(*, limit: int, spent: int = 0, currency: str = "pure", delta: int = 0) -> Account:
    return made((limit, delta), (spent, 0), 1, currency)


def read(loss: Loss) -> Spend:
    return loss.epsilon, loss.delta


def within(spend: Spend, limit: Spend) -> bool:
    return all(have <= of for have, of in zip(spend, limit, strict=True))


@given(accounts, losses)
def test_admission_never_exceeds_a_limit_and_a_refusal_is_one_of_two(
    before: Account, cost: Loss
) -> None:
    spent, limits = before.balance.common, before.terms.limits
    try:
        after = before.admit(cost)
    except AccountFrozen:
        assert before.frozen
        assert not within(spent, limits)
    except BudgetExhausted:
        assert not before.frozen
        fits = spent[0] + cost.epsilon <= limits[0]
        assert not (fits and spent[1] + cost.delta <= limits[1])
    else:
        assert after.balance == Balance((spent[0] + cost.epsilon, spent[1] + cost.delta))
        assert within(after.balance.common, limits)
        assert after.version == before.version + 1
        assert after.terms == before.terms


@given(st.integers(0, 100), st.lists(st.integers(0, 30), max_size=30))
def test_no_sequence_of_charges_exceeds_the_limit(limit: int, costs: list[int]) -> None:
    now = account(limit=limit)
    for cost in costs:
        try:
            now = now.admit(Loss(cost))
        except BudgetExhausted:
            assert now.balance.common[0] + cost > limit
    assert now.balance.common[0] <= limit


@given(accounts)
def test_the_largest_epsilon_is_admitted_and_one_unit_more_is_refused(before: Account) -> None:
    largest = before.largest_epsilon()
    if not before.frozen:
        assert before.admit(Loss(largest)).largest_epsilon() == 0
    with pytest.raises((BudgetExhausted, AccountFrozen, Invalid)) as caught:
        before.admit(Loss(largest + 1))
    assert caught.type is not Invalid or largest + 1 == UNITS_MAX, "the unbounded value is refused"


@given(accounts, losses)
def test_a_charge_can_be_refunded_exactly(before: Account, cost: Loss) -> None:
    try:
        after = before.admit(cost)
    except (BudgetExhausted, AccountFrozen):
        return
    back = after.give_back(cost, None)
    assert (back.balance, back.terms) == (before.balance, before.terms)
    assert back.version == before.version + 2


@given(accounts, losses)
def test_a_refund_never_exceeds_the_spend(before: Account, cost: Loss) -> None:
    back = before.give_back(cost, None).balance.common
    assert within(back, before.balance.common)
    assert min(back) >= 0


@given(accounts, losses)
def test_a_booked_loss_counts_at_every_limit(before: Account, cost: Loss) -> None:
    after = before.book([cost])
    assert after.balance.common == plus(before.balance.common, read(cost))
    assert after.frozen == (not within(after.balance.common, before.terms.limits))


def test_a_frozen_account_admits_no_charge_not_even_a_free_one() -> None:
    frozen = account(limit=5, spent=6)
    with pytest.raises(AccountFrozen):
        frozen.admit(Loss(0))
    with pytest.raises(AccountFrozen) as caught:
        frozen.admit(Loss(1))
    assert caught.value.members["remaining"] == {"epsilon": 0.0, "delta": 0.0}
    assert (frozen.used, frozen.questions_left(), frozen.largest_epsilon()) == (1.0, 0, 0)
    assert frozen.balances()["remaining"] == {"epsilon": 0.0, "delta": 0.0}


def test_a_pure_account_refuses_delta_and_names_the_currencies_that_can_pay() -> None:
    with pytest.raises(Invalid, match=r"currencies that can: approximate$"):
        account(limit=PICO).admit(Loss(1, 1))
    with pytest.raises(Invalid, match=r"currencies that can: zcdp, renyi, gdp$"):
        account(limit=PICO).admit(gaussian_loss(Fraction(2)))
    paid = account(limit=PICO, currency="approximate", delta=5).admit(Loss(1, 5))
    assert paid.balance.common == (1, 5)


def test_a_refusal_shows_requested_and_remaining_budget_and_that_retrying_is_useless() -> None:
    with pytest.raises(BudgetExhausted) as caught:
        account(limit=PICO, spent=PICO // 3).admit(pure_loss(PICO))
    assert caught.value.members == {
        "account": "Ann",
        "currency": "pure",
        "requested": {"epsilon": 1.0, "delta": 0.0},
        "remaining": {"epsilon": 0.666666666667, "delta": 0.0},
        "largest_epsilon": 0.666666666667,
        "retryable": False,
    }


@given(accounts, st.sampled_from(["Ann", "*", 'a "b"', "é\u2028"]))
def test_the_text_of_an_account_is_canonical(before: Account, shown: str) -> None:
    known = before._replace(shown=shown)
    assert known.balances_json() == canonical({"holder": shown, **known.balances()})


@pytest.mark.parametrize("currency", COMPOSITION_RULES)
@pytest.mark.parametrize("epsilons", [[], ["0.1"], ["0.3", "0.000000000007"], ["7"]])
def test_the_text_has_the_units_of_every_currency(currency: str, epsilons: list[str]) -> None:
    delta = Decimal(0) if currency == "pure" else Decimal("1e-6")
    rule = COMPOSITION_RULES[currency]
    terms = rule.freeze(GrantTerms(epsilon=Decimal(3), delta=delta))
    spent = Account("b", "ann", "Ann", currency, terms, Balance(rule.nothing), 1)
    for each in epsilons:
        spent = spent.book([pure_loss(int(Decimal(each) * PICO))])
    assert spent.balances_json() == canonical({"holder": "Ann", **spent.balances()})
    if currency != "pure" and epsilons:
        spent = spent if currency == "approximate" else spent.book([gaussian_loss(Fraction(1))])
        assert spent.balances_json() == canonical({"holder": "Ann", **spent.balances()})


def test_questions_left_counts_tenths() -> None:
    assert account(limit=PICO).questions_left() == 10
    assert account(limit=PICO, spent=PICO // 20).questions_left() == 9


def test_an_account_is_identified_by_book_and_holder() -> None:
    assert account(limit=1).id == account_id("b", "ann") == "b/ann"


def test_a_price_is_in_the_accounts_own_units_or_missing() -> None:
    half = pure_loss(PICO // 2)
    assert account(limit=PICO).price(half) == {"currency": "pure", "epsilon": 0.5, "delta": 0.0}
    assert account(limit=PICO).price(gaussian_loss(Fraction(10))) is None
    rule = COMPOSITION_RULES["zcdp"]
    terms = rule.freeze(GrantTerms(epsilon=Decimal(1), delta=Decimal("1e-6")))
    concentrated = Account("b", "ann", "Ann", "zcdp", terms, Balance(rule.nothing), 1)
    price = concentrated.price(gaussian_loss(Fraction(10)))
    assert price is not None
    assert (price["currency"], price["rho"]) == ("zcdp", 0.005)
    spent = concentrated.admit(gaussian_loss(Fraction(10)), None).balances()["spent"]
    assert {**spent, "currency": "zcdp"} == price
