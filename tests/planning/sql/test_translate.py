"""SQL as the equivalent JSON body, and refusals that give the position and quote nothing."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.queries import parse_question
from app.api.sql_questions import translated
from app.errors import Invalid
from app.planning.request import SQL_CHARACTERS_MAX, Question
from app.planning.sql.translate import translate
from tests.effort import examples
from tests.planning.sql.sql_bodies import ADULT, PRIVACY


@pytest.mark.parametrize(
    ("sql", "query"),
    [
        ("SELECT COUNT(*) FROM people", {"kind": "count"}),
        ("select count(*) from people;;", {"kind": "count"}),
        ("SELECT SUM(age) FROM people", {"kind": "sum", "column": "age"}),
        ("SELECT COUNT(DISTINCT who) FROM people", {"kind": "count_distinct", "column": "who"}),
        (
            'SELECT city, COUNT(DISTINCT "who") AS n FROM people WHERE age >= 18 GROUP BY city',
            {"kind": "count_distinct", "column": "who", "where": ADULT, "group_by": ["city"]},
        ),
        ('SELECT AVG("Total Income") AS a FROM people', {"kind": "mean", "column": "Total Income"}),
        ("SELECT VAR_POP(age) FROM people", {"kind": "variance", "column": "age"}),
        ("SELECT MIN(age) FROM people", {"kind": "min", "column": "age"}),
        ("SELECT MAX(age) -- the oldest\nFROM people", {"kind": "max", "column": "age"}),
        ("SELECT MEDIAN(age) FROM /* all */ people", {"kind": "median", "column": "age"}),
        (
            "SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age) FROM people",
            {"kind": "quantile", "column": "age", "q": 0.9},
        ),
        (
            "SELECT city, COUNT(*), AVG(age) FROM people WHERE age >= 18 GROUP BY city",
            {
                "kind": "aggregates",
                "of": [{"kind": "count"}, {"kind": "mean", "column": "age"}],
                "where": ADULT,
                "group_by": ["city"],
            },
        ),
        (
            "SELECT SUM(age), member FROM people GROUP BY city, member",
            {"kind": "sum", "column": "age", "group_by": ["city", "member"]},
        ),
    ],
)
def test_a_select_becomes_the_equivalent_query(sql: str, query: dict[str, Any]) -> None:
    done = translate({"sql": sql, "privacy": PRIVACY})
    assert done.body == {"dataset": "people", "query": query, "privacy": PRIVACY}
    Question.model_validate(done.body)


def test_only_sql_questions_load_the_parser() -> None:
    look = "import sys, app.main; sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0


# Refusals

SECRET = "planted-7391"
REFUSED = [
    ("SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people", "1, column 28", "no second sta"),
    (f"SELECT COUNT(*) FROM (SELECT '{SECRET}')", "1, column 23", "no subqueries"),
    (f"SELECT COUNT(*) FROM t WHERE a IN (SELECT '{SECRET}')", "1, column 36", "no subqueries"),
    (f"SELECT COUNT(*) FROM t UNION SELECT '{SECRET}'", "1, column 24", "no UNION"),
    (f"WITH a AS (SELECT '{SECRET}') SELECT COUNT(*) FROM a", "1, column 1", "one SELECT"),
    (f'DROP TABLE "{SECRET}"', "1, column 1", "one SELECT"),
    ("SELECT COUNT(*)\nFROM a JOIN b ON a.x = b.x", "2, column 8", "no JOIN"),
    ("SELECT COUNT(*) FROM a, b", "1, column 25", "one dataset"),
    ("SELECT COUNT(*) FROM a b", "1, column 24", "one dataset"),
    ("SELECT COUNT(*) FROM a.b", "1, column 22", "one dataset"),
    (f"SELECT COUNT(*) FROM f('{SECRET}')", "1, column 22", "one dataset"),
    ("SELECT COUNT(*)", "1, column 8", "one dataset"),
    (f"SELECT LOWER('{SECRET}') FROM t", "1, column 8", "COUNT(*), COUNT(DIS"),
    (f"SELECT AVG(age + {SECRET[8:]}) FROM t", "1, column 12", "a column"),
    ("SELECT VARIANCE(age) FROM t", "1, column 8", "VAR_POP"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) FROM t", "1, column 8", "_DISC"),
    ("SELECT COUNT(age) FROM t", "1, column 8", "COUNT(*)"),
    ("SELECT DISTINCT COUNT(*) FROM t", "1, column 8", "DISTINCT is allowed only"),
    ("SELECT COUNT(DISTINCT a, b) FROM t", "1, column 8", "COUNT(DISTINCT person)"),
    (f"SELECT COUNT(DISTINCT '{SECRET}') FROM t", "1, column 23", "column"),
    ("SELECT SUM(DISTINCT age) FROM t", "1, column 21", "column"),
    ("SELECT COUNT(*), COUNT(DISTINCT who) FROM t", "1, column 18", "the only aggregate"),
    ("SELECT *, COUNT(*) FROM t", "1, column 8", "COUNT(*)"),
    ("SELECT city, COUNT(*) FROM t", "1, column 8", "GROUP BY"),
    ("SELECT city FROM t GROUP BY city", "1, column 8", "an aggregate"),
    ("SELECT MIN(age), MAX(age) FROM t", "1, column 8", "several aggregates"),
    ("SELECT MEDIAN(age) FROM t GROUP BY city", "1, column 8", "groups"),
    ("SELECT COUNT(*) FROM t GROUP BY 1", "1, column 33", "a column"),
    ("SELECT COUNT(*) FROM t GROUP BY ROLLUP (city)", "1, column 33", "no ROLLUP"),
    ("SELECT COUNT(*) FROM t GROUP BY ALL", "1, column 33", "no ALL"),
    ("SELECT COUNT(*) FROM t GROUP BY a HAVING COUNT(*) > 1", "1, column 35", "no HAVING"),
    ("SELECT COUNT(*) FROM t ORDER BY 1", "1, column 24", "no ORDER BY"),
    ("SELECT COUNT(*) FROM t LIMIT 3", "1, column 24", "no LIMIT"),
    ("SELECT COUNT(*) OVER () FROM t", "1, column 17", "no OVER"),
    ("SELECT COUNT(*) FILTER (WHERE a = 1) FROM t", "1, column 17", "no FILTER"),
    ("SELECT COUNT(*) FROM t TABLESAMPLE (1)", "1, column 37", "one dataset"),
    ("SELECT COUNT(*) FROM t FOR UPDATE", "1, column 24", "no FOR"),
    (f"SELECT COUNT(*) FROM t WHERE a = LOWER('{SECRET}')", "1, column 34", "a literal"),
    ("SELECT COUNT(*) FROM t WHERE a = b", "1, column 34", "a literal"),
    ("SELECT COUNT(*) FROM t WHERE a + 1 = 2", "1, column 30", "a column"),
    ("SELECT COUNT(*) FROM t WHERE t.a = 2", "1, column 30", "by its name alone"),
    (f"SELECT COUNT(*) FROM t WHERE a LIKE '{SECRET}'", "1, column 32", "no LIKE"),
    ("SELECT COUNT(*) FROM t WHERE a = NULL", "1, column 34", "NULL is allowed only"),
    ("SELECT COUNT(*) FROM t WHERE a IS TRUE", "1, column 30", "IS NULL"),
    ("SELECT COUNT(*) FROM t WHERE a", "1, column 30", "a comparison"),
    ("SELECT COUNT(*) FROM t WHERE a = ?", "1, column 34", "no parameter"),
    ("SELECT COUNT(*) FROM t WHERE a = :b", "1, column 34", "no parameter"),
    ("SELECT COUNT(*) FROM t WHERE a = @b", "1, column 34", "no parameter"),
    ("SELECT COUNT(*) FROM t WHERE a = $1", "1, column 34", "a literal"),
    ("SELECT COUNT(*) FROM t WHERE a = 1e999", "1, column 34", "fits a double"),
    ("SELECT COUNT(*) FROM t WHERE a BETWEEN SYMMETRIC 1 AND 2", "1, column 30", ""),
    (f"SELECT COUNT(*) FROM t WHERE a = '{SECRET}", "1, column 34", "a quote"),
    (f"SELECT COUNT(*)\nFROM t /* {SECRET}", "2, column 8", "a quote or a comment"),
    (f'SELECT COUNT(*) FRM "{SECRET}"', "1, column 21", "cannot be parsed"),
    ("SELECT COUNT(*) FROM t WHERE " + "(" * 21 + "a = 1" + ")" * 21, "1, column 50", "at most 20"),
    ("SELECT COUNT(*) FROM t WHERE NOT NOT a = 1", "1, column 34", "no NOT"),
    ("SELECT COUNT(*) FROM t WHERE a = " + "- " * 3000 + "1", "1, column 1", "too deeply"),
    ("SELECT /*+ fast */ COUNT(*) FROM t", "1, column 20", "one SELECT"),
    ("-- nothing", "1, column 1", "one SELECT"),
    (" \n ", "1, column 1", "one SELECT"),
]


@pytest.mark.parametrize(
    ("sql", "position", "rule"), REFUSED, ids=[each[0][:50] for each in REFUSED]
)
def test_unsupported_sql_is_refused_by_position_alone(sql: str, position: str, rule: str) -> None:
    with pytest.raises(Invalid) as refused:
        translate({"sql": sql, "privacy": PRIVACY})
    (field,) = refused.value.fields
    assert field.pointer == "/sql"
    assert field.rule.startswith(f"line {position}: ")
    assert rule in field.rule
    assert SECRET not in repr((refused.value.detail, field, refused.value.members))


@pytest.mark.parametrize(
    ("sent", "pointer"),
    [
        ({"sql": "SELECT COUNT(*) FROM t", "query": {"kind": "count"}}, "/query"),
        ({"sql": "SELECT COUNT(*) FROM t", "dataset": "u"}, "/dataset"),
        ({"sql": "SELECT COUNT(*) FROM t", "dataset": None}, "/dataset"),
        ({"sql": 3}, "/sql"),
        ({"sql": None}, "/sql"),
        ({"sql": ""}, "/sql"),
        ({"sql": "SELECT COUNT(*) FROM t" + " " * SQL_CHARACTERS_MAX}, "/sql"),
    ],
)
def test_a_body_has_either_sql_or_a_query(sent: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        translate({**sent, "privacy": PRIVACY})
    assert refused.value.fields[0].pointer == pointer


def test_each_sql_of_a_list_is_translated_and_refused_at_its_own_position() -> None:
    sql = {"sql": "SELECT COUNT(*) FROM t", "privacy": PRIVACY}
    plain = {"dataset": "t", "query": {"kind": "count"}, "privacy": PRIVACY}
    bodies, mapped_back = translated([plain, sql])
    assert bodies == [plain, plain]
    (field,) = mapped_back(Invalid.field("/1/query/where", "a rule")).fields
    assert (field.pointer, field.rule) == ("/1/sql", "line 1, column 8: a rule")
    (field,) = mapped_back(Invalid.field("/0/query/where", "a rule")).fields
    assert field.pointer == "/0/query/where"
    with pytest.raises(Invalid) as refused:
        translated([plain, {"sql": "SELECT"}])
    assert refused.value.fields[0].pointer == "/1/sql"


def test_the_sent_body_is_hashed_and_the_translated_one_is_planned() -> None:
    json = b'{"dataset":"t","privacy":{"epsilon":1},"query":{"kind":"count"}}'
    sql = b'{"sql":"SELECT COUNT(*) FROM t","privacy":{"epsilon":1}}'
    spaced = b'{"sql":"SELECT  COUNT(*) FROM t","privacy":{"epsilon":1}}'
    plain, one, two = (parse_question("a_1", raw) for raw in (json, sql, spaced))
    assert plain.value == one.value == two.value
    assert plain.text == one.text == two.text
    assert len({plain.hash, one.hash, two.hash}) == 3


# Any text: a body, or a refusal

WORDS = """
    SELECT FROM WHERE GROUP BY AND OR NOT IN BETWEEN IS NULL TRUE DATE COUNT ( ) * , ; . = <> <=
    SUM AVG MIN PERCENTILE_DISC WITHIN ORDER age city people 1 -2.5 'x' "y" AS CASE WHEN END [ ]
    { } : :: @ $1 ? -- /* */ ' INTERVAL CAST EXISTS ANY ALL UNION WITH VALUES LATERAL ARRAY MAP
    STRUCT < > -> || % ! ~ JSON IGNORE NULLS OVER ROWS PIVOT UNNEST EXTRACT TRIM IF
"""
WORD = st.sampled_from(WORDS.split())
TEXTS = st.one_of(
    st.text(min_size=1, max_size=60),
    st.lists(WORD, min_size=1, max_size=25).map(" ".join),
    st.lists(WORD, max_size=12).map(
        lambda words: f"SELECT COUNT(*) FROM people WHERE {' '.join(words)}"
    ),
    st.lists(WORD, max_size=12).map(lambda words: f"SELECT {' '.join(words)} FROM people"),
)


@examples(1500, database=None)
@given(TEXTS)
def test_any_text_is_a_question_or_refused(sql: str) -> None:
    try:
        body = translate({"sql": sql, "privacy": PRIVACY}).body
    except Invalid:
        return  # any other exception would be a server error
    assert set(body) == {"dataset", "query", "privacy"}
