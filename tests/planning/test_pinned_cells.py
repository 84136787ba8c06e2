"""Cells of single filters, groups and sums."""

import datetime

import pytest

from app.planning.cells import cells_to_charge
from app.queries.tally import (
    AllOf,
    AnyOf,
    ByEdges,
    ByValues,
    Condition,
    CountPresent,
    CountRows,
    IsMissing,
    Negation,
    OneOf,
    Persons,
    PersonTotal,
    SumSteps,
    Tally,
)
from tests.planning.cell_kinds import (
    AGES,
    CITIES,
    INCOMES,
    MEMBERS,
    OTHERS,
    SEEN,
    Kind,
    both,
    days,
    either,
    x,
)

PINNED: list[tuple[Kind, Condition, tuple[int, ...] | None]] = [
    (AGES, x("<", 18), (0,)),
    (AGES, x("<", 17.5), (0,)),
    (AGES, x("<=", 17.5), (0,)),
    (AGES, x("<=", 18), (0, 1)),
    (AGES, x(">", 17), (1, 2)),
    (AGES, x(">", 64), (2,)),  # integers above 64 are at least 65
    (AGES, x(">", 63.5), (1, 2)),
    (AGES, x("==", 65), (2,)),
    (AGES, x("==", 120), (2,)),
    (AGES, x("==", 17.5), None),  # never
    (AGES, x("!=", 17.5), (0, 1, 2)),
    (AGES, x("!=", 70), (0, 1, 2)),
    (AGES, Negation(x("==", 70)), None),  # a missing value is not 70 either
    (AGES, Negation(x("<", 18)), (1, 2, 3)),
    (AGES, Negation(x(">=", 18)), (0, 3)),
    (AGES, both(x(">=", 18), x("<", 65)), (1,)),
    (AGES, both(x(">=", 18), x("<=", 65)), (1, 2)),
    (AGES, both(x(">=", 20), OTHERS), (1, 2)),
    (AGES, either(x(">=", 20), OTHERS), None),
    (AGES, either(x("<", 3), x(">", 100)), (0, 2)),
    (AGES, both(Negation(x("<", 18)), Negation(IsMissing("x"))), (1, 2)),
    (AGES, Negation(both(x("<", 18), OTHERS)), None),
    (AGES, Negation(either(x("<", 18), OTHERS)), (1, 2, 3)),
    (AGES, OneOf("x", (3, 70, 70.5)), (0, 2)),
    (AGES, Negation(OneOf("x", tuple(range(18)))), (1, 2, 3)),  # all values of the first cell
    (AGES, Negation(OneOf("x", tuple(range(17)))), None),
    (AGES, IsMissing("x"), (3,)),
    (AGES, Negation(IsMissing("x")), (0, 1, 2)),
    (AGES, x(">", 120), None),
    (AGES, x(">=", -5), (0, 1, 2)),
    (AGES, AnyOf(()), None),
    (AGES, AllOf(()), None),
    (AGES, OTHERS, None),
    (AGES, IsMissing("other"), None),
    (INCOMES, x("<", 10), (0,)),
    (INCOMES, x("<", 10.5), (0, 1)),
    (INCOMES, x(">", 9.5), (0, 1, 2)),
    (INCOMES, x(">", 49.5), (1, 2)),  # there are numbers between 49.5 and 50
    (INCOMES, x("==", 100), (2,)),
    (INCOMES, Negation(x("<", 50)), (2, 3)),
    (INCOMES, OneOf("x", (10.0, 0)), (0, 1)),
    (SEEN, x("<", datetime.date(2020, 1, 11)), (0,)),
    (SEEN, x(">", datetime.date(2020, 1, 20)), (2,)),
    (SEEN, x("==", datetime.date(2020, 1, 31)), (2,)),
    (SEEN, Negation(OneOf("x", tuple(days(*range(1, 11))))), (1, 2, 3)),
    (CITIES, x("==", "Chur"), (1,)),
    (CITIES, x("!=", "Chur"), (0, 2)),
    (CITIES, Negation(x("==", "Chur")), (0, 2, 3)),
    (CITIES, OneOf("x", ("Thun", "Bern")), (0, 2)),
    (CITIES, OneOf("x", ()), None),
    (CITIES, both(x("==", "Bern"), x("==", "Chur")), None),
    (CITIES, Negation(either(x("==", "Bern"), IsMissing("x"))), (1, 2)),
    (MEMBERS, x("==", True), (1,)),
    (MEMBERS, x("!=", True), (0,)),
    (MEMBERS, Negation(x("==", True)), (0, 2)),
]


@pytest.mark.parametrize(("kind", "where", "cells"), PINNED)
def test_a_filter_is_limited_to_the_cells(
    kind: Kind, where: Condition, cells: tuple[int, ...] | None
) -> None:
    assert cells_to_charge(Tally(where, (), (CountRows(),)), kind.plain).cells == cells


GROUPED: list[tuple[Kind, Tally, tuple[int, ...] | None]] = [
    (AGES, Tally(None, (ByEdges("x", (0.0, 10.0, 18.0)),), (CountRows(),)), (0, 1)),
    (AGES, Tally(None, (ByEdges("x", (0.0, 10.0, 17.0)),), (CountRows(),)), (0,)),
    (AGES, Tally(None, (ByEdges("x", (0.0, 120.0)),), (CountRows(),)), (0, 1, 2)),
    (AGES, Tally(x(">=", 18), (ByEdges("x", (0.0, 64.0)),), (CountRows(),)), (1,)),
    (AGES, Tally(None, (ByEdges("other", (0.0, 1.0)),), (CountRows(),)), None),
    (CITIES, Tally(None, (ByValues("x", ("Bern", "Chur", "Thun")),), (CountRows(),)), (0, 1, 2)),
    (CITIES, Tally(x("!=", "Bern"), (ByValues("x", ("Bern", "Chur")),), (CountRows(),)), (1,)),
    # None of these counts a missing value.
    (AGES, Tally(None, (), (CountPresent("x"), SumSteps("x"))), (0, 1, 2)),
    (AGES, Tally(None, (), (CountRows(), SumSteps("x"))), None),
    (AGES, Tally(None, (), (CountPresent("x"), SumSteps("other"))), None),
    (AGES, Tally(None, (), (SumSteps("other"),)), None),
    (AGES, Tally(None, (), (Persons("x"),)), (0, 1, 2)),
    (AGES, Tally(None, (), (PersonTotal("x", 0, 9), Persons("x"))), (0, 1, 2)),
    (AGES, Tally(None, (), (Persons(),)), None),
]


@pytest.mark.parametrize(("kind", "tally", "cells"), GROUPED)
def test_groups_and_sums_exclude_rows_too(
    kind: Kind, tally: Tally, cells: tuple[int, ...] | None
) -> None:
    assert cells_to_charge(tally, kind.plain).cells == cells
