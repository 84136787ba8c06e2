"""Groups are public: they come from the card and the question, never from rows."""

import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from app.errors import Invalid
from app.queries.groups import EDGES_MAX, GROUPS_MAX
from app.queries.tally import ByEdges, ByValues, Grouping, Tally
from tests.queries.cards import COLUMNS, card, question
from tests.queries.reference import group_index, tallied

CARD = card()


def tally(group_by: Any) -> Tally:
    return question({"kind": "count", "group_by": group_by}).query.shape(CARD).tally


def histogram(column: str, *edges: Any) -> Tally:
    query: dict[str, Any] = {"kind": "histogram", "column": column}
    if edges:
        query["edges"] = edges[0]
    return question(query).query.shape(CARD).tally


@pytest.mark.parametrize(
    ("item", "grouping"),
    [
        ("city", ByValues("city", ("Bern", "Chur", "Zürich"))),
        ("member", ByValues("member", (False, True))),
        ({"column": "age", "edges": [0, 50, 100]}, ByEdges("age", (0.0, 50.0, 100.0))),
        ({"column": "income", "edges": [-5, 0.5]}, ByEdges("income", (-5.0, 0.5))),
        (
            {"column": "born", "edges": ["1990-01-01", "2000-01-01"]},
            ByEdges("born", (datetime.date(1990, 1, 1), datetime.date(2000, 1, 1))),
        ),
    ],
)
def test_groups_are_the_values_of_the_card_or_the_edges_of_the_question(
    item: Any, grouping: Grouping
) -> None:
    assert tally([item]).groups == (grouping,)
    column = item if isinstance(item, str) else item["column"]
    edges = [] if isinstance(item, str) else [item["edges"]]
    assert histogram(column, *edges).groups == (grouping,)


def test_groups_multiply_and_the_last_varies_fastest() -> None:
    made = tally(["member", {"column": "age", "edges": [0, 50, 100]}])
    assert made.group_count() == 4
    assert made.group_labels()[:3] == [
        {"member": False, "age": {"from": 0.0, "to": 50.0}},
        {"member": False, "age": {"from": 50.0, "to": 100.0}},
        {"member": True, "age": {"from": 0.0, "to": 50.0}},
    ]


def test_without_groups_there_is_one_and_empty_groups_are_present() -> None:
    assert tally([]).group_count() == 1
    assert tallied(CARD, tally(["city", "member"]), []) == ((0,) * 6,)


def test_an_edge_belongs_to_the_interval_it_starts_and_the_last_edge_to_the_last() -> None:
    grouping = ByEdges("age", (0.0, 10.0, 20.0))
    found = [group_index(grouping, {"age": age}) for age in (-1, 0, 9, 10, 19, 20, 21, None)]
    assert found == [None, 0, 0, 1, 1, 1, None, None]


WRONG: dict[str, Any] = {
    "an unknown column": ["salary"],
    "an unknown column with edges": [{"column": "salary", "edges": [0, 1]}],
    "a number without edges": ["age"],
    "a date without edges": ["born"],
    "a category with edges": [{"column": "city", "edges": [0, 1]}],
    "truth with edges": [{"column": "member", "edges": [0, 1]}],
    "edges that fall": [{"column": "age", "edges": [0, 5, 3]}],
    "edges that stay": [{"column": "age", "edges": [0, 5, 5]}],
    "edges that stay as floats": [{"column": "age", "edges": [2**53, 2**53 + 1]}],
    "edges that are NaN": [{"column": "income", "edges": [0.0, float("nan")]}],
    "edges that are infinite": [{"column": "income", "edges": [0.0, float("inf")]}],
    "edges beyond reason": [{"column": "income", "edges": [0, 10**19]}],
    "edges that are text": [{"column": "age", "edges": ["0", "1"]}],
    "dates that are numbers": [{"column": "born", "edges": [1990, 2000]}],
    "dates that are none": [{"column": "born", "edges": ["1990-01-01", "1990-02-30"]}],
    "the same column twice": ["city", "city"],
    "the same column twice with edges": [
        {"column": "age", "edges": [0, 1]},
        {"column": "age", "edges": [1, 2]},
    ],
    "too many groups": [
        {"column": "age", "edges": list(range(1001))},
        {"column": "income", "edges": list(range(102))},
    ],
}


@pytest.mark.parametrize("what", WRONG)
def test_groups_that_the_card_does_not_allow_are_refused_by_field(what: str) -> None:
    with pytest.raises(Invalid) as caught:
        tally(WRONG[what])
    assert caught.value.fields[0].pointer.startswith("/query/group_by")


@pytest.mark.parametrize(
    "group_by",
    [
        "city",
        {"column": "age", "edges": [0, 1]},
        [["city"]],
        [5],
        [None],
        [{"column": "age"}],
        [{"column": "age", "edges": [0]}],
        [{"column": "age", "edges": []}],
        [{"column": "age", "edges": [True, False]}],
        [{"column": "age", "edges": [0, None]}],
        [{"column": "age", "edges": [0, 1], "extra": 1}],
        [{"column": "age", "edges": [0] * (EDGES_MAX + 1)}],
        ["city"] * 6,
    ],
)
def test_groups_of_another_shape_are_refused(group_by: Any) -> None:
    with pytest.raises(ValidationError):
        tally(group_by)


def test_the_maximum_number_of_groups_is_allowed() -> None:
    edges = list(range(GROUPS_MAX + 1))
    assert histogram("age", edges).group_count() == GROUPS_MAX


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        ("salary", []),
        ("age", []),
        ("born", []),
        ("city", [[0, 1]]),
        ("member", [[0, 1]]),
        ("age", [[1, 1]]),
        ("income", [[0, "1"]]),
    ],
)
def test_a_histogram_of_bins_that_the_card_does_not_allow_is_refused(
    column: str, edges: list[Any]
) -> None:
    with pytest.raises(Invalid) as caught:
        histogram(column, *edges)
    assert caught.value.fields[0].pointer.startswith("/query")


@pytest.mark.parametrize("kind", ["sum", "mean"])
@pytest.mark.parametrize("column", ["city", "member", "born", "salary"])
def test_only_declared_numbers_can_be_summed(kind: str, column: str) -> None:
    with pytest.raises(Invalid) as caught:
        question({"kind": kind, "column": column}).query.shape(CARD)
    assert caught.value.fields[0].pointer == "/query/column"


def test_every_column_of_the_card_can_have_a_histogram() -> None:
    edges = {"age": [0, 1], "income": [0, 1], "born": ["1990-01-01", "2000-01-01"]}
    for column in COLUMNS:
        name = column["name"]
        assert histogram(name, *([edges[name]] if name in edges else [])).group_count() >= 1
