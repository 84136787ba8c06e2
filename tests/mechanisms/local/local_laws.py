"""Cards, losses and exact laws of randomised response."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from app.accounting.units import PICO
from app.data.card import Card
from app.mechanisms.local.report_tables import WHOLE, GridTable, UniformTable, uniform_table
from tests.queries.cards import COLUMNS

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
