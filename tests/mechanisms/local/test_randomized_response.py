"""Randomised response: exact draws, ordinary answers about all data, and refusals."""

import pytest
from typing_extensions import override

from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.local.report_tables import WHOLE, GridTable, UniformTable, drawn, grid_table
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries.randomized_column import RandomizedShape
from tests.mechanisms.local.local_laws import ONE, Json, rows_card, uniform
from tests.mechanisms.noise.noise_law import FALSE_ALARM, chi_square_tail
from tests.queries.cards import card, question
from tests.queries.reference import tallied

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
