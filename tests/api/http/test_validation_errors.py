"""Messages about invalid bodies, in words of JSON."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.api.dataset_models import DatasetRequest
from app.api.http.json_body import StrictAdapter
from app.api.http.validation_errors import invalid
from app.api.previews.models import PREVIEWED
from app.planning.preview_request import AssumedQuestion
from app.planning.request import Question


def rules(model: Any, sent: Any) -> dict[str, str]:
    adapter: StrictAdapter[Any] = StrictAdapter(model)
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(sent)
    errors = caught.value.errors(include_input=False, include_url=False)
    return {each.pointer: each.rule for each in invalid(errors, sent, adapter.described).fields}


def count_where(op: str) -> dict[str, Any]:
    where = {"column": "age", "op": op, "value": 1}
    return {"dataset": "t", "query": {"kind": "count", "where": where}, "privacy": {"epsilon": 1}}


@pytest.mark.parametrize("model", [Question, PREVIEWED, AssumedQuestion, DatasetRequest])
def test_an_object_is_called_an_object(model: Any) -> None:
    assert rules(model, 7) == {"": "an object"}


def test_a_list_is_called_a_list() -> None:
    assert rules(DatasetRequest, {"columns": {}})["/columns"] == "a list"
    workload = {"kind": "workload", "predicates": {}}
    sent = {"dataset": "t", "query": workload, "privacy": []}
    assert rules(Question, sent) == {"/query/predicates": "a list", "/privacy": "an object"}


@pytest.mark.parametrize(("op", "meant"), [("=", "=="), ("IN", "in"), ("betwen", "between")])
def test_the_nearest_operator_is_suggested(op: str, meant: str) -> None:
    assert rules(Question, count_where(op))["/query/where/op"].endswith(f"did you mean '{meant}'?")
