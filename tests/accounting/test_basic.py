"""Basic composition as a stop rule: exact sums, and nothing beyond the limit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.basic import BasicRule
from app.accounting.loss import Loss
from app.accounting.rounding import PICO, UNITS_MAX, cost_units, limit_units
from app.planning.question import exact_epsilon

amounts = st.integers(0, 50) | st.integers(0, UNITS_MAX)
losses = st.builds(Loss, amounts, amounts)
rules = st.sampled_from(sorted(COMPOSITION_RULES.values(), key=lambda rule: rule.currency))


@given(rules, losses, losses, losses)
def test_a_charge_is_admitted_exactly_if_the_exact_sums_stay_within(
    rule: BasicRule, spent: Loss, cost: Loss, limit: Loss
) -> None:
    epsilon = Fraction(spent.epsilon) + cost.epsilon <= limit.epsilon
    delta = Fraction(spent.delta) + cost.delta <= limit.delta
    assert rule.admits(spent=spent, cost=cost, limit=limit) == (epsilon and delta)


@given(rules, losses, losses)
def test_the_largest_epsilon_is_admitted_and_one_unit_more_is_not(
    rule: BasicRule, spent: Loss, limit: Loss
) -> None:
    largest = rule.largest_epsilon(spent=spent, limit=limit)
    if spent.within(limit):
        assert rule.admits(spent=spent, cost=Loss(largest), limit=limit)
    else:
        assert largest == 0
    if largest < UNITS_MAX:
        assert not rule.admits(spent=spent, cost=Loss(largest + 1), limit=limit)


@given(rules, losses, losses, losses, losses)
def test_asking_more_never_costs_less_and_a_larger_limit_never_admits_less(
    rule: BasicRule, spent: Loss, cost: Loss, limit: Loss, more: Loss
) -> None:
    small = Loss(min(more.epsilon, cost.epsilon), min(more.delta, cost.delta))
    room = Loss(max(more.epsilon, limit.epsilon), max(more.delta, limit.delta))
    if rule.admits(spent=spent, cost=cost, limit=limit):
        assert rule.admits(spent=spent, cost=small, limit=limit)
        assert rule.admits(spent=spent, cost=cost, limit=room)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20), st.data())
def test_no_order_and_no_split_of_charges_costs_less(units: list[int], data: st.DataObject) -> None:
    """Charges rounded one by one cost at least what they cost together."""
    texts = [f"0.{unit:06d}{digit}7" for unit, digit in zip(units, range(20), strict=False)]
    costs = [cost_units(exact_epsilon(text), 10**6) for text in texts]
    exact = sum(Fraction(text) for text in texts)
    shuffled = data.draw(st.permutations(costs))
    total = Loss(0)
    for cost in shuffled:
        total = total + Loss(cost)
    assert total.epsilon == sum(costs)
    assert total.epsilon >= exact * 10**6


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_n_equal_charges_fit_a_limit_of_n_times_one_and_one_more_does_not(
    charges: int, thousandths: int
) -> None:
    rule = COMPOSITION_RULES["pure"]
    cost = Loss(cost_units(exact_epsilon(f"{thousandths}e-3"), PICO))
    limit = Loss(limit_units(exact_epsilon(f"{thousandths * charges}e-3"), PICO))
    spent = Loss(0)
    for _ in range(charges):
        assert rule.admits(spent=spent, cost=cost, limit=limit)
        spent = spent + cost
    assert spent == limit
    assert not rule.admits(spent=spent, cost=cost, limit=limit)


def test_ten_tenths_fit_one_where_floats_would_not_add_up() -> None:
    assert sum([0.1] * 10) != 1.0
    cost = cost_units(exact_epsilon(0.1), PICO)
    assert 10 * cost == limit_units(exact_epsilon(1), PICO)


@given(losses, losses)
def test_how_much_is_used_runs_from_0_to_1_and_is_1_when_nothing_more_fits(
    spent: Loss, limit: Loss
) -> None:
    for rule in COMPOSITION_RULES.values():
        used = rule.used(spent=spent, limit=limit)
        assert 0.0 <= used <= 1.0
        if not spent.within(limit):
            assert used == 1.0
        if spent == Loss(0):
            assert used == 0.0
        assert rule.remaining(spent=spent, limit=limit) == limit.minus(spent)


def test_only_approximate_accounts_pay_delta() -> None:
    for cost in (Loss(5), Loss(5, 1)):
        able = {name for name, rule in COMPOSITION_RULES.items() if rule.can_pay(cost)}
        assert able == ({"approximate"} if cost.delta else {"pure", "approximate"})


@pytest.mark.parametrize("name", COMPOSITION_RULES)
def test_a_rule_has_its_currency_and_names_its_theorem(name: str) -> None:
    rule = COMPOSITION_RULES[name]
    assert rule.currency == name
    assert "Theorem" in rule.theorem
