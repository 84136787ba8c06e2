"""Kinds of question and their fields, read from the interface description.

So a new kind, or a new field of a kind, is in the form without any change here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# Fields that every form has in a place of its own, and fields of SQL only.
ELSEWHERE = {"kind", "where", "group_by"}
COLUMNS = {"column", "outcome"}  # one column
SEVERAL_COLUMNS = {"features"}
PLAIN = {"integer", "number", "string", "boolean"}
# The heading under which a kind stands in the list of a form, and its label.
FAMILIES: dict[str, dict[str, str]] = {
    "Counts and sums": {
        "count": "how many rows",
        "count_distinct": "how many persons",
        "sum": "sum of a column",
        "mean": "mean of a column",
        "variance": "variance of a column",
        "ratio": "ratio of two counts or sums",
        "reciprocal": "one divided by a count",
        "aggregates": "several numbers at once",
    },
    "Distributions": {
        "histogram": "histogram",
        "cdf": "rows up to each edge",
        "workload": "many counts at once",
        "randomized_column": "every row by randomised response",
    },
    "Ranks and choices": {
        "median": "median",
        "quantile": "quantile",
        "min": "smallest value",
        "max": "largest value",
        "iqr": "distance of the quartiles",
        "trimmed_mean": "trimmed mean",
        "mode": "most frequent value",
        "top_k": "most frequent values",
        "price": "best price",
    },
    "Models": {
        "linear_regression": "linear regression",
        "logistic_regression": "logistic regression",
        "prediction_variance": "variance of a prediction",
        "sample_aggregate": "statistic of random blocks",
    },
    "Keys and graphs": {
        "keys": "texts that many persons have",
        "triangles": "triangles of a graph",
    },
}
OTHER = "Other"


@dataclass(frozen=True)
class FormField:
    """One field of a form. `shape` is column, columns, choice, number, text, list or json."""

    name: str
    shape: str
    required: bool
    choices: tuple[str, ...] = ()
    default: Any = None
    description: str = ""

    @property
    def label(self) -> str:
        return self.name.replace("_", " ").capitalize()


@dataclass(frozen=True)
class KindInForm:
    """A kind of question."""

    name: str
    label: str
    family: str
    fields: tuple[FormField, ...]
    has_filter: bool
    has_groups: bool

    @property
    def first_column(self) -> FormField | None:
        return next((field for field in self.fields if field.shape == "column"), None)


class KindsOfQuestion:
    """The interface description, as far as forms need it."""

    def __init__(self, openapi: Json) -> None:
        self._schemas: Json = openapi["components"]["schemas"]
        query = self._schemas["Question"]["properties"]["query"]
        self.kinds = {kind.name: kind for kind in map(self._kind, self._variants(query))}
        mechanism = self._schemas["Question"]["properties"]["mechanism"]
        self.mechanisms = tuple(
            name for one in self._variants(mechanism) for name in _kinds_of(one)
        )
        parameters = openapi["paths"]["/v1/ledger"]["get"]["parameters"]
        self.entry_kinds: tuple[str, ...] = next(
            tuple(parameter["schema"]["enum"])
            for parameter in parameters
            if parameter["name"] == "kind"
        )

    def families(self, usable: Mapping[str, bool]) -> Iterator[tuple[str, list[KindInForm]]]:
        """Kinds that this dataset allows, under their headings."""
        for family in (*FAMILIES, OTHER):
            kinds = [
                kind
                for kind in self.kinds.values()
                if kind.family == family and usable.get(kind.name, True)
            ]
            if kinds:
                order = list(FAMILIES.get(family, ()))
                yield family, sorted(kinds, key=lambda kind: _place(order, kind.name))

    def _kind(self, schema: Json) -> KindInForm:
        name, properties = _constant(schema), schema["properties"]
        required = set(schema.get("required", ()))
        fields = (
            self._field(field, member, field in required)
            for field, member in properties.items()
            if field not in ELSEWHERE
        )
        family = next((f for f, kinds in FAMILIES.items() if name in kinds), OTHER)
        return KindInForm(
            name,
            FAMILIES.get(family, {}).get(name, name.replace("_", " ")),
            family,
            tuple(sorted(fields, key=lambda field: not field.required)),
            "where" in properties,
            "group_by" in properties,
        )

    def _field(self, name: str, schema: Json, required: bool) -> FormField:
        shape, choices = self._shape(name, schema)
        default = schema.get("default")
        text = str(schema.get("description", ""))
        return FormField(name, shape, required, choices, default, text)

    def _shape(self, name: str, schema: Json) -> tuple[str, tuple[str, ...]]:
        if name in COLUMNS:
            return "column", ()
        if name in SEVERAL_COLUMNS:
            return "columns", ()
        variants = [self._resolved(one) for one in _alternatives(schema)]
        types = {str(one.get("type")) for one in variants} - {"null"}
        choices = [str(word) for one in variants for word in one.get("enum", ())]
        if choices:
            return "choice", tuple(choices)
        if types == {"boolean"}:
            return "choice", ("true", "false")
        if types and types <= {"integer", "number"}:
            return "number", ()
        if types and types <= PLAIN:
            return "text", ()
        items = [one["items"] for one in variants if one.get("type") == "array"]
        if items and self._is_plain(items[0]):
            return "list", ()
        return "json", ()

    def _is_plain(self, schema: Json) -> bool:
        types = {self._resolved(one).get("type") for one in _alternatives(schema)}
        return types <= PLAIN

    def _resolved(self, schema: Json) -> Json:
        while "$ref" in schema:
            schema = self._schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def _variants(self, schema: Json) -> Iterator[Json]:
        """All objects with a constant `kind` below a schema."""
        whole = self._resolved(schema)
        if {"const", "enum"} & set(whole.get("properties", {}).get("kind", {})):
            yield whole
            return
        for one in _alternatives(whole):
            if one is not whole:
                yield from self._variants(one)


def _alternatives(schema: Json) -> list[Json]:
    found = schema.get("anyOf") or schema.get("oneOf")
    return [schema] if found is None else [two for one in found for two in _alternatives(one)]


def _constant(schema: Json) -> str:
    return str(schema["properties"]["kind"]["const"])


def _kinds_of(schema: Json) -> list[str]:
    kind = schema["properties"]["kind"]
    return [str(kind["const"])] if "const" in kind else [str(name) for name in kind["enum"]]


def _place(order: list[str], name: str) -> int:
    return order.index(name) if name in order else len(order)
