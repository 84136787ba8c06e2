"""A question in words, as a heading."""

import json
from typing import Any

Json = dict[str, Any]
OPERATORS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥"}
TEXT_MAX = 200
UNREADABLE = "a question that cannot be read"


def question_in_words(question: Json | None) -> str:
    """`mean of income where age ≥ 18 by region`."""
    if question is None:
        return "a question that is too long to be listed"
    try:
        return _in_words(question)
    except (AttributeError, LookupError, TypeError, RecursionError):
        return UNREADABLE  # a shape that no question has; the interface refuses it in words


def _in_words(question: Json) -> str:
    if "sql" in question:
        return " ".join(str(question["sql"]).split())[:TEXT_MAX]
    query = question.get("query") or question.get("stream") or {}
    text = str(query.get("kind", "question")).replace("_", " ")
    subject = query.get("column") or query.get("outcome")
    text += f" of {subject}" if subject else ""
    if query.get("where"):
        text += f" where {condition_in_words(query['where'])}"
    groups = [g if isinstance(g, str) else g.get("column", "") for g in query.get("group_by") or ()]
    text += f" by {', '.join(groups)}" if groups else ""
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"


def condition_in_words(condition: Json) -> str:
    for word, joint in (("all", " and "), ("any", " or ")):
        if word in condition:
            parts = [condition_in_words(part) for part in condition[word]]
            return joint.join(f"({part})" if " or " in part else part for part in parts)
    if "not" in condition:
        return f"not ({condition_in_words(condition['not'])})"
    column, operator = condition.get("column"), condition.get("op")
    if operator == "is_null":
        return f"{column} is missing"
    value = condition.get("value")
    if operator == "between" and isinstance(value, list) and len(value) == 2:
        return f"{column} from {_value(value[0])} to {_value(value[1])}"
    if operator == "in" and isinstance(value, list):
        return f"{column} in {', '.join(map(_value, value))}"
    return f"{column} {OPERATORS.get(str(operator), operator)} {_value(value)}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
