"""Basic composition as a stop rule: exact sums, and nothing beyond the limit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, generic_loss, pure_loss, zcdp_loss
from app.accounting.rules.basic import BasicRule
from app.accounting.rules.spending import Spend, plus
from app.accounting.rules.terms import AccountTerms
from app.accounting.units import PICO, UNITS_MAX, cost_units, limit_units
from app.planning.request import exact_epsilon

amounts = st.integers(0, 50) | st.integers(0, UNITS_MAX)
spends = st.tuples(amounts, amounts)
limits = st.tuples(*[st.integers(0, 50) | st.integers(0, UNITS_MAX - 1)] * 2)
rules = st.sampled_from([r for r in COMPOSITION_RULES.values() if isinstance(r, BasicRule)])


def terms(limit: Spend) -> AccountTerms:
    return AccountTerms(limit[0], limit[1], limit)


@given(rules, spends, spends, limits)
def test_a_charge_is_admitted_exactly_if_the_exact_sums_stay_within_the_limit(
    rule: BasicRule, spent: Spend, cost: Spend, limit: Spend
) -> None:
    sums = [Fraction(have) + more for have, more in zip(spent, cost, strict=True)]
    within = sums[0] <= limit[0] and sums[1] <= limit[1]
    assert rule.admits(plus(spent, cost), terms(limit)) == within


@given(rules, spends, limits)
def test_the_largest_epsilon_is_admitted_and_one_unit_more_is_not(
    rule: BasicRule, spent: Spend, limit: Spend
) -> None:
    largest = rule.largest_epsilon(spent, terms(limit))
    if rule.admits(spent, terms(limit)):
        assert rule.admits(plus(spent, (largest, 0)), terms(limit))
    else:
        assert largest == 0
    assert not rule.admits(plus(spent, (largest + 1, 0)), terms(limit))


@given(rules, spends, spends, limits, limits)
def test_a_larger_charge_never_costs_less_and_a_larger_limit_never_admits_less(
    rule: BasicRule, spent: Spend, cost: Spend, limit: Spend, more: Spend
) -> None:
    small = min(more[0], cost[0]), min(more[1], cost[1])
    room = max(more[0], limit[0]), max(more[1], limit[1])
    if rule.admits(plus(spent, cost), terms(limit)):
        assert rule.admits(plus(spent, small), terms(limit))
        assert rule.admits(plus(spent, cost), terms(room))


@given(rules, spends, spends, limits)
def test_exactly_the_stated_number_of_charges_fits(
    rule: BasicRule, spent: Spend, cost: Spend, limit: Spend
) -> None:
    often = rule.times(spent, cost, terms(limit))
    if not rule.admits(spent, terms(limit)):
        assert often == 0
    elif not any(cost):
        assert often == UNITS_MAX, "free questions always fit"
    else:
        assert rule.admits(plus(spent, (often * cost[0], often * cost[1])), terms(limit))
        once_more = (often + 1) * cost[0], (often + 1) * cost[1]
        assert not rule.admits(plus(spent, once_more), terms(limit))


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20), st.data())
def test_no_order_and_no_split_of_charges_costs_less(units: list[int], data: st.DataObject) -> None:
    """Charges rounded one by one cost at least as much as together."""
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
    cost = (cost_units(exact_epsilon(f"{thousandths}e-3"), PICO), 0)
    limit = (limit_units(exact_epsilon(f"{thousandths * charges}e-3"), PICO), 0)
    spent = rule.nothing
    for _ in range(charges):
        assert rule.admits(plus(spent, cost), terms(limit))
        spent = plus(spent, cost)
    assert spent == limit
    assert not rule.admits(plus(spent, cost), terms(limit))


def test_ten_tenths_fit_one_where_floats_would_not_add_up() -> None:
    assert sum([0.1] * 10) != 1.0
    cost = cost_units(exact_epsilon(0.1), PICO)
    assert 10 * cost == limit_units(exact_epsilon(1), PICO)


@given(rules, spends, limits)
def test_the_used_share_runs_from_0_to_1_and_is_1_when_nothing_more_fits(
    rule: BasicRule, spent: Spend, limit: Spend
) -> None:
    used = rule.used(spent, terms(limit))
    assert used >= 0.0
    if rule.admits(spent, terms(limit)):
        assert used <= 1.0
    else:
        assert used >= 1.0
    if not any(spent):
        assert used == 0.0
    left = rule.left(spent, terms(limit))
    assert left == tuple(max(0, of - have) for of, have in zip(limit, spent, strict=True))


WHO_CAN_PAY: dict[str, tuple[Loss, set[str]]] = {
    "a pure mechanism": (pure_loss(5), set(COMPOSITION_RULES)),
    "a delta": (generic_loss(5, 1), {"approximate", "zcdp", "renyi", "gdp"}),
    "a promise alone": (Loss(5, 1), {"approximate"}),
    "zcdp": (zcdp_loss(Fraction(1, 2)), {"zcdp", "renyi"}),
    "zcdp with a promise": (zcdp_loss(Fraction(1, 2), (5, 1)), {"approximate", "zcdp", "renyi"}),
    "gaussian": (gaussian_loss(Fraction(2)), {"zcdp", "renyi", "gdp"}),
    "gaussian with a promise": (
        gaussian_loss(Fraction(2), (5, 1)),
        {"approximate", "zcdp", "renyi", "gdp"},
    ),
    "no bound at all": (Loss(UNITS_MAX, 10**18), set()),
}


@pytest.mark.parametrize("what", WHO_CAN_PAY)
def test_currencies_pay_only_for_losses_they_can_count(what: str) -> None:
    """A pure account pays no delta, a gdp account nothing without a mu."""
    loss, expected = WHO_CAN_PAY[what]
    able = {name for name, rule in COMPOSITION_RULES.items() if rule.can_pay(rule.read(loss))}
    assert able == expected


@pytest.mark.parametrize("name", COMPOSITION_RULES)
def test_a_rule_has_its_currency_and_names_its_theorem(name: str) -> None:
    rule = COMPOSITION_RULES[name]
    assert rule.currency == name
    assert "filter" in rule.theorem
    source = {"zcdp": "Whitehouse", "renyi": "Feldman", "gdp": "Smith"}.get(name, "Theorem 5.1")
    assert source in rule.theorem
