"""L2 sensitivities by brute force over all neighbours, on the tables of the L1 tests."""

from fractions import Fraction

import pytest

from app.accounting.units import PICO
from app.errors import Invalid
from app.planning.plan import make_plan
from app.queries.shapes.measures import Measure
from tests.queries.cards import additive, question
from tests.queries.reference import Vectors
from tests.queries.test_sensitivity import CASES, VALUES, case, changes_of, loose


def largest_square(all_changes: list[Vectors], weights: list[Fraction]) -> Fraction:
    """Largest sum over the measures of weight times squared L2 change."""
    return max(
        sum(
            (w * sum(d * d for d in vector) for w, vector in zip(weights, change, strict=True)),
            Fraction(0),
        )
        for change in all_changes
    )


def squares_of(measures: tuple[Measure, ...], less: int = 0) -> list[Fraction]:
    return [measure.share / (measure.sensitivity_squared - less) for measure in measures]


@pytest.mark.parametrize(("kind", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_no_neighbour_moves_the_squares_by_more_than_is_charged_and_some_as_far(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    for values in VALUES:
        shape, found = changes_of(kind, where, grouped, neighbours, rows_max, values)
        moved = largest_square(found, squares_of(shape.measures))
        if loose(kind, where, grouped, neighbours, rows_max):
            assert moved == 0
        # its centre is a whole number of steps: with few steps the bound is loose
        elif kind == "mean":
            assert Fraction(3, 4) <= moved <= 1, values
        elif kind == "variance":  # two squares are doubled for a change that attains at most 0.84
            assert Fraction(2, 3) <= moved <= 1, values
        else:
            assert moved == 1, values


@pytest.mark.parametrize(("kind", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_a_slightly_smaller_square_is_caught(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    if loose(kind, where, grouped, neighbours, rows_max):
        return
    shape, changes = changes_of(kind, where, grouped, neighbours, rows_max, "huge numbers")
    staying = kind == "variance" and neighbours == "replace_one" and not grouped
    part = Fraction(3, 4) if staying else Fraction(99, 100)
    planted = [
        measure.share / (Fraction(measure.sensitivity_squared) * part) for measure in shape.measures
    ]
    assert largest_square(changes, planted) > 1


@pytest.mark.parametrize(("kind", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_a_measure_declared_for_one_group_moves_only_one(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    shape, found = changes_of(kind, where, grouped, neighbours, rows_max, "around zero")
    for place, measure in enumerate(shape.measures):
        groups = max(sum(d > 0 for d in change[place]) for change in found)
        assert groups <= 1 or not measure.single_cell
    if len(shape.measures) == 1 and not grouped and kind not in ("histogram", "ratio"):
        assert shape.measures[0].single_cell  # so its exact profile calibrates it


@pytest.mark.parametrize(("kind", "where", "grouped", "neighbours", "rows_max"), CASES)
@pytest.mark.parametrize("privacy", [{"rho": "0.01"}, {"epsilon": 1, "delta": 1e-6}])
def test_gaussian_noise_as_drawn_stays_within_the_charged_rho(
    kind: str,
    where: bool,
    grouped: bool,
    neighbours: str,
    rows_max: int | None,
    privacy: dict[str, object],
) -> None:
    released = 0
    for values in ("around zero", "fractions", "huge numbers"):
        made, query = case(kind, where, grouped, neighbours, rows_max, values)
        _, changes = changes_of(kind, where, grouped, neighbours, rows_max, values)
        parsed = question(query).model_copy(
            update={
                "privacy": question(query).privacy.model_validate(privacy),
                "mechanism": question(query, mechanism={"kind": "gaussian"}).mechanism,
            }
        )
        try:
            release = additive(make_plan(parsed, made))
        except Invalid:
            continue
        weights = [1 / (2 * Fraction(part.scale) ** 2) for part in release.parts]
        assert largest_square(changes, weights) <= Fraction(release.loss.rho, PICO), values
        if "rho" in privacy:
            assert release.loss.rho <= PICO // 100
        released += 1
    assert released >= 2
