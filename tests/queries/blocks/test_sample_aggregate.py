"""Sample and aggregate: levels of blocks, the effect of one changed block, and refusals."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from statistics import median
from typing import Any

import pytest
from pydantic import ValidationError

from app.accounting.units import PICO
from app.api.http.validation_errors import invalid
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.noise.additive import AdditiveRelease
from app.mechanisms.post_processed import PostProcessedRelease
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import Plan, make_plan
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.blocks import sample_aggregate
from app.queries.blocks.sample_aggregate import WORK_MAX, SampleAggregate
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.shapes.selection import SelectionShape
from app.queries.shapes.sums import SumShape
from tests.mechanisms.selection.selection_law import (
    Law,
    chi_square,
    exponential_law,
    permute_and_flip_law,
)
from tests.queries.cards import card, promised_width, question

ASKED: dict[str, Any] = {
    "kind": "sample_aggregate",
    "statistic": {"kind": "median", "column": "age"},
    "blocks": 4,
    "low": 0,
    "high": 100,
}
GAUSSIAN = {"kind": "gaussian"}
REGRESSION = {
    "kind": "linear_regression",
    "outcome": "age",
    "features": ["income"],
    "coefficient": "income",
}


def shaped(made: Any = None, **changes: Any) -> tuple[SampleAggregate, PostProcessedShape]:
    query = question({**ASKED, **changes}).query
    assert isinstance(query, SampleAggregate)
    shape = query.shape(made or card())
    return query, shape


@pytest.mark.parametrize("rows", [None, 1, 3, 100])
@pytest.mark.parametrize(("relation", "changed"), [("add_remove", 1), ("replace_one", 2)])
def test_a_person_changes_one_block_or_two_with_any_number_of_rows(
    relation: str, rows: int | None, changed: int
) -> None:
    """Two blocks change if the person is replaced. Blocks hold whole persons if these may have
    several rows."""
    declared = card(neighbours=relation, rows_max=rows)
    query, shape = shaped(declared, aggregate="mean")
    assert isinstance(shape.inner, SumShape)
    assert shape.inner.measures[0].sensitivity == changed * query.top
    _, shape = shaped(declared)
    assert isinstance(shape.inner, SelectionShape)
    assert shape.inner.score_range == 4 * changed
    assert isinstance(shape.source, BlockTally)
    assert shape.source.persons == (rows in (3, 100))


def test_one_changed_block_moves_scores_apart_by_at_most_four_steps() -> None:
    """Checked for all results of three and four blocks; the bound is attained."""
    for blocks in (3, 4):
        query, shape = shaped(blocks=blocks)
        assert isinstance(shape.inner, SelectionShape)
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


# The law of the answers, given the effect of one person on the blocks


def apart(law: Callable[[Sequence[int], float], Law], score_range: int, blocks: int) -> float:
    """Largest log-ratio of choices at epsilon 1 over all results of this many blocks. One block
    differs, and the noise is scaled for this range."""
    query, shape = shaped(blocks=blocks)
    assert isinstance(shape.inner, SelectionShape)
    levels = [query.top * i // 4 for i in range(5)]
    laws = {
        places: law(shape.inner.scores((places,), 0), 1 / score_range)
        for places in combinations_with_replacement(levels, blocks)
    }
    return max(
        abs(math.log(p / q))
        for places, one in laws.items()
        for level in levels
        for p, q in zip(one, laws[tuple(sorted((level, *places[1:])))], strict=True)
    )


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
def test_choices_lose_no_more_than_is_charged_and_half_the_range_is_caught(
    law: Callable[[Sequence[int], float], Law], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The saboteur scales for a block that moves scores in one direction only."""
    monkeypatch.setattr(sample_aggregate, "CANDIDATES", 5)
    assert apart(law, 4, blocks=4) <= 1 + 1e-9
    assert apart(law, 2, blocks=4) > 1.2


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [None, 3])
def test_gaussian_noise_covers_all_blocks_a_person_changes(relation: str, rows: int | None) -> None:
    """If t blocks move from one bound to the other, rho is (t W)^2 / (2 scale^2), and no less is
    charged. The saboteur treats a replaced person as one who leaves."""
    declared = card(neighbours=relation, rows_max=rows)
    changes = {"aggregate": "mean", "blocks": 8}
    _, shape = shaped(declared, **changes)
    blocks = 2 if relation == "replace_one" else 1
    ends = [[(block, 100 * (block < high)) for block in range(8)] for high in (0, blocks)]
    one, other = (shape.exact(each)[0][0] for each in ends)

    def lost(made: Card) -> float:
        asked = question({**ASKED, **changes}, privacy={"rho": "0.1"}, mechanism=GAUSSIAN)
        release = make_plan(asked, made).release
        assert release.loss.rho == PICO // 10
        assert isinstance(release, PostProcessedRelease)
        assert isinstance(release.inner, AdditiveRelease)
        scale = release.inner.parts[0].scale
        return float((other - one) ** 2 / (2 * scale**2))

    assert 0.0999 < lost(declared) <= 0.1 * (1 + 1e-9)
    if blocks > 1:
        assert lost(card()) > 0.35


def test_the_best_candidate_is_the_median_of_the_blocks() -> None:
    query, shape = shaped(blocks=5)
    assert isinstance(shape.inner, SelectionShape)
    counts: BlockCounts = [(block, value) for block, value in enumerate((10, 20, 30, 40, 50))]
    exact = shape.exact(counts)
    scores = shape.inner.scores(exact, 0)
    assert shape.inner.outcomes[scores.index(max(scores))] == 30.0
    assert query.top == 100 * 2**13


@pytest.mark.parametrize("value", [0, 1, 33, 50, 99, 100])
def test_blocks_that_agree_have_the_nearest_candidate_as_the_best(value: int) -> None:
    """The candidates are 0.12 apart."""
    _, shape = shaped(blocks=5, high=120)
    assert isinstance(shape.inner, SelectionShape)
    scores = shape.inner.scores(shape.exact([(block, value) for block in range(5)]), 0)
    (best,) = [j for j, score in enumerate(scores) if score == 0]
    assert abs(shape.inner.outcomes[best] - value) <= 0.06001
    assert max(scores[:best] + scores[best + 1 :]) == -5


@pytest.mark.parametrize(
    ("statistic", "numbers", "value"),
    [
        ({"kind": "mean", "column": "age"}, (4, 10), 2.5),
        ({"kind": "median", "column": "age"}, (7,), 7.0),
        ({"kind": "iqr", "column": "age"}, (7, 19), 12.0),
        ({"kind": "variance", "column": "age"}, (4, 10, 30), 30 / 4 - 2.5**2),
        ({"kind": "mean", "column": "age"}, (1, 100), 50.0),
    ],
)
def test_a_block_returns_its_statistic_within_the_bounds(
    statistic: dict[str, Any], numbers: tuple[int, ...], value: float
) -> None:
    query, shape = shaped(statistic=statistic, aggregate="mean", low=0, high=50)
    ((total,),) = shape.exact([(1, *numbers)])
    middle = query.top // 2
    assert total - 3 * middle == math.floor(Fraction(value) * 2**query.exponent)


def plan(mechanism: str, **changes: Any) -> Plan:
    asked = question({**ASKED, **changes}, mechanism={"kind": mechanism})
    return make_plan(asked, card())


def test_the_width_is_that_of_the_sheet() -> None:
    """M9: with bounds 100 apart, 50 blocks and epsilon 0.5, the scale is 4 and 95 % are within
    11.98293."""
    asked = question({**ASKED, "aggregate": "mean", "blocks": 50}, epsilon="0.5")
    made = make_plan(asked, card())
    assert isinstance(made.release, PostProcessedRelease)
    half = promised_width(made.release, 0.95)
    assert math.isclose(half, 11.98293, abs_tol=1e-4)
    parsed = question(
        {**ASKED, "aggregate": "mean", "blocks": 50},
        privacy={"half_width": 11.983},
        mechanism={"kind": "laplace"},
    )
    assert math.isclose(make_plan(parsed, card()).loss.epsilon / 1e12, 0.5, rel_tol=1e-3)


def test_answers_are_within_the_bounds_and_near_the_blocks() -> None:
    counts: BlockCounts = [(block, 40 + block % 3) for block in range(200)]
    for mechanism, changes in (
        ("laplace", {"aggregate": "mean"}),
        ("permute_and_flip", {}),
        ("exponential", {}),
    ):
        made = plan(mechanism, blocks=200, **changes)
        assert isinstance(made.release, PostProcessedRelease)
        exact = made.release.shape.exact(counts)
        values = [made.answer(exact, SystemRandom())["value"] for _ in range(50)]
        assert all(0 <= value <= 100 for value in values)
        assert abs(median(values) - 41) < 3


# Votes of modes

MODE = {"kind": "mode", "column": "city"}


def voted(declared: Card) -> tuple[PostProcessedShape, SelectionShape]:
    query: dict[str, Any] = {"kind": "sample_aggregate", "statistic": MODE, "blocks": 4}
    asked = question(query).query
    assert isinstance(asked, SampleAggregate)
    shape = asked.shape(declared)
    assert isinstance(shape.inner, SelectionShape)
    return shape, shape.inner


def test_a_changed_block_moves_one_vote() -> None:
    """R is 2 for each block that a person changes; some votes of four blocks attain it."""
    for relation, changed in (("add_remove", 1), ("replace_one", 2)):
        assert voted(card(neighbours=relation))[1].score_range == 2 * changed
    shape, choice = voted(card())
    largest = 0
    for votes in product((None, 0, 1, 2), repeat=4):
        for other in (None, 0, 1, 2):
            counts = (
                [(block, vote) for block, vote in enumerate(each) if vote is not None]
                for each in (votes, (other, *votes[1:]))
            )
            scores = [choice.scores(shape.exact(each), 0) for each in counts]
            moves = [a - b for a, b in zip(*scores, strict=True)]
            largest = max(largest, max(moves) - min(moves))
    assert largest == 2


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
def test_votes_lose_no_more_than_is_charged_and_half_the_range_is_caught(
    law: Callable[[Sequence[int], float], Law],
) -> None:
    """Compare all votes of four blocks for three categories with those after one changed block. The
    saboteur treats a changed block as one that appears."""

    def apart(score_range: int) -> float:
        def law_of_votes(votes: tuple[int | None, ...]) -> Law:
            return law([votes.count(category) for category in range(3)], 1 / score_range)

        return max(
            abs(math.log(p / q))
            for votes in product((None, 0, 1, 2), repeat=4)
            for other in (None, 0, 1, 2)
            for p, q in zip(law_of_votes(votes), law_of_votes((other, *votes[1:])), strict=True)
        )

    assert apart(2) <= 1 + 1e-9
    assert apart(1) > 1.2


def test_the_most_frequent_mode_is_drawn_by_its_law() -> None:
    """4,000 draws at epsilon 1 of votes 3, 1 and 0, in a chi-square test with a false alarm once in
    a million runs. The test rejects the law of half the range."""
    query = {"kind": "sample_aggregate", "statistic": MODE, "blocks": 4}
    made = make_plan(question(query, mechanism={"kind": "exponential"}), card())
    assert isinstance(made.release, PostProcessedRelease)
    exact = made.release.shape.exact([(0, 0), (1, 0), (2, 1), (3, 0)])
    noise = SystemRandom()
    drawn = [made.answer(exact, noise)["value"] for _ in range(4000)]
    counts = [drawn.count(city) for city in ("Bern", "Chur", "Zürich")]
    assert chi_square(counts, exponential_law([3, 1, 0], 1 / 2)) > 1e-6
    assert chi_square(counts, exponential_law([3, 1, 0], 1.0)) < 1e-6


def test_votes_that_one_person_could_not_change_are_released_exactly() -> None:
    """A lead of at most R = 2 votes is released with probability below delta; one of 200 always."""
    query = {"kind": "sample_aggregate", "statistic": MODE, "blocks": 200}
    privacy = {"epsilon": "1", "delta": "1e-6"}
    asked = question(query, privacy=privacy, mechanism={"kind": "stable_value"})
    made = make_plan(asked, card())
    assert isinstance(made.release, PostProcessedRelease)
    noise = SystemRandom()
    for ahead, status in ((200, "answered"), (101, "withheld")):
        counts = [(block, 2 if block < ahead else 0) for block in range(200)]
        answer = made.answer(made.release.shape.exact(counts), noise)
        assert answer.get("status", "answered") == status
        assert answer["value"] == ("Zürich" if status == "answered" else None)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no width": ({"low": 5, "high": 5}, "/query"),
    "one block": ({"blocks": 1}, "/query/blocks"),
    "no bound": ({"low": None}, "/query/low"),
    "a category": ({"statistic": {"kind": "median", "column": "city"}}, "/query/statistic/column"),
    "no column": ({"statistic": {"kind": "sum", "column": "nobody"}}, "/query/statistic/column"),
    "no share": ({"statistic": {"kind": "quantile", "column": "age"}}, "/query/statistic"),
    "a share": (
        {"statistic": {"kind": "median", "column": "age", "q": 0.5}},
        "/query/statistic",
    ),
    "all of a share": (
        {"statistic": {"kind": "quantile", "column": "age", "q": 1}},
        "/query/statistic/q",
    ),
    "code": ({"statistic": {"kind": "python", "column": "age"}}, "/query/statistic/kind"),
    "half is taken away": (
        {"statistic": {"kind": "trimmed_mean", "column": "age", "trim": 0.5}},
        "/query/statistic/trim",
    ),
    "count of a column": (
        {"statistic": {"kind": "count", "column": "age"}},
        "/query/statistic/column",
    ),
    "no numerator": (
        {"statistic": {"kind": "ratio", "numerator": {}}},
        "/query/statistic/numerator",
    ),
    "a sum over rows": (
        {"statistic": {"kind": "ratio", "numerator": {"column": "age"}}},
        "/query/statistic/denominator",
    ),
    "over what may be 0": (
        {
            "statistic": {
                "kind": "ratio",
                "numerator": {"column": "age"},
                "denominator": {"column": "age"},
            }
        },
        "/query/statistic/denominator/column",
    ),
    "a share by another column": (
        {
            "statistic": {
                "kind": "ratio",
                "numerator": {"where": {"column": "nobody", "op": "==", "value": 1}},
            }
        },
        "/query/statistic/numerator/where/column",
    ),
    "cdf of a category": (
        {"statistic": {"kind": "cdf", "column": "city", "edge": 3}},
        "/query/statistic/column",
    ),
    "an edge that is no day": (
        {"statistic": {"kind": "cdf", "column": "born", "edge": 3}},
        "/query/statistic/edge",
    ),
    "a mode with bounds": ({"statistic": MODE, "high": None}, "/query/low"),
    "a mean of modes": (
        {"statistic": MODE, "low": None, "high": None, "aggregate": "mean"},
        "/query/aggregate",
    ),
    "votes of numbers": ({"aggregate": "votes"}, "/query/aggregate"),
    "a mode of numbers": (
        {"statistic": {"kind": "mode", "column": "age"}, "low": None, "high": None},
        "/query/statistic/column",
    ),
    "no such coefficient": (
        {"statistic": {**REGRESSION, "coefficient": "city"}},
        "/query/statistic/coefficient",
    ),
    "no such intercept": (
        {"statistic": {**REGRESSION, "coefficient": "(intercept)", "intercept": False}},
        "/query/statistic/coefficient",
    ),
    "a feature twice": (
        {"statistic": {**REGRESSION, "features": ["income", "income"]}},
        "/query/statistic/features",
    ),
    "an outcome as feature": (
        {"statistic": {**REGRESSION, "features": ["income", "age"]}},
        "/query/statistic/features/1",
    ),
    "no such outcome": (
        {"statistic": {**REGRESSION, "outcome": "city"}},
        "/query/statistic/outcome",
    ),
    "a feature of days": (
        {"statistic": {**REGRESSION, "features": ["born"]}},
        "/query/statistic/features/0",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_an_invalid_question_is_refused(name: str) -> None:
    changes, at = REFUSED[name]
    query = {**ASKED, **changes}
    for bound in ("low", "high"):
        if query[bound] is None:
            del query[bound]
    pointers: list[str] = []
    try:
        question(query).query.shape(card())
    except ValidationError as error:
        body = {"query": query, "dataset": "people", "privacy": {"epsilon": "1"}}
        pointers = [each.pointer for each in invalid(error.errors(), body).fields]
    except Invalid as error:
        pointers = [each.pointer for each in error.fields]
    assert pointers == [at]


def test_candidates_are_as_fine_as_the_floats_and_no_finer() -> None:
    _, shape = shaped(low=1.0, high=math.nextafter(1.0, 2.0))
    assert isinstance(shape, PostProcessedShape)


def test_fits_of_many_terms_are_allowed_for_fewer_blocks() -> None:
    """Their work is public: terms cubed, per block."""
    columns = [{"name": f"c{i}", "type": "integer", "low": 0, "high": 9} for i in range(18)]
    names = [each["name"] for each in columns]

    def ask(terms: int, blocks: int) -> PostProcessedShape:
        statistic = {**REGRESSION, "outcome": "c0", "features": names[1:terms], "coefficient": "c1"}
        query = question({**ASKED, "blocks": blocks, "statistic": statistic}).query
        shape = query.shape(card(columns))
        assert isinstance(shape, PostProcessedShape)
        return shape

    ask(5, 10_000)
    ask(16, WORK_MAX // 16**3)
    with pytest.raises(Invalid, match="/query/blocks"):
        ask(16, WORK_MAX // 16**3 + 1)
    with pytest.raises(Invalid, match="/query/statistic/features"):
        ask(17, 2)
