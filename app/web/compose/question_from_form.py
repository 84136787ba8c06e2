"""From the fields of a form to the body of a question, as `POST /v1/queries` takes it.

A field that is empty is left out. A value that cannot be read stays text: the interface refuses it
and names the field, in the same words as for every other caller.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from app.web.compose.json_text import read_json
from app.web.compose.kinds import FormField, KindInForm, KindsOfQuestion
from app.web.site import Form

Json = dict[str, Any]
FILTERS_MAX = 8
AMOUNT = "0.1"  # in a form that nobody has changed
# A part of a list: in quotes, with "" for one quote in it, or without separators.
PART = re.compile(r'\s*"((?:[^"]|"")*)"\s*(?=[,;\n]|$)|([^,;\n]+)')
OPERATORS = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
    "in": "is one of",
    "between": "is between",
    "is_null": "is missing",
    "is_not_null": "is not missing",
}
PRICES = {"epsilon": "ε", "rho": "rho", "within": "error at most"}


@dataclass
class Composed:
    """The question in a form. `body` is None while a needed field is missing."""

    kind: KindInForm
    query: Json
    body: Json | None
    missing: list[str] = field(default_factory=list)


def composed(description: KindsOfQuestion, card: Json, form: Form) -> Composed:
    """The question of a form. An unknown kind is a count."""
    kind = description.kinds.get(form.text("kind"), description.kinds["count"])
    query: Json = {"kind": kind.name}
    missing = []
    for one in kind.fields:
        value = read_field(one, form, card)
        if value is not None:
            query[one.name] = value
        elif one.required:
            missing.append(one.label.lower())
    if kind.has_filter:
        missing += missing_values(form)
        if where := filter_of(form, card):
            query["where"] = where
    if kind.has_groups and (groups := groups_of(form, card)):
        query["group_by"] = groups
    privacy = privacy_of(form)
    if not privacy:
        missing.append("price")
    body = None if missing else question_body(card["name"], query, privacy, form)
    return Composed(kind, query, body, missing)


def composed_sql(card: Json, form: Form) -> tuple[Json | None, list[str]]:
    """The question of the SQL tab."""
    text, privacy = form.text("sql"), privacy_of(form)
    missing = [name for name, given in (("SQL", text), ("price", privacy)) if not given]
    if missing:
        return None, missing
    return {"sql": text, "privacy": privacy, **_mechanism(form)}, []


def question_body(dataset: str, query: Json, privacy: Json, form: Form) -> Json:
    return {"dataset": dataset, "query": query, "privacy": privacy, **_mechanism(form)}


def _mechanism(form: Form) -> Json:
    name = form.text("mechanism")
    return {"mechanism": {"kind": name}} if name else {}


def assumed(form: Form) -> Json:
    """The person's own guess of the number of rows, for errors that depend on it."""
    rows = number(form.text("rows"))
    return {"assume": {"rows": rows}} if rows is not None else {}


def privacy_of(form: Form) -> Json:
    """The price that the form names; empty without one. Amounts go as text, which is exact."""
    by, amount, delta = form.text("by", "epsilon"), form.text("amount", AMOUNT), form.text("delta")
    if not amount:
        return {}
    name = "half_width" if by == "within" else by if by in PRICES else "epsilon"
    privacy: Json = {name: number(amount) if name == "half_width" else amount}
    if name == "half_width" and form.text("confidence"):
        privacy["confidence"] = number(form.text("confidence"))
    if delta:
        privacy["delta"] = delta
    return privacy


def filter_of(form: Form, card: Json) -> Json | None:
    """The conditions of a form, joined by `all` or by `any`."""
    conditions = [
        _condition(card, column, operator, text)
        for column, operator, text in _filter_rows(form)
        if not _missing_value(column, operator, text)
    ]
    if not conditions:
        return None
    word = "any" if form.text("w_join") == "any" else "all"
    return conditions[0] if len(conditions) == 1 else {word: conditions}


def missing_values(form: Form) -> list[str]:
    """The values that conditions of a form lack, in words."""
    needed = [_missing_value(*row) for row in _filter_rows(form)]
    return list(dict.fromkeys(words for words in needed if words))


def _filter_rows(form: Form) -> list[tuple[str, str, str]]:
    """The conditions that have a column."""
    rows = zip(form.texts("w_column"), form.texts("w_op"), form.texts("w_value"), strict=False)
    return [row for row in list(rows)[:FILTERS_MAX] if row[0]]


def _missing_value(column: str, operator: str, text: str) -> str:
    """The value that one condition lacks, in words; empty if it is complete."""
    if operator in ("is_null", "is_not_null"):
        return ""
    if operator == "between":
        return "" if len(split(text)) == 2 else f"two values for {column}"
    has_value = bool(split(text)) if operator == "in" else bool(text)
    return "" if has_value else f"a value for {column}"


def _condition(card: Json, column: str, operator: str, text: str) -> Json:
    if operator in ("is_null", "is_not_null"):
        missing: Json = {"column": column, "op": "is_null"}
        return missing if operator == "is_null" else {"not": missing}
    if operator in ("in", "between"):
        values = [value_of(card, column, part) for part in split(text)]
        return {"column": column, "op": operator, "value": values}
    return {"column": column, "op": operator, "value": value_of(card, column, text)}


def groups_of(form: Form, card: Json) -> list[Any]:
    """Columns to group by; one with edges has them in a field of its own."""
    groups: list[Any] = []
    for name in form.texts("by_column"):
        edges = [value_of(card, name, part) for part in split(form.text(f"edges:{name}"))]
        groups.append({"column": name, "edges": edges} if edges else name)
    return groups


def read_field(one: FormField, form: Form, card: Json) -> Any:
    """The value of a kind's own field; None if it is empty."""
    values = [text for text in form.texts(f"f:{one.name}") if text]
    if not values:
        return None
    text = values[0]
    if one.shape == "columns":
        return values
    if one.shape == "list":
        return [plain(part) for part in split(text)]
    if one.shape == "json":
        return json_or_text(text)
    if one.shape == "number":
        return plain(text)
    if one.choices == ("true", "false"):
        return {"true": True, "false": False}.get(text, text)
    return text


def value_of(card: Json, column: str, text: str) -> Any:
    """A text as the type of its column."""
    kind = next((c["type"] for c in card["columns"] if c["name"] == column), "text")
    if kind in ("integer", "number"):
        return plain(text)
    if kind == "boolean" and text.lower() in ("true", "false", "yes", "no", "1", "0"):
        return text.lower() in ("true", "yes", "1")
    return text


def plain(text: str) -> Any:
    """A number if the text is one, and the text otherwise."""
    value = number(text)
    return text if value is None else value


def number(text: str) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) != float("inf") and value == value else None


def json_or_text(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return text


def split(text: str) -> list[str]:
    """The parts of a list: separated by commas, semicolons or line ends. A part in quotes may have
    any of these."""
    parts = [
        (quoted.replace('""', '"') if quoted else plain_part).strip()
        for quoted, plain_part in PART.findall(text)
    ]
    return [part for part in parts if part]
