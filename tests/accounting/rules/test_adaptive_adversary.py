"""Stop rules against an analyst who tries every strategy: naive rules break, ours hold."""

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import product
from statistics import NormalDist
from typing import Any

import mpmath
import pytest

from app.accounting import COMPOSITION_RULES
from app.accounting.curves.conversion import renyi_limit
from app.accounting.curves.orders import ORDERS
from app.accounting.loss import Loss
from app.accounting.precise import INFINITE, decimal, units_down
from app.accounting.rules.spending import Spend, plus
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import ATTO, PICO
from tests.accounting.rules.adversary import (
    Costs,
    Game,
    Mechanism,
    leaky_input,
    randomized_response,
    rare,
)

EPSILON, DELTA = 1.0, 1e-6
ROUNDING = 1e-9  # of floats, relative to delta
# A first question with an unlikely answer: the later spend differs by the answer.
UNLIKELY = rare(1e-4, 0.35)
FIRST = tuple(
    each
    for chance, loss in product((1e-2, 1e-4, 1e-5), (0.1, 0.2, 0.35, 0.5))
    for each in (rare(chance, loss), rare(chance, loss).exchanged())
)


def limit(order: float, delta: float) -> float:
    """The largest divergence that converts to (EPSILON, delta), by the improved conversion."""
    return EPSILON - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)


def overshoot(order: float) -> float:
    """The x at which (1 - exp(-x)) is largest for its divergence at an order: exp(-x) = 1 -
    1/order.
    """
    return -math.log1p(-1 / order)


def any_order(
    orders: Sequence[float], deltas: Sequence[float], menu: tuple[Mechanism, ...]
) -> Game:
    """Accept while some order is within the limit of its own delta."""
    limits = [limit(*each) for each in zip(orders, deltas, strict=True)]

    def accepts(totals: Costs, cost: Costs) -> bool:
        return any(have + more <= of for have, more, of in zip(totals, cost, limits, strict=True))

    return Game(
        epsilon=EPSILON,
        nothing=(0.0,) * len(orders),
        cost=lambda mechanism: tuple(mechanism.divergence(order) for order in orders),
        accepts=accepts,
        menu=menu,
        overshoots=tuple(map(overshoot, orders)),
    )


def one_order_with_failures(*, frozen: bool) -> Game:
    """Order 63 and leaks: delta is split at the grant, or anew at every question."""

    def accepts(totals: Costs, cost: Costs) -> bool:
        divergence: float = totals[0] + cost[0]
        failure: float = totals[1] + cost[1]
        if frozen:
            return failure <= 0.5 * DELTA and divergence <= limit(63, 0.5 * DELTA)
        left = DELTA - failure
        return left > 0 and divergence <= limit(63, left)

    return Game(
        epsilon=EPSILON,
        nothing=(0.0, 0.0),
        cost=lambda mechanism: (mechanism.divergence(63), mechanism.leak),
        accepts=accepts,
        menu=FIRST,
        overshoots=(overshoot(63),),
        leaks_up_to=0.99 * DELTA,
    )


# Naive rules


def test_choosing_the_best_order_afterwards_nearly_doubles_delta() -> None:
    assert any_order((16, 63), (DELTA, DELTA), (UNLIKELY,)).best(2) > 1.97 * DELTA


def test_converting_with_the_remaining_delta_nearly_doubles_it() -> None:
    assert one_order_with_failures(frozen=False).best(2) > 1.98 * DELTA


def converted(order: int, divergence: Any) -> Any:
    """The improved conversion, to forty digits."""
    a, delta = mpmath.mpf(order), mpmath.mpf(DELTA)
    return divergence + mpmath.log(1 - 1 / a) - (mpmath.log(delta) + mpmath.log(a)) / (a - 1)


def exact_divergence(mechanism: Mechanism, order: int) -> Any:
    first, second = ([mpmath.mpf(p) for p in side] for side in (mechanism.first, mechanism.second))

    def one_way(ps: list[Any], qs: list[Any]) -> Any:
        terms = (p**order * q ** (1 - order) for p, q in zip(ps, qs, strict=True))
        return mpmath.log(mpmath.fsum(terms)) / (order - 1)

    return max(one_way(first, second), one_way(second, first))


def test_the_broken_promise_is_exact_to_forty_digits() -> None:
    """Both branches look private at some order, but together they are not: four transcripts."""
    game = any_order((16, 63), (DELTA, DELTA), (UNLIKELY,))
    spent = game.cost(UNLIKELY)
    # After the unlikely answer, cut for order 63; after the likely one, for order 16.
    [(p_rare, q_rare), (p_common, q_common)] = UNLIKELY.outcomes()
    aimed_63 = EPSILON - math.log(p_rare / q_rare) + overshoot(63)
    aimed_16 = EPSILON - math.log(p_common / q_common) + overshoot(16)
    chance_63 = 0.999 * _largest(game, spent, aimed_63)
    chance_16 = 0.999 * _largest(game, spent, aimed_16)
    after = (rare(chance_63, aimed_63), rare(chance_16, aimed_16))
    with mpmath.workdps(40):
        reached = mpmath.mpf(0)
        for (p, q), following, order in zip(UNLIKELY.outcomes(), after, (63, 16), strict=True):
            # The probabilities are exact values of floats; each branch sums to one.
            shown = exact_divergence(UNLIKELY, order) + exact_divergence(following, order)
            assert converted(order, shown) <= EPSILON
            for p_next, q_next in following.outcomes():
                ahead = mpmath.mpf(p) * p_next - mpmath.exp(EPSILON) * mpmath.mpf(q) * q_next
                reached += max(mpmath.mpf(0), ahead)
    assert reached > 1.97 * DELTA


def _largest(game: Game, totals: Costs, loss: float) -> float:
    [cut] = game._cut(totals, lambda chance: rare(chance, loss))
    return cut.first[0]


# Correct rules


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (0.1, 0.9)])
def test_orders_that_share_delta_stay_within_it(shares: tuple[float, float], depth: int) -> None:
    menu = FIRST if depth < 3 else (UNLIKELY, rare(1e-2, 0.1), randomized_response(0.05))
    game = any_order((16, 63), [share * DELTA for share in shares], menu)
    reached = game.best(depth)
    assert reached <= DELTA * (1 + ROUNDING)
    assert reached > 0.85 * DELTA  # otherwise the search would prove nothing


def test_a_single_order_may_use_all_of_delta() -> None:
    for order in (16, 63):
        reached = any_order((order,), (DELTA,), FIRST).best(2)
        assert 0.99 * DELTA < reached <= DELTA * (1 + ROUNDING)


def test_a_frozen_split_stays_within_delta() -> None:
    reached = one_order_with_failures(frozen=True).best(2)
    assert 0.95 * DELTA < reached <= DELTA * (1 + ROUNDING)


# The rules of the ledger

NORMAL = NormalDist()
RHO_ORDERS = [1.0 + 0.02 * 1.25**i for i in range(60)]


@cache
def loss_of(mechanism: Mechanism) -> Loss:
    """The booked loss of a mechanism, at most slightly above its true loss."""
    pure = math.ceil(mechanism.loss() * PICO - 0.01)  # so that 0.25 is 0.25, not a unit more
    failure = math.ceil(mechanism.leak * ATTO * (1 - 1e-15))
    return Loss(
        epsilon=pure,
        delta=failure,
        pure=pure,
        failure=failure,
        rho=units(rho_of(mechanism)),
        mu_squared=units(mu_of(mechanism) ** 2),
        curve=tuple(units(mechanism.divergence(float(order))) for order in ORDERS),
    )


def units(value: float) -> int:
    return math.ceil(value * (1 + 1e-10) * PICO)


def rho_of(mechanism: Mechanism) -> float:
    """The largest D(a) / a, searched on a grid and between its neighbours."""

    def at(order: float) -> float:
        return mechanism.divergence(order) / order

    if len(mechanism.first) == 1:
        return 0.0
    best = max(range(len(RHO_ORDERS)), key=lambda i: at(RHO_ORDERS[i]))
    low, high = (RHO_ORDERS[min(max(i, 0), len(RHO_ORDERS) - 1)] for i in (best - 1, best + 1))
    fine = (low * (high / low) ** (i / 40) for i in range(41))
    return max(map(at, fine)) * (1 + 1e-4)


def mu_of(mechanism: Mechanism) -> float:
    """The mu of two answers: their trade-off curve has one corner, and a Gaussian's must pass below
    it.
    """
    if len(mechanism.first) == 1:
        return 0.0
    return abs(NORMAL.inv_cdf(mechanism.first[0]) - NORMAL.inv_cdf(mechanism.second[0]))


def ledger_game(currency: str, wish: GrantTerms, **options: Any) -> tuple[Game, float]:
    """The currency's own rule and terms, and the delta it promises."""
    rule = COMPOSITION_RULES[currency]
    terms: AccountTerms = options.pop("terms", None) or rule.freeze(wish)

    def accepts(totals: Spend, cost: Spend) -> bool:
        return rule.can_pay(cost) and rule.admits(plus(totals, cost), terms)

    game = Game(
        epsilon=terms.epsilon / PICO,
        nothing=rule.nothing,
        cost=lambda mechanism: rule.read(loss_of(mechanism)),
        accepts=accepts,
        **options,
    )
    return game, terms.delta / ATTO


FEW = (UNLIKELY, UNLIKELY.exchanged(), rare(1e-3, 0.2), randomized_response(0.02))
SMALL = GrantTerms(epsilon=Decimal(1), delta=Decimal("1e-6"))
AIMED = tuple(map(overshoot, (12, 22, 66)))
# Large enough for answers that are not rare, and for the pure rule beside the currency's own.
LARGE = GrantTerms(epsilon=Decimal("1.5"), delta=Decimal("0.05"), failure_delta=Decimal("0.02"))
SIMPLE = GrantTerms(epsilon=Decimal("1.5"), delta=Decimal("0.05"))
ANSWERS = (
    *map(randomized_response, (0.25, 0.5, 0.75, 1.5)),
    *(randomized_response(epsilon, leak=0.01) for epsilon in (0.25, 0.5, 0.75, 1.5)),
    leaky_input(0.02),
    rare(0.05, 1.0),
)


@pytest.mark.parametrize("currency", ["renyi", "zcdp", "gdp"])
def test_no_strategy_breaks_the_promise_of_an_account(currency: str) -> None:
    game, delta = ledger_game(
        currency, SMALL, menu=FEW, overshoots=AIMED, leaks_up_to=delta_of(SMALL) / 1000
    )
    reached = game.best(2)
    assert reached <= delta * (1 + ROUNDING)
    assert reached > FOUND[currency] * delta


def delta_of(wish: GrantTerms) -> float:
    return float(wish.delta)


# How near to delta the search came when this was written: it must not get weaker.
FOUND = {"renyi": 0.94, "zcdp": 0.99, "gdp": 0.99}
FOUND_OF_ANSWERS = {"pure": 0.0, "approximate": 0.98, "renyi": 0.7, "zcdp": 0.5, "gdp": 0.49}
FOUND_OF_ODOMETERS = {"renyi": 0.85, "zcdp": 0.6, "gdp": 0.05}


@pytest.mark.parametrize("currency", ["pure", "approximate", "renyi", "zcdp", "gdp"])
def test_no_strategy_of_plain_answers_breaks_the_promise(currency: str) -> None:
    wish = {"pure": replace(SIMPLE, delta=Decimal(0)), "approximate": SIMPLE}.get(currency, LARGE)
    game, delta = ledger_game(currency, wish, menu=ANSWERS)
    reached = game.best(4)
    assert reached <= delta * (1 + ROUNDING) + 1e-15
    assert reached > FOUND_OF_ANSWERS[currency] * delta or currency == "pure"


def test_the_search_would_find_a_pure_account_that_overspends() -> None:
    wish = replace(SIMPLE, delta=Decimal(0))
    terms = COMPOSITION_RULES["pure"].freeze(replace(wish, epsilon=Decimal("1.75")))
    game, _ = ledger_game("pure", wish, menu=ANSWERS, terms=replace(terms, epsilon=15 * PICO // 10))
    assert game.best(4) > 0.1


def test_the_search_would_find_orders_that_do_not_share_delta() -> None:
    """The ledger's own rule, with limits as if each order had all of delta."""
    rule = COMPOSITION_RULES["renyi"]
    terms = rule.freeze(SMALL)
    conversion = Decimal(terms.conversion) / ATTO
    whole = tuple(units_down(renyi_limit(Decimal(1), decimal(a), conversion)) for a in ORDERS)
    unsound = replace(terms, limits=(*terms.limits[:2], *whole))
    game, delta = ledger_game("renyi", SMALL, menu=FEW, overshoots=AIMED, terms=unsound)
    assert game.best(2) > 1.9 * delta


@pytest.mark.parametrize("currency", ["renyi", "zcdp", "gdp"])
def test_the_epsilon_spent_holds_at_every_stopping_time(currency: str) -> None:
    """An analyst who stops by the answers finds no moment with a loss above it, except with
    probability delta.
    """
    rule = COMPOSITION_RULES[currency]
    terms = rule.freeze(SMALL)

    def read_off(totals: Spend) -> float:
        spent, _ = rule.promise_spent(totals, terms)
        return 700.0 if spent >= INFINITE else spent / PICO

    menu = (*FEW, *(rare(9e-7, loss) for loss in (0.7, 1.0, 1.3)))
    game, delta = ledger_game(currency, SMALL, menu=menu, overshoots=(0.2, 0.3), odometer=read_off)
    reached = game.best(2)
    assert reached <= delta * (1 + ROUNDING)
    assert reached > FOUND_OF_ODOMETERS[currency] * delta
