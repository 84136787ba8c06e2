"""The engine's integers equal those of the reference."""

import datetime
import tempfile
from bisect import bisect_right
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.data.columns import NumberColumn
from app.engines.sql.layout import Layout
from app.engines.sql.tally_statement import render
from app.queries.tally import (
    AllOf,
    AnyOf,
    ByEdges,
    ByValues,
    CentredBucket,
    Compare,
    Condition,
    CountPresent,
    CountRows,
    CountWhere,
    EqualsValue,
    Factor,
    IsMissing,
    Negation,
    OneOf,
    Product,
    Split,
    SumSteps,
    Tally,
)
from tests.effort import examples
from tests.engines.reference import reference
from tests.engines.remote.tables import CARD, Room, Row, room_in, write_csv, write_parquet

INCOMES = (
    -1e308,
    -10.5,
    -0.0,
    0.1,
    17.5,
    1000.25,
    1e300,
    float("nan"),
    float("inf"),
    -float("inf"),
)
DAYS = [datetime.date(1900, 1, 1) + datetime.timedelta(days=9999 * i) for i in range(6)]
CITIES = ("Bern", "Zürich", "c0", "a'b\"c", "Basel", "bern", " Bern", "NULL")
INCOME, RATE = CARD.columns[1], CARD.columns[2]
assert isinstance(INCOME, NumberColumn)
assert isinstance(RATE, NumberColumn)
NAMES = ("age", "income", "rate", "city", "member", "born")

ages = st.none() | st.integers(-5, 105) | st.sampled_from([2**62, -(2**62)])
incomes = st.none() | st.sampled_from(INCOMES) | st.floats(-20, 1100, allow_nan=False)
rates = st.none() | st.floats(0, 2e15)
row_values = {
    "age": ages,
    "income": incomes,
    "rate": rates,
    "city": st.none() | st.sampled_from(CITIES),
    "member": st.none() | st.booleans(),
    "born": st.none() | st.sampled_from(DAYS),
}
tables = st.lists(st.fixed_dictionaries(row_values), min_size=0, max_size=25)

numbers = (
    st.integers(-2, 102) | st.floats(-2, 102) | st.sampled_from([17.5, 1e18, -(10**18), 2**53])
)
values: dict[str, st.SearchStrategy[Any]] = {
    "age": numbers,
    "income": numbers | st.sampled_from([-10.5, 0.1, 1000.25, 1000]),
    "rate": st.sampled_from([1e10, 1e15, 10**15, 5e14]) | st.floats(0, 2e15),
    "city": st.sampled_from(CITIES[:4]),
    "member": st.booleans(),
    "born": st.sampled_from(DAYS),
}
signs: dict[str, tuple[str, ...]] = dict.fromkeys(NAMES, ("==", "!=", "<", "<=", ">", ">="))
signs |= {"city": ("==", "!="), "member": ("==", "!=")}


@st.composite
def leaves(draw: st.DrawFn) -> Condition:
    name = draw(st.sampled_from(NAMES))
    kind = draw(st.sampled_from(["compare", "one of", "missing"]))
    if kind == "compare":
        sign: Any = draw(st.sampled_from(signs[name]))
        return Compare(name, sign, draw(values[name]))
    if kind == "one of":
        return OneOf(name, tuple(draw(st.lists(values[name], max_size=4))))
    return IsMissing(name)


conditions = st.recursive(
    leaves(),
    lambda parts: (
        parts.map(Negation)
        | st.lists(parts, max_size=3).map(lambda each: AllOf(tuple(each)))
        | st.lists(parts, max_size=3).map(lambda each: AnyOf(tuple(each)))
    ),
    max_leaves=6,
)


def edges_of(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    many = st.lists(items, min_size=2, max_size=6, unique=True)
    return many.map(lambda each: tuple(sorted(each)))


# Ways to bin: even edges, also nearly even and with rounding, and many uneven ones.
fine = st.sampled_from(
    [
        tuple(float(i) / 2 for i in range(150)),
        tuple(i / 10 for i in range(201)),
        tuple(-7.3 + i * 0.7 for i in range(40)),
        tuple(i + (i % 2) / 3 for i in range(60)),
        tuple(i * i / 40 for i in range(100)),
        (-1e18, *(float(i) for i in range(100)), 1e18),
    ]
)
groupings: dict[str, st.SearchStrategy[Any]] = {
    "age": (edges_of(st.floats(-5, 110)) | fine).map(lambda e: ByEdges("age", e)),
    "income": (edges_of(st.sampled_from([-10.5, 0.0, 0.1, 17.5, 1000.25, 2e3])) | fine).map(
        lambda e: ByEdges("income", e)
    ),
    "city": st.tuples(st.permutations(CITIES[:4]), st.booleans()).map(
        lambda t: ByValues("city", tuple(t[0]), missing=t[1])
    ),
    "member": st.sampled_from([(False, True), (True, False), (True,)]).map(
        lambda v: ByValues("member", v)
    ),
    "born": edges_of(st.sampled_from(DAYS)).map(lambda e: ByEdges("born", e)),
}
FACTORS: tuple[Factor, ...] = (
    CentredBucket("age", 0, 1, 50),
    CentredBucket("income", INCOME.steps[0], 1 << 14, 1 << 20),
    CentredBucket("rate", RATE.steps[0], 1 << 14, 1 << 20),
    EqualsValue("city", "Zürich"),
    EqualsValue("member", True),
    EqualsValue("member", False),
)
aggregates: st.SearchStrategy[Any] = st.sampled_from(
    [
        CountRows(),
        *(CountPresent(name) for name in NAMES),
        *(SumSteps(name) for name in ("age", "income", "rate")),
        CountWhere(Compare("age", ">=", 18)),
        CountWhere(Negation(OneOf("city", ("Bern",)))),
        *(Product((factor,)) for factor in FACTORS),
        *(Product((one, other)) for one, other in product(FACTORS, FACTORS)),
    ]
)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    names = draw(st.lists(st.sampled_from(list(groupings)), max_size=2, unique=True))
    return Tally(
        draw(st.none() | conditions),
        tuple(draw(groupings[name]) for name in names),
        tuple(draw(st.lists(aggregates, min_size=1, max_size=3))),
    )


@st.composite
def splits(draw: st.DrawFn) -> Tally:
    """Up to three bits among many conditions, so that several integers hold them."""
    few = draw(st.lists(conditions, min_size=1, max_size=3))
    idle = draw(st.sampled_from([0, 1, 61, 62, 130]))
    together = (*few[:1], *[AnyOf(())] * idle, *few[1:])
    places = [0, *range(1 + idle, len(together))]
    everything = [
        sum(1 << place for place, bit in zip(places, bits, strict=True) if bit)
        for bits in product((False, True), repeat=len(places))
    ]
    listed = draw(st.lists(st.sampled_from(everything), min_size=1, unique=True))
    return Tally(draw(st.none() | conditions), (), (CountRows(),), Split(together, tuple(listed)))


@examples(30, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables, st.lists(tallies() | splits(), min_size=1, max_size=6), st.data())
def test_every_tally_equals_the_reference_on_csv_and_parquet(
    rows: list[Row], tallies_asked: list[Tally], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(NAMES))
    with tempfile.TemporaryDirectory() as directory, room_in(Path(directory)) as room:
        write_csv(room.data / "t.csv", rows, list(order))
        write_parquet(room.data / "t.parquet", rows)
        for dataset in (room.prepared("t.csv"), room.prepared("t.parquet")):
            for tally in tallies_asked:
                assert room.ask(dataset, tally) == reference(CARD, rows, tally)


def row(**changes: Any) -> Row:
    return dict.fromkeys(NAMES) | changes


@pytest.fixture
def ages_17_18_missing(room: Room) -> Any:
    write_parquet(room.data / "t.parquet", [row(age=17), row(age=18), row()])
    dataset = room.prepared("t.parquet")

    def count(condition: Condition) -> int:
        return room.ask(dataset, Tally(condition, (), (CountRows(),)))[0][0]

    return count


def test_a_comparison_with_a_missing_value_is_false(ages_17_18_missing: Any) -> None:
    assert ages_17_18_missing(Compare("age", ">=", 0)) == 2
    assert ages_17_18_missing(Compare("age", "!=", 17)) == 1


def test_the_negation_of_a_comparison_with_a_missing_value_is_true(ages_17_18_missing: Any) -> None:
    assert ages_17_18_missing(Negation(Compare("age", "==", 17))) == 2
    assert ages_17_18_missing(Negation(OneOf("age", (17, 18)))) == 1
    assert ages_17_18_missing(Negation(Negation(Compare("age", "==", 17)))) == 1


def test_an_integer_column_compares_correctly_with_fractions(ages_17_18_missing: Any) -> None:
    assert ages_17_18_missing(Compare("age", ">=", 17.5)) == 1
    assert ages_17_18_missing(Compare("age", "<=", 17.5)) == 1
    assert ages_17_18_missing(Compare("age", "==", 17.5)) == 0
    assert ages_17_18_missing(Compare("age", "!=", 17.5)) == 2
    assert ages_17_18_missing(Compare("age", "<", 1e18)) == 2
    assert ages_17_18_missing(OneOf("age", (17.5, 18.0))) == 1


def test_an_empty_all_holds_and_an_empty_any_does_not(ages_17_18_missing: Any) -> None:
    assert ages_17_18_missing(AllOf(())) == 3
    assert ages_17_18_missing(AnyOf(())) == 0
    assert ages_17_18_missing(OneOf("age", ())) == 0


def test_only_the_last_interval_includes_its_upper_edge(room: Room) -> None:
    write_parquet(room.data / "t.parquet", [row(age=age) for age in (0, 10, 20, 30)])
    dataset = room.prepared("t.parquet")
    tally = Tally(None, (ByEdges("age", (0.0, 10.0, 20.0)),), (CountRows(),))
    assert room.ask(dataset, tally) == ((1, 2),)


def test_one_hundred_thousand_intervals_work(room: Room) -> None:
    write_parquet(room.data / "t.parquet", [row(income=i / 7) for i in range(500)])
    dataset = room.prepared("t.parquet")
    edges = tuple(i / 1000 for i in range(100_001))
    tally = Tally(None, (ByEdges("income", edges),), (CountRows(), SumSteps("income")))
    expected = [0] * 100_000
    for i in range(500):
        expected[bisect_right(edges, i / 7) - 1] += 1
    rows, totals = room.ask(dataset, tally)
    assert list(rows) == expected
    assert [total > 0 for total in totals[1:]] == [count > 0 for count in rows[1:]]


def test_one_hundred_thousand_categories_work(room: Room) -> None:
    names = [f"n{i}" for i in range(100_000)]
    card = type(CARD).model_validate(
        {
            "person": {"kind": "row"},
            "neighbours": "add_remove",
            "columns": [{"name": "name", "type": "category", "values": names}],
        }
    )
    write_csv(room.data / "t.csv", [{"name": name} for name in ["n7", "n99999", "n7", "other"]])
    dataset = room.prepared("t.csv", card)
    tally = Tally(None, (ByValues("name", tuple(names)),), (CountRows(),))
    (rows,) = room.ask(dataset, tally)
    assert (rows[7], rows[99_999], sum(rows), len(rows)) == (2, 1, 3, 100_000)
    many = Tally(OneOf("name", tuple(names[:10_000])), (), (CountRows(),))
    assert room.ask(dataset, many) == ((2,),)


def test_values_and_names_are_never_in_the_sql_text() -> None:
    text = "a'b\"c"
    tally = Tally(
        AllOf((Compare("city", "==", text), Compare("income", ">", 123456.5))),
        (ByEdges("income", (0.0, 98765.0, 98766.0)),),
        (CountPresent("city"),),
    )
    rendered = render(Layout(CARD), tally)
    for private in (text, "123456", "98765", "city", "income"):
        assert private not in rendered.statement.text
    assert 123456.5 in rendered.statement.parameters
    assert all(word in rendered.statement.text for word in ('"rows"', '"c1"', '"c3"'))


def test_rendering_is_cached_for_the_same_layout_and_tally() -> None:
    layout, tally = Layout(CARD), Tally(None, (), (CountRows(),))
    assert render(layout, tally) is render(layout, Tally(None, (), (CountRows(),)))
    assert render(Layout(CARD), tally) is not render(layout, tally)
