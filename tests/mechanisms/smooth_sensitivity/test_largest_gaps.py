"""The search for the largest weighted gap, compared with all pairs and with the exact envelope."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.mechanisms.smooth_sensitivity import largest_gaps as search
from app.mechanisms.smooth_sensitivity.largest_gaps import Gaps, largest_gaps
from app.mechanisms.smooth_sensitivity.rank_bound import (
    Weights,
    _largest,
    _largest_by_envelope,
    moving_bound,
)
from app.queries.shapes.ranks.rank import RankFromAbove, RankRule, ShareRank, ranks_of
from app.queries.shapes.ranks.window import Window
from tests.effort import examples

RATE = Fraction(1, 50)
SHARES = [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1), Fraction(1, 10**19)]


def value(gaps: Gaps, i: int, j: int) -> float:
    width = int(gaps.u[i]) + int(gaps.v[j])
    return float(np.exp(-gaps.rate * (int(gaps.p[i]) + int(gaps.q[j]))) * width)


def drawn(seed: int, starts: int, ends: int, widest: int) -> Gaps:
    """Random gaps; many of them tie, because widths and costs are small."""
    draw = np.random.default_rng(seed)  # noqa: TID251 - test data, no noise
    return Gaps(
        p=draw.integers(0, 200, starts),
        u=-np.sort(draw.integers(0, widest, starts)),
        first=draw.integers(0, ends + 3, starts),
        q=np.sort(draw.integers(0, 400, ends)),
        v=np.sort(draw.integers(0, widest, ends)),
        rate=float(RATE),
    )


gaps_of_any_size = st.builds(
    drawn,
    st.integers(0, 10**6),
    st.integers(1, 300),
    st.integers(1, 300),
    st.sampled_from([2, 5, 1000, 10**12]),
)


@examples(60, deadline=None)
@given(gaps_of_any_size)
def test_no_pair_outside_the_search_is_larger(gaps: Gaps) -> None:
    pairs = largest_gaps(gaps)
    assert pairs is not None
    every = [(i, j) for i in range(len(gaps.p)) for j in range(int(gaps.first[i]), len(gaps.q))]
    largest = max((value(gaps, *pair) for pair in every), default=0.0)
    assert set(pairs) <= set(every)
    assert max((value(gaps, *pair) for pair in pairs), default=0.0) == max(largest, 0.0)
    tied = {pair for pair in every if 0 < value(gaps, *pair) >= largest * (1 - search.MARGIN / 2)}
    assert tied <= set(pairs)


@examples(30, deadline=None)
@given(gaps_of_any_size)
def test_the_search_and_the_envelope_find_the_same_largest_value(gaps: Gaps) -> None:
    weights = Weights.of(RATE, 600)
    found = _largest(gaps, weights, weights.falls)
    exact = _largest_by_envelope(gaps, weights, weights.falls)
    assert abs(found - exact) * 10**40 <= exact


def test_weights_one_by_one_are_those_of_the_list() -> None:
    one_by_one, listed = (Weights.of(Fraction(7, 1000), 3000) for _ in range(2))
    listed.list_all()
    some = range(0, 3001, 37)
    assert [one_by_one.falls(k) for k in some] == [listed.falls(k) for k in some]


@pytest.mark.parametrize("rule", [*map(ShareRank, SHARES), RankFromAbove(3)])
@pytest.mark.parametrize("counts", [range(40), range(10**9, 10**9 + 40)])
def test_ranks_of_many_counts_are_those_of_each(rule: RankRule, counts: range) -> None:
    assert ranks_of(rule, counts).tolist() == [rule(count) for count in counts]


def bound(**options: Any) -> Fraction:
    """The bound of 400 values, multiplied and moved so that they may need more than 64 bits."""
    factor, origin = options.get("factor", 1), options.get("origin", 0)
    draw = np.random.default_rng(5)  # noqa: TID251 - test data, no noise
    values = tuple(origin + factor * int(v) for v in np.sort(draw.integers(0, 1000, 400)))
    window = Window((origin, origin + factor * 1000), 400, 1, values)
    return moving_bound(window, ShareRank(Fraction(1, 2)), Weights.of(RATE, 6 * 150 + 20), 150)


@pytest.mark.parametrize(("factor", "origin"), [(1, -(10**6)), (10**18, 0), (10**30, -(10**33))])
def test_the_size_and_place_of_values_do_not_matter(factor: int, origin: int) -> None:
    scaled = bound(factor=factor, origin=origin) / factor
    assert abs(scaled / bound() - 1) < Fraction(1, 10**40)


def test_too_many_pairs_are_left_to_the_envelope(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = bound()
    monkeypatch.setattr(search, "PAIRS_MAX", 0)
    assert largest_gaps(drawn(1, 100, 100, 5)) is None
    assert abs(bound() / usual - 1) < Fraction(1, 10**40)


def test_a_search_with_a_wrong_bound_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the bound of a block is half of what it must be."""
    bounds = search._Blocks.bounds
    monkeypatch.setattr(search._Blocks, "bounds", lambda self, s, e: bounds(self, s, e) * 0.5)
    with pytest.raises(AssertionError):
        test_no_pair_outside_the_search_is_larger()
