"""The sparse vector technique.

Tests compare its scales and its law with golden numbers. They compute its loss by brute force, and
compare draws with the law.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from app.accounting.units import PICO
from app.errors import Invalid
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.streams.above_threshold import AboveThreshold, prepare, split
from tests.effort import thorough_after
from tests.mechanisms.noise.noise_law import chi_square_tail
from tests.mechanisms.streams.stream_law import Answers, Law, loss
from tests.queries.cards import card

FALSE_ALARM = 1e-6
ROUNDING = 1e-9


def stream(
    *, neighbours: str = "replace_one", crossings: int = 1, epsilon: str = "1", threshold: int = 0
) -> AboveThreshold:
    made, loss = prepare(
        card(neighbours=neighbours),
        threshold=threshold,
        crossings=crossings,
        asks_max=100,
        epsilon=Decimal(epsilon),
    )
    assert loss.epsilon == loss.pure == Decimal(epsilon) * PICO
    return made


def law_of(made: AboveThreshold) -> Law:
    return Law(made.threshold, made.crossings, made.threshold_scale, made.count_scale)


# Golden numbers (Lyu, Su and Li 2017, Algorithm 7)


def test_the_scales_are_the_golden_ones() -> None:
    one = stream()
    assert one.threshold_scale == pytest.approx(2.587401, abs=5e-7)
    assert one.count_scale == pytest.approx(3.259921, abs=5e-7)
    five = stream(crossings=5)
    assert 1 / five.threshold_scale == pytest.approx(0.1772550, abs=5e-8)
    assert five.count_scale == pytest.approx(12.154435, abs=5e-7)


@pytest.mark.parametrize("crossings", [1, 3, 40])
@pytest.mark.parametrize("one_way", [True, False])
@pytest.mark.parametrize("units", [1, 333_333_333_333, 10**18])
def test_both_parts_add_up_to_the_charge(crossings: int, one_way: bool, units: int) -> None:
    whole = Fraction(units, PICO)
    for_threshold, for_counts = split(whole, crossings, one_way=one_way)
    assert for_threshold + for_counts == whole
    assert min(for_threshold, for_counts) > 0


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("crossings", [1, 2, 7])
def test_the_scales_lose_no_more_than_was_charged(neighbours: str, crossings: int) -> None:
    """D / b + c (moved) D / s <= epsilon, in exact fractions of the floats in use."""
    made = stream(neighbours=neighbours, crossings=crossings, epsilon="0.3")
    moved = crossings if neighbours == "add_remove" else 2 * crossings
    parts = 1 / Fraction(made.threshold_scale) + moved / Fraction(made.count_scale)
    assert made.sensitivity * parts <= Fraction(3, 10)


GOLDEN = [
    ([2, 9, 4], 6, 2.0, 4.0, [0.246833, 0.547966, 0.0514104, 0.153791]),
    ([0, 0, 20], 10, 2.0, 2.0, [0.0140784, 0.0105726, 0.966208, 0.00914087]),
]


def one_after_another(values: list[int]) -> Callable[[Answers], int | None]:
    return lambda answers: values[len(answers)] if len(answers) < len(values) else None


@pytest.mark.parametrize(("values", "bar", "b", "s", "golden"), GOLDEN)
def test_the_probability_of_each_first_crossing_is_the_golden_one(
    values: list[int], bar: int, b: float, s: float, golden: list[float]
) -> None:
    """Integer noise, with ties above: to all golden digits."""
    found = Law(bar, 1, b, s).of(one_after_another(values))
    firsts = [found[(False,) * i + (True,)] for i in range(len(values))]
    assert [*firsts, found[(False,) * len(values)]] == pytest.approx(golden, rel=5e-6)


@pytest.mark.parametrize(("values", "bar", "b", "s", "golden"), GOLDEN)
@pytest.mark.statistical
def test_draws_follow_the_golden_law(
    values: list[int], bar: int, b: float, s: float, golden: list[float]
) -> None:
    """20,000 streams each. False alarms: 1e-6 for each of the two vectors."""
    expected = Law(bar, 1, b, s).of(one_after_another(values))
    assert p_value(drawn(values, bar, b, s), expected) > FALSE_ALARM


# Rising counts with little noise of their own reveal the threshold's noise. A count that stays far
# below reveals its own scale by its tail.
SHARP = {
    "threshold_scale": (list(range(-20, 21, 5)), 8.0, 1.0, 20_000),
    "count_scale": ([-16] * 10, 1.0, 8.0, 12_000),
}


@pytest.mark.parametrize("which", SHARP)
@pytest.mark.statistical
def test_draws_reject_either_scale_a_tenth_off(which: str) -> None:
    """False alarms: 1e-6 for each.

    With a scale 10 % off, the statistic is expected 160 above that of the law, and 47 is enough.
    None escapes with a probability above 1e-5.
    """
    values, b, s, runs = SHARP[which]
    counts = drawn(values, 0, b, s, runs)
    right = Law(0, 1, b, s)
    assert p_value(counts, right.of(one_after_another(values))) > FALSE_ALARM
    for factor in (0.9, 1.1):
        wrong = replace(right, **{which: factor * getattr(right, which)})
        assert p_value(counts, wrong.of(one_after_another(values))) < FALSE_ALARM, factor
    both = replace(right, threshold_scale=1.1 * b, count_scale=1.1 * s)
    assert p_value(counts, both.of(one_after_another(values))) < FALSE_ALARM


def drawn(values: list[int], bar: int, b: float, s: float, runs: int = 20_000) -> Counter[Answers]:
    made, noise = AboveThreshold(bar, 1, len(values), 1, b, s), SystemRandom()
    counts: Counter[Answers] = Counter()
    for _ in range(runs):
        secret = made.draw_threshold(noise)
        answers: Answers = ()
        for value in values:
            answers = (*answers, made.is_above(value, secret, noise))
            if answers[-1]:
                break
        counts[answers] += 1
    return counts


def p_value(counts: Counter[Answers], expected: dict[Answers, float]) -> float:
    """P value of chi-square; an odd number of degrees is rounded up, which errs towards no
    alarm.
    """
    size = counts.total()
    assert set(counts) <= set(expected)
    statistic = sum(
        (counts[answers] - size * want) ** 2 / (size * want) for answers, want in expected.items()
    )
    return chi_square_tail(statistic, len(expected) - 1 + (len(expected) - 1) % 2)


# The loss, by brute force


def strategies(depth: int) -> list[dict[Answers, int]]:
    """Every way to choose one of two queries after each sequence of answers, up to a depth."""
    places = [answers for n in range(depth) for answers in product((False, True), repeat=n)]
    return [dict(zip(places, picks, strict=True)) for picks in product((0, 1), repeat=len(places))]


def worst_loss(law: Law, moves: list[tuple[int, int]], depth: int) -> float:
    """Largest loss over adaptive analysts and neighbours.

    The analysts ask one of two queries at each step, around a threshold of 0. The neighbours move
    the two by these amounts.
    """
    worst = 0.0
    for starts in ((0, 0), (0, 2), (-1, 0), (2, -1)):
        for move in moves:
            for strategy in strategies(depth):

                def ask(answers: Answers, shift: tuple[int, int] = (0, 0)) -> int | None:
                    if len(answers) >= depth:
                        return None
                    pick = strategy[answers]  # noqa: B023  # used at once
                    return starts[pick] + shift[pick]  # noqa: B023  # used at once

                one = law.of(ask)
                other = law.of(lambda answers: ask(answers, move))  # noqa: B023  # used at once
                worst = max(worst, loss(one, other))
    return worst


ANY_WAY = [(1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (0, -1)]
ONE_WAY = [(1, 1), (1, 0), (0, 1), (-1, -1), (-1, 0), (0, -1)]


@pytest.mark.parametrize("crossings", thorough_after(1, [1, 2]))
def test_no_adaptive_analyst_sees_a_loss_above_the_charge(crossings: int) -> None:
    made = law_of(stream(crossings=crossings))
    assert worst_loss(made, ANY_WAY, depth=3) <= 1 + ROUNDING


@pytest.mark.parametrize("crossings", thorough_after(1, [1, 2]))
def test_counts_that_all_move_in_one_direction_need_half_the_noise(crossings: int) -> None:
    made = law_of(stream(neighbours="add_remove", crossings=crossings))
    assert worst_loss(made, ONE_WAY, depth=3) <= 1 + ROUNDING


# Small tables: the effect of neighbours on the counts of every filter

FILTERS = [{0}, {1}, {0, 1}]
Person = tuple[int, ...]  # the values of their rows


def counts_of(table: list[Person]) -> list[int]:
    return [sum(value in kept for person in table for value in person) for kept in FILTERS]


def neighbours_of(relation: str, rows_max: int) -> list[tuple[list[int], list[int]]]:
    """Counts of both tables, for every pair of neighbours of up to two persons."""
    persons: list[Person] = [
        rows for n in range(1, rows_max + 1) for rows in product((0, 1), repeat=n)
    ]
    others: list[list[Person]] = [[], *([each] for each in persons)]
    count_pairs = []
    for rest in others:
        for person in persons:
            if relation == "add_remove":
                count_pairs.append((counts_of(rest), counts_of([*rest, person])))
            else:
                count_pairs += [
                    (counts_of([*rest, person]), counts_of([*rest, p])) for p in persons
                ]
    return count_pairs


@pytest.mark.parametrize("rows_max", thorough_after(1, [1, 2]))
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_over_small_tables_no_stream_of_filters_loses_more_than_the_charge(
    relation: str, rows_max: int
) -> None:
    made, charge = prepare(
        card(neighbours=relation, rows_max=rows_max),
        threshold=1,
        crossings=2,
        asks_max=3,
        epsilon=Decimal(1),
    )
    pairs = neighbours_of(relation, rows_max)
    moves = [[a - b for a, b in zip(one, other, strict=True)] for one, other in pairs]
    assert max(abs(each) for move in moves for each in move) == made.sensitivity == rows_max
    both_ways = any(min(move) < 0 < max(move) for move in moves)
    assert both_ways == (relation == "replace_one"), (
        "half of the noise suffices only under add_remove"
    )
    assert made.count_scale == pytest.approx(count_scale(relation, made), rel=1e-9)
    law, worst = law_of(made), 0.0
    for one, other in {(tuple(one), tuple(other)) for one, other in pairs}:
        for asked in product(range(len(FILTERS)), repeat=3):
            laws = [
                law.of(one_after_another([counts[place] for place in asked]))
                for counts in (one, other)
            ]
            worst = max(worst, loss(*laws))
    assert 0.1 < worst <= charge.pure / PICO + ROUNDING


def count_scale(relation: str, made: AboveThreshold) -> float:
    """The scale for the rest of epsilon = 1 beside the threshold's part."""
    moved = made.crossings if relation == "add_remove" else 2 * made.crossings
    left = 1 - made.sensitivity / made.threshold_scale
    return moved * made.sensitivity / left


def long_stream(law: Law, moved: int, asks: int) -> float:
    """The loss of a fixed list: first all that stay below, then all that cross."""
    counts = [0] * asks + [3] * law.crossings

    def ask(answers: Answers, shift: int = 0) -> int | None:
        place = len(answers)
        if place >= len(counts) or answers != (*(False,) * asks, *(True,) * crossed)[:place]:
            return None
        return counts[place] + (shift if place < asks else -shift)

    crossed = law.crossings
    one, other = law.of(ask), law.of(lambda answers: ask(answers, moved))
    return loss(one, other)


@pytest.mark.parametrize("crossings", [1, 3, 6])
def test_long_streams_come_near_the_charge_and_never_above_it(crossings: int) -> None:
    made = law_of(stream(crossings=crossings, threshold=2))
    seen = max(long_stream(made, moved, 60) for moved in (1, -1))
    assert 0.6 < seen <= 1 + ROUNDING


def test_saboteur_query_noise_without_the_factor_of_crossings_is_caught() -> None:
    made = stream(crossings=6, threshold=2)
    unscaled = Law(2, 6, made.threshold_scale, made.count_scale / 6)
    assert max(long_stream(unscaled, moved, 60) for moved in (1, -1)) > 1.5


def test_saboteur_the_noise_of_monotone_counts_is_too_small_for_counts_that_move_both_ways() -> (
    None
):
    one_way = stream(neighbours="add_remove", crossings=6, threshold=2)
    seen = max(long_stream(law_of(one_way), moved, 60) for moved in (1, -1))
    assert seen > 1.05


def test_saboteur_a_threshold_without_noise_is_caught() -> None:
    made = stream(crossings=1, threshold=2)
    bare = Law(2, 1, 1e-3, made.count_scale)
    assert max(long_stream(bare, moved, 60) for moved in (1, -1)) > 2


# Edges


def test_the_error_bound_for_integers_is_at_most_the_continuous_one() -> None:
    """c = 1, epsilon = 1 split in half (b = 2, s = 4), 100 asks, 0.95: 40.55."""
    made = AboveThreshold(0, 1, 100, 1, 2.0, 4.0)
    assert 38 <= made.within(0.95) <= 40.55


@pytest.mark.parametrize("epsilon", ["1e-12", "3e6"])
def test_a_loss_without_feasible_noise_is_refused(epsilon: str) -> None:
    with pytest.raises(Invalid, match="/privacy/epsilon"):
        prepare(
            card(rows_max=100_000) if epsilon == "1e-12" else card(),
            threshold=0,
            crossings=1,
            asks_max=1,
            epsilon=Decimal(epsilon),
        )
