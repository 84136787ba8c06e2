"""Sample and aggregate: invalid questions are refused."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from app.api.http.validation_errors import invalid
from app.errors import Invalid
from app.queries.blocks.sample_aggregate import WORK_MAX
from app.queries.shapes.post_processed import PostProcessedShape
from tests.queries.blocks.aggregated_blocks import ASKED, MODE, REGRESSION, shaped
from tests.queries.cards import card, question

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no width": ({"low": 5, "high": 5}, "/query"),
    "one block": ({"blocks": 1}, "/query/blocks"),
    "no bound": ({"low": None}, "/query/low"),
    "a category": ({"statistic": {"kind": "median", "column": "city"}}, "/query/statistic/column"),
    "no column": ({"statistic": {"kind": "sum", "column": "nobody"}}, "/query/statistic/column"),
    "no share": ({"statistic": {"kind": "quantile", "column": "age"}}, "/query/statistic"),
    "a share": (
        {"statistic": {"kind": "median", "column": "age", "q": 0.5}},
        "/query/statistic",
    ),
    "all of a share": (
        {"statistic": {"kind": "quantile", "column": "age", "q": 1}},
        "/query/statistic/q",
    ),
    "code": ({"statistic": {"kind": "python", "column": "age"}}, "/query/statistic/kind"),
    "half is taken away": (
        {"statistic": {"kind": "trimmed_mean", "column": "age", "trim": 0.5}},
        "/query/statistic/trim",
    ),
    "count of a column": (
        {"statistic": {"kind": "count", "column": "age"}},
        "/query/statistic/column",
    ),
    "no numerator": (
        {"statistic": {"kind": "ratio", "numerator": {}}},
        "/query/statistic/numerator",
    ),
    "a sum over rows": (
        {"statistic": {"kind": "ratio", "numerator": {"column": "age"}}},
        "/query/statistic/denominator",
    ),
    "over what may be 0": (
        {
            "statistic": {
                "kind": "ratio",
                "numerator": {"column": "age"},
                "denominator": {"column": "age"},
            }
        },
        "/query/statistic/denominator/column",
    ),
    "a share by another column": (
        {
            "statistic": {
                "kind": "ratio",
                "numerator": {"where": {"column": "nobody", "op": "==", "value": 1}},
            }
        },
        "/query/statistic/numerator/where/column",
    ),
    "cdf of a category": (
        {"statistic": {"kind": "cdf", "column": "city", "edge": 3}},
        "/query/statistic/column",
    ),
    "an edge that is no day": (
        {"statistic": {"kind": "cdf", "column": "born", "edge": 3}},
        "/query/statistic/edge",
    ),
    "a mode with bounds": ({"statistic": MODE, "high": None}, "/query/low"),
    "a mean of modes": (
        {"statistic": MODE, "low": None, "high": None, "aggregate": "mean"},
        "/query/aggregate",
    ),
    "votes of numbers": ({"aggregate": "votes"}, "/query/aggregate"),
    "a mode of numbers": (
        {"statistic": {"kind": "mode", "column": "age"}, "low": None, "high": None},
        "/query/statistic/column",
    ),
    "no such coefficient": (
        {"statistic": {**REGRESSION, "coefficient": "city"}},
        "/query/statistic/coefficient",
    ),
    "no such intercept": (
        {"statistic": {**REGRESSION, "coefficient": "(intercept)", "intercept": False}},
        "/query/statistic/coefficient",
    ),
    "a feature twice": (
        {"statistic": {**REGRESSION, "features": ["income", "income"]}},
        "/query/statistic/features",
    ),
    "an outcome as feature": (
        {"statistic": {**REGRESSION, "features": ["income", "age"]}},
        "/query/statistic/features/1",
    ),
    "no such outcome": (
        {"statistic": {**REGRESSION, "outcome": "city"}},
        "/query/statistic/outcome",
    ),
    "a feature of days": (
        {"statistic": {**REGRESSION, "features": ["born"]}},
        "/query/statistic/features/0",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_an_invalid_question_is_refused(name: str) -> None:
    changes, at = REFUSED[name]
    query = {**ASKED, **changes}
    for bound in ("low", "high"):
        if query[bound] is None:
            del query[bound]
    pointers: list[str] = []
    try:
        question(query).query.shape(card())
    except ValidationError as error:
        body = {"query": query, "dataset": "people", "privacy": {"epsilon": "1"}}
        pointers = [each.pointer for each in invalid(error.errors(), body).fields]
    except Invalid as error:
        pointers = [each.pointer for each in error.fields]
    assert pointers == [at]


def test_candidates_are_as_fine_as_the_floats_and_no_finer() -> None:
    _, shape = shaped(low=1.0, high=math.nextafter(1.0, 2.0))
    assert isinstance(shape, PostProcessedShape)


def test_fits_of_many_terms_are_allowed_for_fewer_blocks() -> None:
    """Their work is public: terms cubed, per block."""
    columns = [{"name": f"c{i}", "type": "integer", "low": 0, "high": 9} for i in range(18)]
    names = [each["name"] for each in columns]

    def ask(terms: int, blocks: int) -> PostProcessedShape:
        statistic = {**REGRESSION, "outcome": "c0", "features": names[1:terms], "coefficient": "c1"}
        query = question({**ASKED, "blocks": blocks, "statistic": statistic}).query
        shape = query.shape(card(columns))
        assert isinstance(shape, PostProcessedShape)
        return shape

    ask(5, 10_000)
    ask(16, WORK_MAX // 16**3)
    with pytest.raises(Invalid, match="/query/blocks"):
        ask(16, WORK_MAX // 16**3 + 1)
    with pytest.raises(Invalid, match="/query/statistic/features"):
        ask(17, 2)
