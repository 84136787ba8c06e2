"""Randomised response: tables within their loss, exact draws, correct estimates and intervals."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from app.accounting.curves import renyi_curves
from app.accounting.units import PICO
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.local.randomized_response import (
    GridEstimate,
    UniformEstimate,
    chance_interval,
    prepare,
    reports_apart,
)
from app.mechanisms.local.report_tables import (
    WHOLE,
    GridTable,
    UniformTable,
    chances_at,
    distances_on,
    drawn,
    grid_table,
    uniform_table,
)
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Privacy, Question
from app.queries.randomized_column import RandomizedShape
from tests.mechanisms.noise.noise_law import FALSE_ALARM, binomial_tail, chi_square_tail
from tests.queries.cards import COLUMNS, card, promised_width, question
from tests.queries.reference import tallied

Json = dict[str, Any]
ONE = PICO
LN3 = math.floor(math.log(3) * PICO)
GRIDS = [(1, 2), (1, 5), (2, 3), (3, 3), (4, 4)]
epsilons = st.integers(PICO // 1000, 20 * PICO)


def rows_card(rows: int = 100) -> Card:
    person = {"kind": "row"}
    body = {"person": person, "neighbours": "replace_one", "rows": rows, "columns": COLUMNS}
    return Card.model_validate(body)


def uniform(outcomes: int, epsilon: int) -> UniformTable:
    table = uniform_table(outcomes, epsilon)
    assert table is not None
    return table


def within(largest: int, least: int, epsilon: int) -> bool:
    """largest / least <= e^epsilon, to eighty digits."""
    with localcontext() as context:
        context.prec = 80
        return Decimal(largest) / Decimal(least) <= (Decimal(epsilon) / PICO).exp()


# The loss


@given(st.integers(2, 1000), epsilons)
def test_a_uniform_table_is_within_its_loss_and_one_unit_less_noise_is_not(
    outcomes: int, epsilon: int
) -> None:
    table = uniform(outcomes, epsilon)
    assert table.keep + (outcomes - 1) * table.other == WHOLE
    assert within(table.keep, table.other, epsilon)
    sabotaged = UniformTable(outcomes, table.other - 1)
    assert not within(sabotaged.keep, sabotaged.other, epsilon)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("epsilon", [PICO // 10, ONE, 5 * PICO, 20 * PICO])
def test_a_grid_table_is_within_its_loss_for_every_pair_of_values_and_attains_it(
    grid: tuple[int, int], epsilon: int
) -> None:
    table = grid_table(grid, epsilon)
    assert all(sum(row) == WHOLE for row in table.chances)
    columns = list(zip(*table.chances, strict=True))
    assert all(within(max(column), min(column), epsilon) for column in columns)
    real = max(math.log(max(column) / min(column)) for column in columns)
    assert real >= epsilon / PICO * (1 - 1e-4)


def law_of(counts: list[int], table: UniformTable | GridTable) -> dict[tuple[int, ...], Fraction]:
    """The law of the counted reports, row by row, in exact fractions."""
    outcomes = len(counts)

    def chance(value: int, report: int) -> Fraction:
        if isinstance(table, GridTable):
            return Fraction(table.chances[value][report], WHOLE)
        return Fraction(table.keep if value == report else table.other, WHOLE)

    law = {(0,) * outcomes: Fraction(1)}
    for value in (v for v, count in enumerate(counts) for _ in range(count)):
        following: dict[tuple[int, ...], Fraction] = {}
        for seen, mass in law.items():
            for report in range(outcomes):
                after = tuple(n + (i == report) for i, n in enumerate(seen))
                following[after] = following.get(after, Fraction(0)) + mass * chance(value, report)
        law = following
    return law


@pytest.mark.parametrize("epsilon", [PICO // 2, 2 * PICO])
def test_no_replaced_row_makes_any_reports_more_likely_than_is_charged(epsilon: int) -> None:
    """Checked for all tables of three rows and three outcomes, and all their neighbours."""
    tables: list[UniformTable | GridTable] = [uniform(3, epsilon), grid_table((1, 3), epsilon)]
    for table in tables:
        worst = Fraction(0)
        for rows in product(range(3), repeat=3):
            counts = [rows.count(i) for i in range(3)]
            law = law_of(counts, table)
            for other in range(3):
                neighbour = [(other, *rows[1:]).count(i) for i in range(3)]
                compared = law_of(neighbour, table)
                worst = max(worst, *(law[seen] / compared[seen] for seen in law))
        assert within(worst.numerator, worst.denominator, epsilon)
        assert math.log(worst) >= epsilon / PICO * (1 - 1e-4)


def test_the_curve_is_that_of_the_mechanism_sheet() -> None:
    """K = 100 at ln 3: RDP(2) = 0.05096644; binary at ln 3: 0.8472979; at 1, order 8: 0.9552484."""
    ln3 = Decimal(3).ln()
    assert float(renyi_curves.randomized_response(ln3, 100, Decimal(2))) == pytest.approx(
        0.05096644
    )
    assert float(renyi_curves.randomized_response(ln3, 2, Decimal(2))) == pytest.approx(0.8472979)
    eighth = renyi_curves.randomized_response(Decimal(1), 2, Decimal(8))
    assert float(eighth) == pytest.approx(0.9552484)
    plan = make_plan(question({"kind": "randomized_column", "column": "city"}), rows_card())
    assert plan.loss.epsilon == ONE
    assert plan.loss.rho == pytest.approx(0.4621172 * PICO, rel=1e-6)
    pure = make_plan(question({"kind": "count"}), rows_card())
    assert all(a < b for a, b in zip(plan.loss.curve, pure.loss.curve, strict=True))


# Tables and estimates of the mechanism sheet


def test_uniform_tables_are_those_of_the_mechanism_sheet() -> None:
    binary = uniform(2, ONE)
    assert binary.keep / WHOLE == pytest.approx(0.7310586)
    many = uniform(100, LN3)
    assert many.keep / WHOLE == pytest.approx(3 / 102)
    assert many.other / WHOLE == pytest.approx(1 / 102)


def test_a_tuned_grid_is_that_of_the_mechanism_sheet() -> None:
    """3 x 3 at epsilon 1: with the generic rate 1/8, P(true | corner) is 0.1411930 and that of the
    opposite corner 0.0856379. This is a loss of only 1/2. Tuned, the rate is 1/4 and P(true) is
    0.1757529."""
    generic = chances_at(distances_on((3, 3)), 1 / 8)
    assert generic[0][0] == pytest.approx(0.1411930)
    assert generic[0][8] == pytest.approx(0.0856379)
    assert math.log(generic[0][0] / generic[8][0]) == pytest.approx(0.5)
    table = grid_table((3, 3), ONE)
    assert table.rate == pytest.approx(0.25, rel=1e-6)
    assert table.chances[0][0] / WHOLE == pytest.approx(0.1757529)


def test_estimates_are_those_of_the_mechanism_sheet() -> None:
    """N = 1000, y = 430 at ln 3: 360 with deviation 27.38613; K = 4 at 1: four counts."""
    binary = UniformEstimate(uniform(2, LN3))
    _, yes = binary.figures([570, 430], 0.05)
    assert yes.value == pytest.approx(360, abs=1e-6)
    assert binary.deviations([570, 430])[1] == pytest.approx(27.38613)
    four = UniformEstimate(uniform(4, ONE))
    values = [figure.value for figure in four.figures([520, 210, 160, 110], 0.05)]
    assert values == pytest.approx([1148.535, 116.884, -49.512, -215.907], abs=1e-3)


def test_variances_are_those_of_the_law_of_the_reports() -> None:
    """Exact, over all reports of a small table, for the grid too."""
    counts = [2, 1, 1]
    for estimate in (
        UniformEstimate(uniform(3, ONE)),
        GridEstimate(grid_table((1, 3), ONE)),
    ):
        law = law_of(counts, estimate.table)
        means, squares = np.zeros(3), np.zeros(3)
        for seen, mass in law.items():
            values = np.array([figure.value for figure in estimate.figures(list(seen), 0.05)])
            means += float(mass) * values
            squares += float(mass) * values**2
        assert means == pytest.approx(counts, abs=1e-5)
        variances = squares - means**2
        if isinstance(estimate, UniformEstimate):
            claimed = [estimate.variance(count, 4) for count in counts]
        else:
            claimed = list(estimate._variances() @ np.array(counts))
        assert variances == pytest.approx(claimed, rel=1e-4)


# Intervals


@pytest.mark.parametrize("rows", [1, 2, 5, 12])
@pytest.mark.parametrize("alpha", [0.3, 0.05])
def test_intervals_cover_every_table_by_the_exact_law_of_reports(rows: int, alpha: float) -> None:
    for epsilon in (PICO // 5, ONE, 3 * PICO):
        estimate = UniformEstimate(uniform(3, epsilon))
        figures = [estimate.figures([y, rows - y, 0], alpha)[0] for y in range(rows + 1)]
        for count in range(rows + 1):
            chances = _reports_of(count, rows, estimate)
            covered = sum(
                chance
                for chance, figure in zip(chances, figures, strict=True)
                if figure.low - 1e-9 <= count <= figure.high + 1e-9
            )
            assert covered >= 1 - alpha


def _reports_of(count: int, rows: int, estimate: UniformEstimate) -> list[float]:
    """P(y) for y from 0 to rows: `count` coins of p and the others of q."""
    law = np.ones(1)
    for coin in [estimate.p] * count + [estimate.q] * (rows - count):
        law = np.convolve(law, [1 - coin, coin])
    return [float(chance) for chance in law]


def test_the_interval_of_a_probability_is_clopper_and_pearson_one_report_wider() -> None:
    low, high = chance_interval(np.array([0, 4, 10], dtype=np.int64), 10, 0.1)
    assert (low[0], high[2]) == (0.0, 1.0)
    assert binomial_tail(10, float(low[1]), 3) == pytest.approx(0.05)
    assert 1 - binomial_tail(10, float(high[1]), 6) == pytest.approx(0.05)


def test_grid_intervals_have_their_coverage() -> None:
    """By Hoeffding or Bernstein; for a small table over all reports."""
    estimate = GridEstimate(grid_table((1, 3), ONE))
    for counts in ([3, 0, 0], [1, 1, 1], [0, 3, 0]):
        covered = np.zeros(3)
        for seen, mass in law_of(counts, estimate.table).items():
            for i, figure in enumerate(estimate.figures(list(seen), 0.2)):
                covered[i] += float(mass) * (figure.low <= counts[i] <= figure.high)
        assert covered.min() >= 0.8


@pytest.mark.statistical
def test_large_tables_are_covered_as_often_as_stated() -> None:
    """2000 answers of 5000 rows at 80 %. If each misses with at most 0.2 (400 expected, deviation
    17.9), more than 500 misses have probability below 1e-6."""
    plan = make_plan(
        question({"kind": "randomized_column", "column": "member"}, confidence=0.8),
        rows_card(5000),
    )
    noise = SystemRandom()
    misses = 0
    for _ in range(2000):
        item = plan.answer(((1500, 3000, 500),), noise)["value"][1]
        misses += not item["interval"]["low"] <= 3000 <= item["interval"]["high"]
    assert misses <= 500


# Drawing


class Words(SystemRandom):
    """A sampler with planned words."""

    def __init__(self, *planned: int) -> None:
        super().__init__()
        self.planned = list(planned)

    @override
    def words(self, size: int) -> list[int]:
        taken, self.planned = self.planned[:size], self.planned[size:]
        return taken


def test_every_word_gives_the_report_of_the_table() -> None:
    table = UniformTable(3, WHOLE // 4)
    quarter = WHOLE // 4
    words = [0, quarter - 1, quarter, 2 * quarter - 1, 2 * quarter, WHOLE - 1]
    assert drawn([0, 6, 0], table, Words(*words)) == [2, 2, 2]
    assert drawn([6, 0, 0], table, Words(*words)) == [2, 2, 2]
    grid = GridTable(1.0, ((quarter, quarter, 2 * quarter),) * 3)
    assert drawn([3, 0, 3], grid, Words(*words)) == [2, 2, 2]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["uniform", "grid"])
def test_draws_fit_the_table_and_one_whose_loss_is_a_tenth_off_does_not(kind: str) -> None:
    """Chi-square over five outcomes of 200,000 rows: a false alarm has probability 1e-6."""

    def chances(epsilon: int) -> list[float]:
        if kind == "grid":
            return [chance / WHOLE for chance in grid_table((1, 5), epsilon).chances[2]]
        table = uniform(5, epsilon)
        return [(table.keep if i == 2 else table.other) / WHOLE for i in range(5)]

    size = 200_000
    table = uniform(5, ONE) if kind == "uniform" else grid_table((1, 5), ONE)
    reports = drawn([0, 0, size, 0, 0], table, SystemRandom())
    assert sum(reports) == size

    def p_value(epsilon: int) -> float:
        expected = [size * chance for chance in chances(epsilon)]
        statistic = sum((y - e) ** 2 / e for y, e in zip(reports, expected, strict=True))
        return chi_square_tail(statistic, 4)

    assert p_value(ONE) > FALSE_ALARM
    assert p_value(ONE * 9 // 10) < FALSE_ALARM
    assert p_value(ONE * 11 // 10) < FALSE_ALARM


def test_missing_values_are_an_outcome_or_count_as_one() -> None:
    rows = [
        {"age": 1, "income": 1.0, "city": city, "member": member, "born": None}
        for city, member in (("Bern", True), ("Chur", False), (None, None), (None, True))
    ]
    shapes = {}
    for column, missing in (("city", None), ("city", "Chur"), ("member", False)):
        query = question({"kind": "randomized_column", "column": column, "missing": missing}).query
        shape = query.shape(rows_card(4))
        assert isinstance(shape, RandomizedShape)
        shapes[column, missing] = (
            shape.outcomes,
            shape.counts(tallied(rows_card(4), shape.tally, rows)),
        )
    assert shapes["city", None] == (("Bern", "Chur", "Zürich", None), [1, 1, 0, 2])
    assert shapes["city", "Chur"] == (("Bern", "Chur", "Zürich"), [1, 3, 0])
    assert shapes["member", False] == ((False, True), [2, 2])


@pytest.mark.parametrize("counts", [(0, 0, 0, 100), (100, 0, 0, 0), (0, 0, 0, 0)])
def test_all_missing_constant_and_empty_data_get_an_ordinary_answer(
    counts: tuple[int, ...],
) -> None:
    plan = make_plan(question({"kind": "randomized_column", "column": "city"}), rows_card())
    if sum(counts) == 0:
        return  # a card declares at least one row
    answer = plan.answer((counts,), SystemRandom())
    assert sum(item["reported"] for item in answer["value"]) == 100
    assert sum(item["value"] for item in answer["value"]) == pytest.approx(100)
    for item in answer["value"]:
        assert item["interval"]["low"] <= item["value"] <= item["interval"]["high"]


# Half-widths


def by_width(half_width: float, rows: int, column: str = "member") -> Question:
    asked = question({"kind": "randomized_column", "column": column})
    privacy = Privacy.model_validate({"half_width": half_width})
    return asked.model_copy(update={"privacy": privacy})


def test_a_half_width_is_charged_at_the_least_loss() -> None:
    losses = []
    for half_width in (600.0, 1000.0, 5000.0):
        plan = make_plan(by_width(half_width, 10**5), rows_card(10**5))
        promised = promised_width(plan.release, 0.95)
        assert half_width * 0.999 <= promised <= half_width
        losses.append(plan.loss.epsilon)
        for y in (0, 10, 50_000, 99_999):
            estimate = plan.release.estimate  # type: ignore[attr-defined]
            figure = estimate.figures([y, 10**5 - y, 0], 0.05)[0]
            reach = max(figure.high - figure.value, figure.value - figure.low)
            assert reach <= half_width
    assert losses == sorted(losses, reverse=True)
    with pytest.raises(Invalid, match="no randomised response"):
        make_plan(by_width(100.0, 10**5), rows_card(10**5))


def test_a_half_width_on_a_grid_is_charged_at_the_least_loss() -> None:
    losses = []
    for half_width in (1_500.0, 3_000.0, 9_000.0):
        parsed = question(
            {
                "kind": "randomized_column",
                "column": "city",
                "missing": "Bern",
                "grid": {"rows": 1, "columns": 3},
            }
        )
        privacy = Privacy.model_validate({"half_width": half_width})
        plan = make_plan(parsed.model_copy(update={"privacy": privacy}), rows_card(10**5))
        promised = promised_width(plan.release, 0.95)
        assert half_width * 0.99 <= promised <= half_width
        losses.append(plan.loss.epsilon)
    assert losses == sorted(losses, reverse=True)


def test_the_width_is_near_the_normal_one_of_the_mechanism_sheet() -> None:
    """The normal width of the share is z / (2 sqrt(N) sinh(e/2)) for two outcomes. Ours covers
    every table and the tails of a binomial of the mean probability: z sqrt(N/4) / (2p - 1)."""
    release = prepare(
        RandomizedShape(
            make_plan(by_width(5000, 10**6), rows_card(10**6)).release.tally,
            (False, True),
            10**6,
            0,
            None,
        ),
        PrivacyTarget(epsilon=Decimal(1)),
    )
    ours = promised_width(release, 0.95) / 10**6
    normal = 1.959964 / (2 * math.sqrt(10**6) * math.sinh(0.5))
    assert normal <= ours <= normal * math.cosh(0.5) * 1.01
    assert reports_apart(10**6, 0.05) == pytest.approx(1.959964 * 500, rel=0.01)


# Invalid questions

TWO: list[Json] = [{"name": "one", "type": "category", "values": ["a"]}]
WRONG: dict[str, tuple[Card, Json, str]] = {
    "add_remove": (card(), {"column": "city"}, "/query/kind"),
    "several rows a person": (
        card(neighbours="replace_one", rows_max=2),
        {"column": "city"},
        "/query/kind",
    ),
    "too many rows": (rows_card(10**8), {"column": "city"}, "/query/kind"),
    "a number": (rows_card(), {"column": "age"}, "/query/column"),
    "no column": (rows_card(), {"column": "shoes"}, "/query/column"),
    "one outcome": (
        card(TWO, neighbours="replace_one"),
        {"column": "one", "missing": "a"},
        "/query/column",
    ),
    "a missing value that is none": (
        rows_card(),
        {"column": "city", "missing": "Basel"},
        "/query/missing",
    ),
    "a missing value of another type": (
        rows_card(),
        {"column": "city", "missing": True},
        "/query/missing",
    ),
    "a grid with missing values": (
        rows_card(),
        {"column": "city", "grid": {"rows": 1, "columns": 4}},
        "/query/missing",
    ),
    "a grid of another size": (
        rows_card(),
        {"column": "city", "missing": "Bern", "grid": {"rows": 2, "columns": 2}},
        "/query/grid",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_randomised_column_is_refused_by_its_field(wrong: str) -> None:
    made, members, pointer = WRONG[wrong]
    with pytest.raises(Invalid) as caught:
        make_plan(question({"kind": "randomized_column", **members}), made)
    assert [field.pointer for field in caught.value.fields] == [pointer]


def test_a_filter_is_refused() -> None:
    """It would reveal how many rows it selects."""
    with pytest.raises(ValueError, match="where"):
        question({"kind": "randomized_column", "column": "city", "where": {"all": []}})


@pytest.mark.parametrize(
    ("epsilon", "members"),
    [
        ("21", {}),
        ("1e-9", {"missing": "Bern", "grid": {"rows": 1, "columns": 3}}),
    ],
)
def test_a_loss_too_large_or_an_unsolvable_estimate_is_refused(epsilon: str, members: Json) -> None:
    with pytest.raises(Invalid, match="/privacy"):
        make_plan(
            question({"kind": "randomized_column", "column": "city", **members}, epsilon=epsilon),
            rows_card(),
        )


def test_randomised_columns_and_randomised_response_serve_only_each_other() -> None:
    for query, kind in (
        ({"kind": "randomized_column", "column": "city"}, "laplace"),
        ({"kind": "count"}, "randomized_response"),
    ):
        with pytest.raises(Invalid) as caught:
            make_plan(question(query, mechanism={"kind": kind}), rows_card())
        assert [field.pointer for field in caught.value.fields] == ["/mechanism/kind"]
