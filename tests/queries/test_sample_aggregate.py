"""Sample and aggregate: places of blocks, what one changed block does, and what is refused."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from statistics import median, pvariance
from typing import Any

import pytest

from app.accounting.rounding import PICO
from app.datasets import Card
from app.errors import Invalid
from app.mechanisms.additive import AdditiveRelease
from app.mechanisms.derived import DerivedRelease
from app.mechanisms.sampling import SystemNoise
from app.planning.plan import Plan, make_plan
from app.queries import sample_aggregate
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.choice_shape import ChoiceShape
from app.queries.derived_shape import DerivedShape
from app.queries.sample_aggregate import SampleAggregate
from app.queries.shape import Shape
from tests.mechanisms.choice_law import Law, exponential_law, permute_and_flip_law
from tests.queries.cards import card, question

ASKED: dict[str, Any] = {
    "kind": "sample_aggregate",
    "statistic": {"kind": "median", "column": "age"},
    "blocks": 4,
    "low": 0,
    "high": 100,
}
GAUSSIAN = {"kind": "gaussian"}


def shaped(made: Any = None, **changes: Any) -> tuple[SampleAggregate, DerivedShape]:
    query = question({**ASKED, **changes}).query
    assert isinstance(query, SampleAggregate)
    shape = query.shape(made or card())
    return query, shape


@pytest.mark.parametrize(
    ("relation", "rows", "changed"),
    [
        ("add_remove", None, 1),
        ("add_remove", 3, 3),
        ("replace_one", None, 2),
        ("replace_one", 3, 4),
    ],
)
def test_a_person_changes_as_many_blocks_as_they_have_rows(
    relation: str, rows: int | None, changed: int
) -> None:
    """Twice as many if replaced, and no more than there are."""
    declared = card(neighbours=relation, rows_max=rows)
    query, shape = shaped(declared, aggregate="mean")
    assert isinstance(shape.inner, Shape)
    assert shape.inner.measures[0].sensitivity == changed * query.top
    _, shape = shaped(declared)
    assert isinstance(shape.inner, ChoiceShape)
    assert shape.inner.score_range == 4 * changed


def test_one_place_moves_scores_apart_by_four_steps_at_most() -> None:
    """Over all places of three and four blocks; the bound is attained."""
    for blocks in (3, 4):
        query, shape = shaped(blocks=blocks)
        assert isinstance(shape.inner, ChoiceShape)
        levels = [query.top * i // 4 for i in range(5)]
        largest = 0
        seen = {}
        for places in product(levels, repeat=blocks):
            key = tuple(sorted(places))
            if key not in seen:
                seen[key] = shape.inner.scores((key,), 0)
        for places, scores in seen.items():
            for level in levels:
                other = seen[tuple(sorted((level, *places[1:])))]
                moves = [a - b for a, b in zip(scores, other, strict=True)]
                largest = max(largest, max(moves) - min(moves))
        assert largest <= 4
        assert largest >= (4 if blocks == 4 else 2)


# The law of what is told, by what one person can do to the places


def apart(law: Callable[[Sequence[int], float], Law], score_range: int, blocks: int) -> float:
    """The largest log-ratio of choices at epsilon 1 over all places of so many blocks, of which one
    is another, for noise that is scaled for this range."""
    query, shape = shaped(blocks=blocks)
    assert isinstance(shape.inner, ChoiceShape)
    levels = [query.top * i // 4 for i in range(5)]
    told = {
        places: law(shape.inner.scores((places,), 0), 1 / score_range)
        for places in combinations_with_replacement(levels, blocks)
    }
    return max(
        abs(math.log(p / q))
        for places, one in told.items()
        for level in levels
        for p, q in zip(one, told[tuple(sorted((level, *places[1:])))], strict=True)
    )


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
def test_choices_lose_no_more_than_is_charged_and_half_the_range_is_found_out(
    law: Callable[[Sequence[int], float], Law], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The saboteur scales for a block that moves scores one way only."""
    monkeypatch.setattr(sample_aggregate, "CANDIDATES", 5)
    assert apart(law, 4, blocks=4) <= 1 + 1e-9
    assert apart(law, 2, blocks=4) > 1.2


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [None, 3])
def test_gaussian_noise_is_for_all_blocks_that_a_person_changes(
    relation: str, rows: int | None
) -> None:
    """t blocks from one bound to the other: rho is (t W)^2 / (2 scale^2), and no less is charged.
    The saboteur takes every person for one of one row under add_remove."""
    declared = card(neighbours=relation, rows_max=rows)
    changes = {"aggregate": "mean", "blocks": 8}
    _, shape = shaped(declared, **changes)
    blocks = min(8, (rows or 1) * (2 if relation == "replace_one" else 1))
    ends = [[(block, 100 * (block < high)) for block in range(8)] for high in (0, blocks)]
    one, other = (shape.exact(each)[0][0] for each in ends)

    def lost(made: Card) -> float:
        asked = question({**ASKED, **changes}, privacy={"rho": "0.1"}, mechanism=GAUSSIAN)
        release = make_plan(asked, made).release
        assert release.loss.rho == PICO // 10
        assert isinstance(release, DerivedRelease)
        assert isinstance(release.inner, AdditiveRelease)
        scale = release.inner.parts[0].scale
        return float((other - one) ** 2 / (2 * scale**2))

    assert 0.0999 < lost(declared) <= 0.1 * (1 + 1e-9)
    if blocks > 1:
        assert lost(card()) > 0.35


def test_the_best_candidate_is_the_median_of_the_blocks() -> None:
    query, shape = shaped(blocks=5)
    assert isinstance(shape.inner, ChoiceShape)
    counts: BlockCounts = [(block, value) for block, value in enumerate((10, 20, 30, 40, 50))]
    exact = shape.exact(counts)
    scores = shape.inner.scores(exact, 0)
    assert shape.inner.outcomes[scores.index(max(scores))] == 30.0
    assert query.top == 100 * 2**13


@pytest.mark.parametrize(
    ("statistic", "numbers", "value"),
    [
        ({"kind": "mean", "column": "age"}, (4, 10, 0), 2.5),
        ({"kind": "median", "column": "age"}, (7,), 7.0),
        ({"kind": "iqr", "column": "age"}, (7, 19), 12.0),
        ({"kind": "variance", "column": "age"}, (4, 10, 30), 30 / 4 - 2.5**2),
        ({"kind": "mean", "column": "age"}, (1, 100, 0), 50.0),
    ],
)
def test_a_block_gives_its_statistic_within_the_bounds(
    statistic: dict[str, Any], numbers: tuple[int, ...], value: float
) -> None:
    query, shape = shaped(statistic=statistic, aggregate="mean", low=0, high=50)
    ((total,),) = shape.exact([(1, *numbers)])
    middle = query.top // 2
    assert total - 3 * middle == math.floor(Fraction(value) * 2**query.exponent)


def test_variance_and_mean_agree_with_plain_ones() -> None:
    values = [3, 8, 8, 40]
    query, shape = shaped(
        statistic={"kind": "variance", "column": "age"}, aggregate="mean", blocks=2, high=1000
    )
    assert isinstance(shape.source, BlockTally)
    assert shape.source.grain == 1
    numbers = (len(values), sum(values), sum(v * v for v in values))
    places = query.places([(0, *numbers)], card().column("age"))  # type: ignore[arg-type]
    assert places[0] == math.floor(Fraction(pvariance(values)) * 2**query.exponent)
    assert places[1] == query.top // 2


def plan(mechanism: str, **changes: Any) -> Plan:
    asked = question({**ASKED, **changes}, mechanism={"kind": mechanism})
    return make_plan(asked, card())


def test_the_width_of_the_sheet() -> None:
    """M9: bounds 100 apart, 50 blocks, epsilon 0.5: scale 4, 95 % within 11.98293."""
    asked = question({**ASKED, "aggregate": "mean", "blocks": 50}, epsilon="0.5")
    made = make_plan(asked, card())
    assert isinstance(made.release, DerivedRelease)
    half = made.release.expected_error(0.95)["half_width"]
    assert math.isclose(half, 11.98293, abs_tol=1e-4)
    wanted = question(
        {**ASKED, "aggregate": "mean", "blocks": 50},
        privacy={"half_width": 11.983},
        mechanism={"kind": "laplace"},
    )
    assert math.isclose(make_plan(wanted, card()).loss.epsilon / 1e12, 0.5, rel_tol=1e-3)


def test_answers_are_within_the_bounds_and_near_the_blocks() -> None:
    counts: BlockCounts = [(block, 40 + block % 3) for block in range(200)]
    for mechanism, changes in (
        ("laplace", {"aggregate": "mean"}),
        ("permute_and_flip", {}),
        ("exponential", {}),
    ):
        made = plan(mechanism, blocks=200, **changes)
        assert isinstance(made.release, DerivedRelease)
        exact = made.release.shape.exact(counts)
        told = [made.answer(exact, SystemNoise())["value"] for _ in range(50)]
        assert all(0 <= value <= 100 for value in told)
        assert abs(median(told) - 41) < 3


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"low": 5, "high": 5}, "/query"),
        ({"blocks": 1}, "/query/blocks"),
        ({"low": 1.0, "high": math.nextafter(1.0, 2.0)}, ""),
        ({"statistic": {"kind": "median", "column": "city"}}, "/query/statistic/column"),
        ({"statistic": {"kind": "median", "column": "nobody"}}, "/query/statistic/column"),
        ({"statistic": {"kind": "quantile", "column": "age"}}, "/query/statistic"),
        ({"statistic": {"kind": "median", "column": "age", "q": 0.5}}, "/query/statistic"),
        ({"statistic": {"kind": "python", "column": "age"}}, "/query/statistic"),
    ],
)
def test_what_cannot_be_asked_is_refused(changes: dict[str, Any], at: str) -> None:
    if at == "":
        _, shape = shaped(**changes)  # as fine as there are numbers, and no finer
        assert isinstance(shape, DerivedShape)
        return
    with pytest.raises((Invalid, ValueError)):
        shaped(**changes)
