"""Properties of every list of events."""

from collections.abc import Iterator
from decimal import Decimal, localcontext
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.calculator import optimal
from app.accounting.calculator.compose import compose
from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.events import Event
from app.accounting.calculator.figures import DoesNotApply
from app.accounting.calculator.renyi import converted_epsilon
from app.accounting.precise import CONTEXT
from tests.accounting.calculator.cases import (
    EXACT_ACCOUNTANTS,
    Counted,
    concentrated,
    discrete_gaussian,
    discrete_laplace,
    exponential,
    gaussian,
    generic,
    laplace,
    pure,
    response,
    results,
    sampled,
)
from tests.effort import examples

SOME: list[Event] = [
    *(laplace("0.1"), laplace("2"), pure("0.3"), exponential("0.5"), response("1", 4)),
    *(discrete_laplace("0.4", 3), generic("0.2", "1e-8"), gaussian("3"), discrete_gaussian("20")),
    *(concentrated("0.002"), sampled("1.2", "0.05")),
]
COUNTED = st.tuples(st.sampled_from(SOME), st.integers(1, 10**6))
LISTS = st.lists(COUNTED, min_size=1, max_size=5)
SHORT = st.lists(st.tuples(st.sampled_from(SOME), st.integers(1, 12)), min_size=1, max_size=4)


@examples(20)
@given(LISTS, st.data())
def test_merging_splitting_and_reordering_change_nothing(
    events: list[Counted], data: st.DataObject
) -> None:
    split = list(
        chain.from_iterable(
            [(event, 1), (event, count - 1)] if count > 1 else [(event, count)]
            for event, count in events
        )
    )
    shuffled = data.draw(st.permutations(split))
    fast = [name for name in EXACT_ACCOUNTANTS if name != "optimal"]
    for question in ({"delta": "1e-5"}, {"epsilon": "3"}):
        assert results(events, fast, **question) == results(shuffled, fast, **question)


@examples(20)
@given(SHORT, st.tuples(st.sampled_from(SOME), st.integers(1, 12)))
def test_more_events_never_cost_less(events: list[Counted], more: Counted) -> None:
    before = results(events, delta="1e-5")
    after = results([*events, more], delta="1e-5")
    for name in EXACT_ACCOUNTANTS:
        if "unavailable" not in after[name]:
            assert after[name]["epsilon"] >= before[name]["epsilon"], name


@examples(15)
@given(SHORT)
def test_a_larger_group_a_smaller_delta_or_epsilon_never_costs_less(events: list[Counted]) -> None:
    one = results(events, delta="1e-4")
    for harder in (
        results(events, delta="1e-4", group_size=2),
        results(events, delta="1e-6"),
    ):
        for name in EXACT_ACCOUNTANTS:
            if "unavailable" not in harder[name]:
                assert harder[name]["epsilon"] >= one[name]["epsilon"], name
    loose, tight = results(events, epsilon="2"), results(events, epsilon="1")
    for name in EXACT_ACCOUNTANTS:
        if "unavailable" not in tight[name]:
            assert tight[name]["delta"] >= loose[name]["delta"], name


@examples(15)
@given(SHORT)
def test_epsilon_at_a_delta_and_delta_at_that_epsilon_agree(events: list[Counted]) -> None:
    there = results(events, delta="1e-5")
    for name in EXACT_ACCOUNTANTS:
        if name == "basic" or "unavailable" in there[name] or there[name]["epsilon"] == 0:
            continue
        shown = repr(there[name]["epsilon"])
        back = results(events, [name], epsilon=str(Decimal(shown)))[name]
        assert back["delta"] <= 1.0000001e-5, name


@pytest.mark.parametrize("accountant", ["optimal", "zcdp", "renyi", "gdp"])
def test_no_accountant_is_below_the_optimum_for_pure_events(accountant: str) -> None:
    """Only the epsilon of a pure event is known; `optimal` gives the least bound."""
    for count in (1, 10, 200):
        shown = results([(pure("0.2"), count)], ["optimal", accountant], delta="1e-6")
        assert shown[accountant]["epsilon"] >= shown["optimal"]["epsilon"]


def test_a_group_is_priced_as_repeated_single_steps() -> None:
    """k epsilon, k^2 rho, k mu, and delta (e^(k e) - 1)/(e^e - 1)."""
    for name in ("basic", "zcdp", "renyi", "gdp"):
        assert results([(laplace("0.3"), 2)], [name], delta="1e-6") == results(
            [(laplace("0.1"), 2)], [name], delta="1e-6", group_size=3
        )
    assert results([(concentrated("0.09"), 2)], ["zcdp"], delta="1e-6") == results(
        [(concentrated("0.01"), 2)], ["zcdp"], delta="1e-6", group_size=3
    )
    assert results([(gaussian("4"), 2)], ["gdp"], delta="1e-6") == results(
        [(gaussian("12"), 2)], ["gdp"], delta="1e-6", group_size=3
    )
    grown = results([(generic("0.1", "1e-8"), 1)], ["basic"], delta="1e-6", group_size=2)["basic"]
    assert grown["epsilon"] == 0.2
    assert grown["delta"] == pytest.approx(1e-8 * (1 + 1.1051709180756477), rel=1e-9)
    # Two persons who answer once each cost less than one answer with twice the epsilon.
    twice = results([(response("1", 4), 2)], delta="1e-6", neighbours="replace_one")
    assert twice == results(
        [(response("1", 4), 1)], delta="1e-6", neighbours="replace_one", group_size=2
    )


def test_the_relation_decides_which_curves_are_known() -> None:
    replaced = results([(response("1", 9), 30)], ["renyi"], delta="1e-6", neighbours="replace_one")
    added = results([(response("1", 9), 30)], ["renyi"], delta="1e-6")
    assert replaced["renyi"]["epsilon"] < added["renyi"]["epsilon"]
    assert added == results([(pure("1"), 30)], ["renyi"], delta="1e-6")
    under = results([(sampled("1", "0.1"), 1)], delta="1e-6", neighbours="replace_one")
    assert "add_remove" in under["renyi"]["unavailable"]
    assert "sampling" in under["zcdp"]["notes"][0]


def test_exhausted_deltas_leave_no_result() -> None:
    shown = results([(generic("0.1", "1e-7"), 11)], delta="1e-6")
    assert all("unavailable" in result for result in shown.values())
    shown = results([(generic("0.1", "1e-7"), 9)], delta="1e-6")
    assert all("epsilon" in result for result in shown.values())


def test_a_group_too_large_for_any_promise_has_delta_one() -> None:
    hopeless: list[Counted] = [(generic("1", "0.5"), 1)]
    asked = results(hopeless, ["pld", *EXACT_ACCOUNTANTS], delta="0.9", group_size=10)
    assert all("unavailable" in result for result in asked.values())
    asked = results(hopeless, ["pld", *EXACT_ACCOUNTANTS], epsilon="20", group_size=10)
    assert all(result["delta"] == 1 for result in asked.values())


def test_work_is_bounded_for_very_many_different_events() -> None:
    many: list[Counted] = [(laplace(str(Decimal(i) / 10**6)), 1) for i in range(1, 501)]
    whole = compose(Composition.of(many), ["renyi"], delta=Decimal("1e-6"))
    assert "fewer orders" in whole["curve"]["unavailable"]
    least = min(
        epsilon_of_curve(many, order) for order in (Decimal(n) for n in (152, 256, 440, 1024))
    )
    assert whole["results"]["renyi"]["epsilon"] <= least + 1e-9  # the search found the best order
    few = compose(Composition.of(many, orders=[Decimal(2)]), ["basic"], delta=Decimal("1e-6"))
    assert len(few["curve"]["epsilon"]) == 1
    noisy: list[Counted] = [(gaussian(str(i)), 1) for i in range(1, 202)]
    assert "different" in results(noisy, ["basic"], delta="1e-6")["basic"]["unavailable"]
    sampling: list[Counted] = [(sampled(str(i), "0.1"), 1) for i in range(1, 52)]
    assert "sampled" in results(sampling, ["renyi"], delta="1e-6")["renyi"]["unavailable"]


def epsilon_of_curve(events: list[Counted], order: Decimal) -> float:
    with localcontext(CONTEXT):
        divergence = Composition.of(events).renyi(order)
        return float(converted_epsilon(divergence, order, Decimal("1e-6")))


def test_epsilons_with_coinciding_losses_are_refused_before_long_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each step would be small, but a thousand of them once took minutes."""
    steps = []
    binomial = optimal._binomial

    def counting(epsilon: Decimal, count: int, first: int) -> Iterator[tuple[Decimal, Decimal]]:
        steps.append(epsilon)
        return binomial(epsilon, count, first)

    monkeypatch.setattr(optimal, "_binomial", counting)
    with pytest.raises(DoesNotApply):
        optimal._different({Decimal(1 + i) / 1000: 1 for i in range(1000)})
    assert len(steps) < 100
