"""Properties of the stop rules of all currencies."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.curves.orders import ORDERS
from app.accounting.loss import NO_CURVE, Loss
from app.accounting.losses import (
    discrete_laplace_loss,
    gaussian_loss,
    generic_loss,
    laplace_loss,
    pure_loss,
    zcdp_loss,
)
from app.accounting.precise import INFINITE
from app.accounting.rules.curved import CurveRule
from app.accounting.rules.rule import Rule
from app.accounting.rules.spending import Spend, largest, minus, plus, two_largest
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import ATTO, PICO
from tests.effort import examples

RULES = list(COMPOSITION_RULES.values())
CURVED = [rule for rule in RULES if isinstance(rule, CurveRule)]


def terms_of(rule: Rule, epsilon: str = "1", delta: str = "1e-6", **more: Any) -> AccountTerms:
    given_delta = Decimal(0) if rule.currency == "pure" else Decimal(delta)
    return rule.freeze(GrantTerms(epsilon=Decimal(epsilon), delta=given_delta, **more))


GRANTED = {rule.currency: terms_of(rule) for rule in RULES}

# From a unit to far beyond any limit; few, because each is computed in 40 digits once.
EPSILONS = [1, 10**3, 10**6, 10**9, 10**10, PICO // 30, PICO // 10, PICO // 2, PICO, 30 * PICO]
epsilons = st.sampled_from(EPSILONS)
pure_losses = st.builds(pure_loss, epsilons)
multipliers = st.fractions(Fraction(1, 2), 500, max_denominator=20)
losses = st.one_of(
    pure_losses,
    st.builds(laplace_loss, epsilons),
    st.builds(generic_loss, epsilons, st.sampled_from([1, 10**6, 10**9])),
    st.builds(gaussian_loss, multipliers),
    st.builds(gaussian_loss, multipliers, st.tuples(epsilons, st.integers(1, 10**12))),
    st.builds(zcdp_loss, st.fractions(Fraction(1, 10**6), 2, max_denominator=10**6)),
)
rules = st.sampled_from(RULES)
curved = st.sampled_from(CURVED)


def total_of(rule: Rule, charges: list[Loss]) -> Spend:
    return reduce(plus, map(rule.read, charges), rule.nothing)


def numbers(loss: Loss) -> Spend:
    simple = (loss.epsilon, loss.delta, loss.pure, loss.failure, loss.rho, loss.mu_squared)
    return (*simple, *loss.curve)


def at_most(one: Spend, other: Spend) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


# Order and splitting


@examples(60)
@given(rules, st.lists(losses, max_size=8), st.data())
def test_the_order_of_charges_changes_neither_totals_nor_admission(
    rule: Rule, charges: list[Loss], data: st.DataObject
) -> None:
    terms = GRANTED[rule.currency]
    shuffled = data.draw(st.permutations(charges))
    total = total_of(rule, charges)
    assert total_of(rule, shuffled) == total
    for sequence in (charges, shuffled):
        steps = [total_of(rule, sequence[: n + 1]) for n in range(len(sequence))]
        each_fits = all(rule.admits(step, terms) for step in steps)
        assert each_fits == rule.admits(total, terms), "a part must be admitted if the whole is"


@given(epsilons, epsilons)
def test_two_questions_are_as_private_together_as_one_with_both_epsilons(a: int, b: int) -> None:
    """In epsilon a split costs exactly the same.

    In divergences it saves what composition theorems save for any adaptive analyst. It never costs
    less than the larger part.
    """
    apart, one = pure_loss(a) + pure_loss(b), pure_loss(min(a + b, 40 * PICO))
    if a + b <= 40 * PICO:
        assert (apart.epsilon, apart.delta, apart.pure) == (one.epsilon, 0, one.pure)
        # Convex and 0 at 0: a split saves, up to the rounding of each part by less than 2 units. So
        # a sum kept in epsilon bounds the sum of all costs (`currency_change.py`).
        assert apart.rho <= one.rho + 4
        assert apart.mu_squared <= one.mu_squared + 4
        assert at_most(apart.curve, tuple(units + 4 for units in one.curve))
    for part in (pure_loss(a), pure_loss(b)):
        assert at_most(numbers(part), numbers(apart))
        assert at_most(numbers(part), numbers(one))


parts = st.fractions(Fraction(1, 10**9), 1, max_denominator=10**9)


@examples(30)
@given(st.lists(parts, min_size=1, max_size=9))
def test_gaussian_noise_in_parts_never_costs_less_than_at_once(rhos: list[Fraction]) -> None:
    apart = reduce(Loss.__add__, map(zcdp_loss, rhos))
    whole = zcdp_loss(sum(rhos, Fraction(0)))
    assert at_most(whole.curve, apart.curve)
    assert whole.rho <= apart.rho < whole.rho + len(rhos)
    for curve, order in zip(whole.curve, ORDERS, strict=True):
        assert 0 <= curve - sum(rhos) * order * PICO < 1


@examples(30)
@given(rules, losses)
def test_a_rule_accepts_a_loss_exactly_if_it_can_pay_its_cost(rule: Rule, loss: Loss) -> None:
    assert rule.pays(loss) == rule.can_pay(rule.read(loss))


@given(losses, st.integers(1, 50))
def test_repeated_charges_cost_the_same_together_and_one_by_one(loss: Loss, count: int) -> None:
    assert loss.times(count) == reduce(Loss.__add__, [loss] * count)


@given(epsilons, epsilons)
def test_a_larger_question_never_costs_less(a: int, b: int) -> None:
    small, large = sorted((a, b))
    for price in (pure_loss, laplace_loss, lambda e: discrete_laplace_loss(e, (Fraction(7),))):
        assert at_most(numbers(price(small)), numbers(price(large)))


@examples(30)
@given(epsilons, st.fractions(1, 10**6, max_denominator=1000))
def test_finer_noise_costs_between_continuous_noise_and_the_worst_pure_mechanism(
    epsilon: int, steps: Fraction
) -> None:
    discrete = discrete_laplace_loss(epsilon, (steps,))
    assert at_most(discrete.curve, tuple(u + 1 for u in pure_loss(epsilon).curve))
    assert at_most(laplace_loss(epsilon).curve, tuple(u + 1 for u in discrete.curve))


# Rounding: compared with the same mathematics in 90 digits, written differently


def exact_curve(e: Decimal, a: Decimal) -> Decimal:
    """Randomised response: two outcomes, summed directly."""
    p = 1 / (1 + (-e).exp())
    q = 1 - p if e < 100 else (-e).exp() * p
    return (p**a * q ** (1 - a) + q**a * p ** (1 - a)).ln() / (a - 1)


@examples(30)
@given(st.integers(10**3, 20 * PICO))
def test_costs_are_never_below_the_true_ones_and_hardly_above(epsilon: int) -> None:
    loss = pure_loss(epsilon)
    with localcontext() as context:
        context.prec = 90
        e = Decimal(epsilon) / PICO
        u = (-e).exp()
        assert 0 <= loss.rho - e * (1 - u) / (1 + u) * PICO < Decimal("1.0001")
        for units, order in list(zip(loss.curve, ORDERS, strict=True))[::6]:
            a = Decimal(order.numerator) / order.denominator
            assert 0 <= units - exact_curve(e, a) * PICO < Decimal("1.0001")


# Accumulators


@given(rules, st.lists(losses, max_size=6), losses)
def test_an_accepted_charge_raises_every_number_it_costs(
    rule: Rule, earlier: list[Loss], charge: Loss
) -> None:
    before, cost = total_of(rule, earlier), rule.read(charge)
    after = plus(before, cost)
    assert at_most(before, after)
    for was, paid, now in zip(before, cost, after, strict=True):
        assert now == min(INFINITE, was + paid)
    delta = 1
    assert all(paid > 0 for place, paid in enumerate(cost) if place != delta), "no charge is free"


@given(curved, st.lists(losses, max_size=5), losses)
def test_a_refund_leaves_the_rest_and_never_restores_a_lost_bound(
    rule: Rule, earlier: list[Loss], charge: Loss
) -> None:
    before = total_of(rule, earlier)
    after = plus(before, rule.read(charge))
    back = minus(after, rule.read(charge))
    for was, then, now in zip(before, after, back, strict=True):
        assert now == (INFINITE if then == INFINITE else was)


def test_refunding_a_charge_without_a_pure_bound_keeps_the_pure_rule_closed() -> None:
    rule, terms = COMPOSITION_RULES["renyi"], GRANTED["renyi"]
    gaussian = rule.read(gaussian_loss(Fraction(100)))
    spent = plus(rule.nothing, gaussian)
    assert spent[0] == INFINITE
    assert rule.admits(spent, terms)
    back = minus(spent, gaussian)
    assert back == (INFINITE, *rule.nothing[1:])
    assert rule.admits(back, terms), "the curve still admits it"
    tenths = rule.read(pure_loss(PICO // 10))
    assert rule.times(back, tenths, terms) < rule.times(rule.nothing, tenths, terms) == 10


spend_lists = st.lists(st.tuples(*[st.integers(0, 9) | st.just(INFINITE)] * 3), min_size=1)


@given(spend_lists)
def test_the_largest_and_the_two_largest_bound_each_one_and_each_pair(
    spends: list[Spend],
) -> None:
    for place in range(3):
        column = sorted(spend[place] for spend in spends)
        assert largest(spends)[place] == column[-1]
        assert two_largest(spends)[place] == min(INFINITE, sum(column[-2:]))


# Impossible values


NO_LOSSES: dict[str, dict[str, Any]] = {
    "negative": {"epsilon": -1},
    "a negative rho": {"epsilon": 1, "rho": -1},
    "a negative mu": {"epsilon": 1, "mu_squared": -5},
    "a negative failure": {"epsilon": 1, "failure": -1},
    "more than 64 bits": {"epsilon": INFINITE + 1},
    "a curve that is negative somewhere": {"epsilon": 1, "curve": (*NO_CURVE[1:], -1)},
    "a curve with NaN": {"epsilon": 1, "curve": (*NO_CURVE[1:], float("nan"))},
    "NaN": {"epsilon": float("nan")},
    "a short curve": {"epsilon": 1, "curve": NO_CURVE[1:]},
    "no curve": {"epsilon": 1, "curve": ()},
}


@pytest.mark.parametrize("what", NO_LOSSES)
def test_a_loss_is_never(what: str) -> None:
    with pytest.raises(ValueError, match=r"non-negative|one value for each"):
        Loss(**NO_LOSSES[what])


@pytest.mark.parametrize("bad", ["NaN", "sNaN", "-1", "Infinity", "-Infinity"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.currency)
def test_terms_are_never_made_from_invalid_numbers(rule: Rule, bad: str) -> None:
    delta = Decimal(0) if rule.currency == "pure" else Decimal("1e-6")
    wishes = [
        GrantTerms(epsilon=Decimal(bad), delta=delta),
        GrantTerms(epsilon=Decimal(1), delta=Decimal(bad)),
        GrantTerms(rho=Decimal(bad), delta=delta),
        GrantTerms(mu=Decimal(bad), delta=delta),
        GrantTerms(epsilon=Decimal(1), delta=delta, failure_delta=Decimal(bad)),
        GrantTerms(epsilon=Decimal(1), delta=delta, order=Decimal(bad)),
    ]
    for wish in wishes:
        with pytest.raises(Exception, match=r".") as caught:
            rule.freeze(wish)
        assert not isinstance(caught.value, AssertionError | NotImplementedError)


# Displayed figures match what the rule then does


@examples(60)
@given(rules, st.lists(losses, max_size=8), losses)
def test_exactly_the_shown_number_of_charges_fits(
    rule: Rule, earlier: list[Loss], charge: Loss
) -> None:
    terms, total, cost = GRANTED[rule.currency], total_of(rule, earlier), rule.read(charge)
    often = rule.times(total, cost, terms)

    def fits(count: int) -> bool:
        return rule.admits(plus(total, tuple(min(INFINITE, count * u) for u in cost)), terms)

    if rule.admits(total, terms):
        assert fits(often)
    else:
        assert often == 0
    assert not fits(often + 1)


@examples(60)
@given(rules, st.lists(losses, max_size=8))
def test_the_largest_epsilon_fits_and_a_thousandth_more_does_not(
    rule: Rule, earlier: list[Loss]
) -> None:
    terms, total = GRANTED[rule.currency], total_of(rule, earlier)
    epsilon = rule.largest_epsilon(total, terms)
    if rule.admits(total, terms):
        assert rule.admits(plus(total, rule.read(pure_loss(epsilon))), terms)
    else:
        assert epsilon == 0
    more = max(epsilon + 10**4, epsilon + epsilon // 1000)
    assert not rule.admits(plus(total, rule.read(pure_loss(more))), terms)


@given(rules, st.lists(losses, max_size=8))
def test_the_used_share_is_0_at_first_and_exceeds_1_exactly_where_the_rule_stops(
    rule: Rule, earlier: list[Loss]
) -> None:
    terms, total = GRANTED[rule.currency], total_of(rule, earlier)
    used = rule.used(total, terms)
    assert used >= 0
    assert used == 0 or earlier
    assert used <= 1 if rule.admits(total, terms) else used >= 1
    assert at_most(rule.left(total, terms), tuple(max(0, of) for of in terms.limits))


@given(curved, st.lists(losses, max_size=8), losses)
def test_the_odometer_never_decreases_and_never_exceeds_the_sum(
    rule: Rule, earlier: list[Loss], charge: Loss
) -> None:
    terms, before = GRANTED[rule.currency], total_of(rule, earlier)
    after = plus(before, rule.read(charge))
    earlier_reading, reading = rule.promise_spent(before, terms), rule.promise_spent(after, terms)
    assert earlier_reading[0] <= reading[0] <= after[0]
    assert reading[1] == (after[1] if reading[0] == after[0] else after[1] + terms.conversion)
    assert terms.conversion + terms.limits[1] == terms.delta <= ATTO
