"""Translation of a SQL query: a SELECT becomes the equivalent JSON body.

The body is checked, planned, priced, charged and reused as any other body; nothing here knows the
card. Later validation errors are mapped back to line and column of the SQL.

    COUNT(*), SUM(c), AVG(c), VAR_POP(c)     count, sum, mean, variance; several of them: aggregates
    COUNT(DISTINCT c)                        count_distinct, of the person column: alone
    MIN(c), MAX(c), MEDIAN(c),               min, max, median, quantile: alone and without groups
    PERCENTILE_DISC(q) WITHIN GROUP (ORDER BY c)
"""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from app.errors import FieldError, Invalid
from app.planning.request import SQL_CHARACTERS_MAX
from app.planning.sql.conditions import COLUMN, Conditions, number
from app.planning.sql.text import POINTER, SqlText, listed

AGGREGATE = (
    "COUNT(*), COUNT(DISTINCT person), SUM, AVG, VAR_POP, MIN, MAX or MEDIAN of a column, "
    "PERCENTILE_DISC(q) WITHIN GROUP (ORDER BY column), or a column of GROUP BY"
)
TOGETHER = "with groups or several aggregates only COUNT(*), SUM, AVG and VAR_POP are allowed"
ALONE = "COUNT(DISTINCT person) must be the only aggregate, with groups or without"
COUNTED = "COUNT(*), or COUNT(DISTINCT person) of the person column"
_SUMMED: dict[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.VariancePop: "variance",
}
_RANKED: dict[type[exp.Expr], str] = {
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """The body, and the positions of its members in the text."""

    body: dict[str, Any]
    text: SqlText
    places: dict[str, int]

    def translated(self, error: FieldError) -> FieldError:
        """Map an error of the body to the position in the text that it came from."""
        pointer = error.pointer
        while pointer:
            if pointer in self.places:
                return FieldError(POINTER, f"{self.text.place(self.places[pointer])}: {error.rule}")
            pointer = pointer.rpartition("/")[0]
        return error


def translate(sent: dict[str, Any]) -> Translation:
    """Translate a body with `sql`. Raises Invalid, with the position."""
    if "query" in sent:
        raise Invalid.field("/query", "must be absent: sql replaces it")
    written = sent["sql"]
    if not isinstance(written, str) or not 0 < len(written) <= SQL_CHARACTERS_MAX:
        raise Invalid.field(POINTER, f"must be a text of 1 to {SQL_CHARACTERS_MAX} characters")
    text = SqlText(written)
    try:
        statement = _Statement(text)
    except RecursionError:
        raise text.refused(0, "conditions are nested too deeply") from None
    dataset = statement.dataset
    if sent.get("dataset", dataset) != dataset:
        raise Invalid.field("/dataset", "must be the one that FROM names, or absent")
    others = {name: member for name, member in sent.items() if name != "sql"}
    body = {**others, "dataset": dataset, "query": statement.query}
    return Translation(body, text, statement.places)


class _Statement:
    """A SELECT as a query."""

    def __init__(self, text: SqlText) -> None:
        self._text = text
        self.places: dict[str, int] = {}
        select = text.select()
        text.must_have_only(select, "expressions", "from_", "where", "group")
        self.dataset = self._dataset(select)
        self.query = self._query(select)

    def _dataset(self, select: exp.Select) -> str:
        rule = "FROM must name one dataset, without schema or alias"
        origin = select.args.get("from_")
        if not isinstance(origin, exp.From):
            raise self._text.refused(select, rule)
        self._text.must_have_only(origin, "this", rule=rule)
        if not isinstance(origin.this, exp.Table):
            raise self._text.refused(origin, rule)
        self._text.must_have_only(origin.this, "this", rule=rule)
        self.places["/dataset"] = self._text.start(origin)
        return self._text.name(origin.this.this, rule, origin)

    def _query(self, select: exp.Select) -> dict[str, Any]:
        self.places["/query"] = 0
        groups = self._groups(select)
        aggregates = list(self._aggregates(select, groups))
        if not aggregates:
            raise self._text.refused(select, f"an aggregate: {AGGREGATE}")
        rest: dict[str, Any] = {}
        where = select.args.get("where")
        if where is not None:
            self._text.must_have_only(where, "this")
            conditions = Conditions(self._text, self.places)
            rest["where"] = conditions.filter(where.this, "/query/where")
        if groups:
            rest["group_by"] = groups
        for node, one in aggregates:
            if (groups or len(aggregates) > 1) and one["kind"] in (*_RANKED.values(), "quantile"):
                raise self._text.refused(node, TOGETHER)
            if len(aggregates) > 1 and one["kind"] == "count_distinct":
                raise self._text.refused(node, ALONE)
        if len(aggregates) == 1:
            ((node, one),) = aggregates
            self._note(node, one, "/query")
            return {**one, **rest}
        for i, (node, one) in enumerate(aggregates):
            self._note(node, one, f"/query/of/{i}")
        return {"kind": "aggregates", "of": [one for _, one in aggregates], **rest}

    def _note(self, node: exp.Expr, one: dict[str, Any], at: str) -> None:
        for member in ("", *(f"/{name}" for name in one)):
            self.places[f"{at}{member}"] = self._text.start(node)

    def _groups(self, select: exp.Select) -> list[str]:
        group = select.args.get("group")
        if group is None:
            return []
        rule = f"{COLUMN}, with public values"
        self._text.must_have_only(group, "expressions", rule=rule)
        columns: list[str] = []
        for i, column in enumerate(listed(group.expressions)):
            columns.append(self._text.column(column, rule, group))
            self.places[f"/query/group_by/{i}"] = self._text.start(column)
        if not columns:
            raise self._text.refused(group, rule)
        return columns

    def _aggregates(
        self, select: exp.Select, groups: list[str]
    ) -> list[tuple[exp.Expr, dict[str, Any]]]:
        """Aggregates of the SELECT. An alias is ignored: the answer uses the names of the query."""
        aggregates = []
        for item in listed(select.expressions):
            node = item
            if isinstance(item, exp.Alias):
                self._text.must_have_only(item, "this", "alias")
                node = item.this
            if isinstance(node, exp.Column):
                if self._text.column(node, COLUMN, node) not in groups:
                    raise self._text.refused(node, "a column that GROUP BY names, or an aggregate")
                continue
            aggregates.append((node, self._aggregate(node)))
        return aggregates

    def _aggregate(self, node: exp.Expr) -> dict[str, Any]:
        kind = _SUMMED.get(type(node)) or _RANKED.get(type(node))
        if kind is not None:
            self._text.must_have_only(node, "this")
            return {"kind": kind, "column": self._text.column(node.this, COLUMN, node)}
        if isinstance(node, exp.Count):
            return self._count(node)
        if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileDisc):
            return self._percentile(node, node.this)
        raise self._text.refused(node, AGGREGATE)

    def _count(self, node: exp.Count) -> dict[str, Any]:
        self._text.must_have_only(node, "this", "big_int", rule=COUNTED)
        if isinstance(node.this, exp.Distinct):
            self._text.must_have_only(node.this, "expressions", rule=COUNTED)
            if len(node.this.expressions) != 1:
                raise self._text.refused(node, COUNTED)
            column = self._text.column(node.this.expressions[0], COLUMN, node)
            return {"kind": "count_distinct", "column": column}
        if not isinstance(node.this, exp.Star):
            raise self._text.refused(node, COUNTED)
        self._text.must_have_only(node.this, rule=COUNTED)
        return {"kind": "count"}

    def _percentile(self, node: exp.WithinGroup, share: exp.PercentileDisc) -> dict[str, Any]:
        rule = "PERCENTILE_DISC(q) WITHIN GROUP (ORDER BY column)"
        self._text.must_have_only(node, "this", "expression", rule=rule)
        self._text.must_have_only(share, "this", rule=rule)
        order = node.expression
        if not isinstance(order, exp.Order) or len(order.expressions) != 1:
            raise self._text.refused(node, rule)
        self._text.must_have_only(order, "expressions", rule=rule)
        (ordered,) = order.expressions
        if not isinstance(ordered, exp.Ordered):
            raise self._text.refused(node, rule)
        # Missing values count nowhere, so their order does not matter.
        self._text.must_have_only(ordered, "this", "nulls_first", rule=rule)
        column = self._text.column(ordered.this, COLUMN, ordered)
        q = number(self._text, share.this, rule, node)
        return {"kind": "quantile", "column": column, "q": q}
