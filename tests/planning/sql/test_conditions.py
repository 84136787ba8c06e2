"""SQL conditions become filters that keep the same rows, including missing values."""

import datetime
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.planning.request import Question
from app.planning.sql.translate import translate
from app.queries.filters import resolve
from tests.effort import examples
from tests.planning.sql.sql_bodies import ADULT, PRIVACY, where_of
from tests.queries.cards import card
from tests.queries.reference import Row, holds


@pytest.mark.parametrize(
    ("condition", "where"),
    [
        ("age >= 18", ADULT),
        ("18 <= age", ADULT),
        ("((age >= 18))", ADULT),
        ("NOT age < 18", ADULT),
        ("NOT (NOT age >= 18)", ADULT),
        ("city = 'it''s'", {"column": "city", "op": "==", "value": "it's"}),
        ("city <> 'a'", {"column": "city", "op": "!=", "value": "a"}),
        ("city != 'a'", {"column": "city", "op": "!=", "value": "a"}),
        ("NOT city = 'a'", {"column": "city", "op": "!=", "value": "a"}),
        ("income = -2.50", {"column": "income", "op": "==", "value": -2.5}),
        ("income < .5e1", {"column": "income", "op": "<", "value": 5.0}),
        ("member = TRUE", {"column": "member", "op": "==", "value": True}),
        (
            "born > DATE '2000-01-31'",
            {"column": "born", "op": ">", "value": "2000-01-31"},
        ),
        ("city IN ('a', 'b')", {"column": "city", "op": "in", "value": ["a", "b"]}),
        ("age BETWEEN 1 AND 2", {"column": "age", "op": "between", "value": [1, 2]}),
        ("age IS NULL", {"column": "age", "op": "is_null"}),
        ("age IS NOT NULL", {"column": "age", "op": "is_null", "value": False}),
        (
            "age NOT BETWEEN 1 AND 2",
            {
                "any": [
                    {"column": "age", "op": "<", "value": 1},
                    {"column": "age", "op": ">", "value": 2},
                ]
            },
        ),
        (
            "city NOT IN ('a')",
            {
                "all": [
                    {"not": {"column": "city", "op": "in", "value": ["a"]}},
                    {"column": "city", "op": "is_null", "value": False},
                ]
            },
        ),
        (
            "age >= 18 AND age < 3 AND member = TRUE OR age IS NULL",
            {
                "any": [
                    {
                        "all": [
                            ADULT,
                            {"column": "age", "op": "<", "value": 3},
                            {"column": "member", "op": "==", "value": True},
                        ]
                    },
                    {"column": "age", "op": "is_null"},
                ]
            },
        ),
        (
            "NOT (age < 18 AND age = 3)",
            {"any": [ADULT, {"column": "age", "op": "!=", "value": 3}]},
        ),
    ],
)
def test_a_condition_becomes_the_filter_that_holds_where_true(condition: str, where: Any) -> None:
    assert where_of(condition) == where
    assert repr(where_of(condition)) == repr(where)  # 1 is not 1.0, nor true


# Conditions compared with DuckDB, including missing values

COMPARISONS = [
    *(f"age {sign} {value}" for sign in ("=", "<>", "<", "<=", ">", ">=") for value in (0, 30)),
    *("30 < age", "income >= 2.5", "age IN (0, 30)", "city IN ('Bern')", "age NOT IN (0)"),
    *("age BETWEEN 0 AND 30", "income NOT BETWEEN -1 AND 2.5", "age IS NULL", "city IS NOT NULL"),
    *("member = TRUE", "member <> FALSE", "born >= DATE '2000-01-01'", "city <> 'Bern'"),
]
CONDITIONS = st.recursive(
    st.sampled_from(COMPARISONS),
    lambda inner: st.one_of(
        inner.map(lambda one: f"NOT {one}" if not one.startswith("NOT") else f"NOT ({one})"),
        inner.map(lambda one: f"({one})"),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(" ".join),
    ),
    max_leaves=8,
)
ROWS: list[Row] = [
    {"age": age, "income": income, "city": city, "member": member, "born": born}
    for age in (None, 0, 30, 31)
    for income in (None, -1.0, 2.5, 3.0)
    for city, member, born in (
        (None, None, None),
        ("Bern", True, datetime.date(2000, 1, 1)),
        ("Chur", False, datetime.date(1999, 12, 31)),
        ("Bern", None, None),
    )
]


@pytest.fixture(scope="module")
def table() -> Iterator[duckdb.DuckDBPyConnection]:
    made = duckdb.connect()
    made.execute(
        "CREATE TABLE people "
        "(i INT, age BIGINT, income DOUBLE, city TEXT, member BOOLEAN, born DATE)"
    )
    made.executemany(
        "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)",
        [[i, *row.values()] for i, row in enumerate(ROWS)],
    )
    yield made
    made.close()


def test_a_filter_keeps_the_same_rows_as_sql(table: duckdb.DuckDBPyConnection) -> None:
    @examples(400, database=None)
    @given(CONDITIONS)
    def same(condition: str) -> None:
        sql = f"SELECT COUNT(*) FROM people WHERE {condition}"
        body = {**translate({"sql": sql}).body, "privacy": PRIVACY}
        asked: Any = Question.model_validate(body).query
        resolved = resolve(asked.where, card(), "/query/where")
        kept = [i for i, row in enumerate(ROWS) if holds(resolved, row)]
        # The text runs on a table that only this test uses.
        found = table.execute(f"SELECT i FROM people WHERE {condition} ORDER BY i").fetchall()
        assert kept == [i for (i,) in found]

    same()


def test_a_negation_that_is_not_pushed_inwards_is_caught() -> None:
    """The planted bug: a filter's own `not`, which holds for missing values."""
    turned, plain = ({"column": "age", "op": sign, "value": 30} for sign in ("<=", ">"))
    assert where_of("NOT age > 30") == turned
    planted: Any = Question.model_validate(
        {
            "dataset": "people",
            "query": {"kind": "count", "where": {"not": plain}},
            "privacy": PRIVACY,
        }
    ).query
    resolved = resolve(planted.where, card(), "/query/where")
    kept = [row["age"] for row in ROWS if holds(resolved, row)]
    assert None in kept
