"""Tables of reports: within their loss, and with golden probabilities and estimates."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.curves import renyi_curves
from app.accounting.units import PICO
from app.mechanisms.local.randomized_response import GridEstimate, UniformEstimate
from app.mechanisms.local.report_tables import (
    WHOLE,
    GridTable,
    UniformTable,
    chances_at,
    distances_on,
    grid_table,
)
from app.planning.plan import make_plan
from tests.mechanisms.local.local_laws import (
    GRIDS,
    LN3,
    ONE,
    epsilons,
    law_of,
    rows_card,
    uniform,
    within,
)
from tests.queries.cards import question


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


def test_the_curve_has_the_golden_values() -> None:
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


# Golden tables and estimates


def test_uniform_tables_are_the_golden_ones() -> None:
    binary = uniform(2, ONE)
    assert binary.keep / WHOLE == pytest.approx(0.7310586)
    many = uniform(100, LN3)
    assert many.keep / WHOLE == pytest.approx(3 / 102)
    assert many.other / WHOLE == pytest.approx(1 / 102)


def test_a_tuned_grid_is_the_golden_one() -> None:
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


def test_estimates_are_the_golden_ones() -> None:
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
