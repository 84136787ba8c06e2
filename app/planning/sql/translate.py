"""SQL for a question: a SELECT becomes the very body that asks the same in JSON.

What comes out is checked, planned, priced, charged and reused as any body is; nothing here knows
the card. What is wrong with it later is told of the place in the text.

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
TOGETHER = "COUNT(*), SUM, AVG and VAR_POP only, where there are groups or several aggregates"
ALONE = "COUNT(DISTINCT person) by itself, with groups or without"
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
    """The body, and where in the text its members stand."""

    body: dict[str, Any]
    text: SqlText
    places: dict[str, int]

    def told(self, error: FieldError) -> FieldError:
        """What is wrong with the body, of the place in the text that it came from."""
        pointer = error.pointer
        while pointer:
            if pointer in self.places:
                return FieldError(POINTER, f"{self.text.place(self.places[pointer])}: {error.rule}")
            pointer = pointer.rpartition("/")[0]
        return error


def translate(sent: dict[str, Any]) -> Translation:
    """The body that a body with `sql` stands for. Raises Invalid, with the place."""
    if "query" in sent:
        raise Invalid.field("/query", "left out: sql stands in its place")
    written = sent["sql"]
    if not isinstance(written, str) or not 0 < len(written) <= SQL_CHARACTERS_MAX:
        raise Invalid.field(POINTER, f"a text of 1 to {SQL_CHARACTERS_MAX} characters")
    text = SqlText(written)
    try:
        statement = _Statement(text)
    except RecursionError:
        raise text.refused(0, "conditions that are less deep") from None
    dataset = statement.dataset
    if sent.get("dataset", dataset) != dataset:
        raise Invalid.field("/dataset", "the one that FROM names, or left out")
    others = {name: each for name, each in sent.items() if name != "sql"}
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
        rule = "FROM one dataset, by its name alone"
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
        asked = list(self._aggregates(select, groups))
        if not asked:
            raise self._text.refused(select, f"an aggregate: {AGGREGATE}")
        rest: dict[str, Any] = {}
        where = select.args.get("where")
        if where is not None:
            self._text.must_have_only(where, "this")
            conditions = Conditions(self._text, self.places)
            rest["where"] = conditions.filter(where.this, "/query/where")
        if groups:
            rest["group_by"] = groups
        for node, one in asked:
            if (groups or len(asked) > 1) and one["kind"] in (*_RANKED.values(), "quantile"):
                raise self._text.refused(node, TOGETHER)
            if len(asked) > 1 and one["kind"] == "count_distinct":
                raise self._text.refused(node, ALONE)
        if len(asked) == 1:
            ((node, one),) = asked
            self._note(node, one, "/query")
            return {**one, **rest}
        for i, (node, one) in enumerate(asked):
            self._note(node, one, f"/query/of/{i}")
        return {"kind": "aggregates", "of": [one for _, one in asked], **rest}

    def _note(self, node: exp.Expr, one: dict[str, Any], at: str) -> None:
        for member in ("", *(f"/{name}" for name in one)):
            self.places[f"{at}{member}"] = self._text.start(node)

    def _groups(self, select: exp.Select) -> list[str]:
        group = select.args.get("group")
        if group is None:
            return []
        rule = f"{COLUMN}, with public values"
        self._text.must_have_only(group, "expressions", rule=rule)
        found: list[str] = []
        for i, each in enumerate(listed(group.expressions)):
            found.append(self._text.column(each, rule, group))
            self.places[f"/query/group_by/{i}"] = self._text.start(each)
        if not found:
            raise self._text.refused(group, rule)
        return found

    def _aggregates(
        self, select: exp.Select, groups: list[str]
    ) -> list[tuple[exp.Expr, dict[str, Any]]]:
        """An alias names a figure for the reader; the answer has the names of the question."""
        found = []
        for each in listed(select.expressions):
            node = each
            if isinstance(each, exp.Alias):
                self._text.must_have_only(each, "this", "alias")
                node = each.this
            if isinstance(node, exp.Column):
                if self._text.column(node, COLUMN, node) not in groups:
                    raise self._text.refused(node, "a column that GROUP BY names, or an aggregate")
                continue
            found.append((node, self._aggregate(node)))
        return found

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
        # Missing values count nowhere, so it does not matter where they would stand.
        self._text.must_have_only(ordered, "this", "nulls_first", rule=rule)
        column = self._text.column(ordered.this, COLUMN, ordered)
        q = number(self._text, share.this, rule, node)
        return {"kind": "quantile", "column": column, "q": q}
