"""A question: what is asked, apart from its price. Building one sends nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from bursar import mechanisms
from bursar.ask import question_flows
from bursar.ask.amounts import Amount, privacy_of, wire_amount, wire_count
from bursar.ask.cards import Card
from bursar.ask.filters import Column, text_of
from bursar.ask.groups import combinations, together
from bursar.ask.keywords import named_arguments, no_attribute
from bursar.errors import BadQuestion, BudgetExhausted
from bursar.http.flow import Flow
from bursar.http.rollback_check import SeenCharges
from bursar.results.answers import Answer, Charged
from bursar.results.previews import (
    PlanPreview,
    Preview,
    joined_preview,
    point_of,
    read_preview,
    read_previews,
)

Group: TypeAlias = str | Column | Mapping[str, Any]
MechanismLike: TypeAlias = mechanisms.Mechanism | str | None
Self = TypeVar("Self", bound="QuestionParts")
GROUPED = {
    "aggregates",
    "count",
    "count_distinct",
    "mean",
    "ratio",
    "reciprocal",
    "sum",
    "variance",
}
COLUMN_FIELDS = ("column", "outcome")


@dataclass(frozen=True)
class Price:
    """The price of a question, or the accuracy that it must have."""

    privacy: Mapping[str, Any]
    mechanism: Mapping[str, Any] | None = None
    confidence: float | None = None

    def members(self) -> dict[str, Any]:
        body: dict[str, Any] = {"privacy": self.privacy}
        if self.mechanism is not None:
            body["mechanism"] = self.mechanism
        if self.confidence is not None:
            body["confidence"] = self.confidence
        return body


def price_of(
    epsilon: Amount | None,
    delta: Amount | None,
    rho: Amount | None,
    within: Amount | None,
    confidence: float | None,
    mechanism: MechanismLike,
) -> Price | None:
    """The price in the arguments of a call, or None if there is none."""
    if epsilon is None and rho is None and within is None and delta is None:
        if mechanism is not None or confidence is not None:
            raise BadQuestion("Name a price as well.", hint="For example: epsilon=0.1")
        return None
    privacy = privacy_of(
        epsilon=epsilon, delta=delta, rho=rho, within=within, confidence=confidence
    )
    body: Mapping[str, Any] | None = None
    if isinstance(mechanism, str):
        body = {"kind": mechanism}
    elif isinstance(mechanism, mechanisms.Mechanism):
        body = mechanism.body
    elif mechanism is not None:
        raise BadQuestion(
            f"A mechanism cannot be a {type(mechanism).__name__}.",
            hint="For example: mechanism=bursar.mechanisms.laplace()",
        )
    return Price(dict(privacy), body, confidence)


@dataclass(frozen=True)
class Assumed:
    """Assumptions of a preview: rows, several prices, and the account that pays.

    The rows belong to each question, the account to a whole list.
    """

    rows: int | None = None
    epsilons: Sequence[Amount] | None = None
    holder: str | None = None
    account: Mapping[str, Any] | None = None

    def members(self) -> dict[str, Any]:
        body = {**self.of_each(), **self.of_all()}
        if self.epsilons is not None:
            body["epsilons"] = [wire_amount(one) for one in self.epsilons]
        return body

    def of_each(self) -> dict[str, Any]:
        return {} if self.rows is None else {"assume": {"rows": wire_count(self.rows, "rows")}}

    def of_all(self) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if self.holder is not None:
            body["as"] = self.holder
        if self.account is not None:
            body["account"] = dict(self.account)
        return body


@dataclass(frozen=True, repr=False)
class QuestionParts:
    """The parts of a question that the synchronous and the asynchronous one share."""

    card: Card | None  # None for SQL that names its table itself
    query: Mapping[str, Any] | None
    sql: str | None = None
    price: Price | None = None
    separate: tuple[str, ...] = ()  # columns whose values are asked for one by one
    seen: SeenCharges = field(compare=False, kw_only=True)

    def by(self: Self, *groups: "Group | list[Group]") -> Self:
        """One answer for each group: `by("region")`, `by(col.age.edges([0, 18, 65, 120]))`.

        A kind that the server does not group is asked once for each value of a category. If the
        dataset has cells by that column, all of them together cost as much as one.
        """
        if self.query is None or self.card is None:
            raise BadQuestion("Groups of SQL stand in the text.", hint="Write GROUP BY.")
        every = [one for group in groups for one in _several(group)]
        listed = [group.name if isinstance(group, Column) else group for group in every]
        if not all(isinstance(group, (str, Mapping)) for group in listed):
            raise BadQuestion(
                "A group is a column, or a column with edges.",
                hint='.by("region"), .by(col.age.edges([0, 18, 65]))',
            )
        self.card.check(_group_name(group) for group in listed)
        if self.query["kind"] in GROUPED:
            grouped = {**self.query, "group_by": [*self.query.get("group_by", []), *listed]}
            return replace(self, query=grouped)
        if not all(isinstance(group, str) for group in listed):
            raise BadQuestion(
                f"A {self.query['kind']} can be grouped by categories only.",
                hint='Filter instead: .where(col.age < 18), or group by a category: .by("region")',
            )
        names = [str(group) for group in listed]
        for name in names:
            if not self._values(name):
                raise BadQuestion(f"{name} has no list of values on the card to group by.")
        return replace(self, separate=(*self.separate, *names))

    def _values(self, name: str) -> list[Any]:
        assert self.card is not None
        column = self.card.column(name)
        return [False, True] if column.type == "boolean" else list(column.values)

    @named_arguments
    def at(
        self: Self,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        within: Amount | None = None,
        confidence: float | None = None,
        mechanism: MechanismLike = None,
    ) -> Self:
        """The same question with a price of its own, for a plan."""
        return replace(self, price=price_of(epsilon, delta, rho, within, confidence, mechanism))

    def body(self, price: Price | None = None) -> dict[str, Any]:
        """The question as JSON, as `POST /v1/queries` takes it."""
        chosen = price or self.price
        if chosen is None:
            raise BadQuestion(
                "Say what the question may cost, or how exact it must be.",
                hint="Give exactly one of epsilon=0.1, rho=0.01 and within=50.",
            )
        body: dict[str, Any] = {} if self.card is None else {"dataset": self.card.name}
        body |= {"sql": self.sql} if self.sql is not None else {"query": self.query}
        return {**body, **chosen.members()}

    def __str__(self) -> str:
        if self.query is None:
            return " ".join(str(self.sql).split())
        subject = self.query.get("column") or self.query.get("outcome")
        text = str(self.query["kind"]).replace("_", " ") + (f" of {subject}" if subject else "")
        if self.query.get("where"):
            text += f" where {text_of(self.query['where'])}"
        groups = [*map(_group_name, self.query.get("group_by") or ()), *self.separate]
        text += f" by {', '.join(groups)}" if groups else ""
        left_out = self._groups()[1] if self.separate else 0
        return text + (f" ({left_out} groups left out: the filter excludes them)" * bool(left_out))

    def __repr__(self) -> str:
        return f"<question: {self}; nothing asked yet, use .preview() or .ask()>"

    if not TYPE_CHECKING:  # so that type checkers know which methods there are

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("A question", name, dir(type(self)))

    # Flows

    def _groups(self) -> tuple[list[dict[str, Any]], int]:
        assert self.query is not None
        values = {name: self._values(name) for name in self.separate}
        return combinations(values, self.query.get("where"))

    def _parts(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Each combination of values that is asked for by itself, with its query."""
        assert self.query is not None
        parts = []
        for group in self._groups()[0]:
            conditions = [{"column": n, "op": "==", "value": v} for n, v in group.items()]
            if self.query.get("where"):
                conditions.insert(0, self.query["where"])
            where = conditions[0] if len(conditions) == 1 else {"all": conditions}
            parts.append((group, {**self.query, "where": where}))
        return parts

    def _bodies(self, price: Price | None) -> list[dict[str, Any]]:
        body = self.body(price)
        return [{**body, "query": query} for _, query in self._parts()]

    def ask_flow(self, price: Price | None, *, fresh: bool, key: str | None) -> Flow[Answer]:
        if not self.separate:
            body = {**self.body(price), **({"fresh": True} if fresh else {})}
            return (yield from question_flows.ask(self.seen, body, str(self), key))
        bodies = self._bodies(price)
        priced = yield from self._plan_flow(bodies)
        if priced.stops_at is not None:
            refused = priced.items[priced.stops_at].refusal or {}
            raise BudgetExhausted(402, {"type": "/problems/budget-exhausted", **refused})
        answers = []
        for number, body in enumerate(bodies):
            one_key = None if key is None else f"{key}-{number}"
            sent = {**body, **({"fresh": True} if fresh else {})}
            answers.append((yield from question_flows.ask(self.seen, sent, str(self), one_key)))
        return _joined(self, [group for group, _ in self._parts()], answers)

    def rehearse_flow(self, price: Price | None, rows: int | None) -> Flow[Answer]:
        extra = Assumed(rows).of_each()
        if not self.separate:
            body = {**self.body(price), **extra}
            return (yield from question_flows.rehearse(body, str(self)))
        answers = []
        for body in self._bodies(price):
            answers.append((yield from question_flows.rehearse({**body, **extra}, str(self))))
        return _joined(self, [group for group, _ in self._parts()], answers)

    def preview_flow(self, price: Price | None, assumed: Assumed) -> Flow[Preview]:
        if price is None and self.price is None and assumed.epsilons:
            price = Price({"epsilon": wire_amount(assumed.epsilons[0])})
        if self.separate:
            return (yield from self._groups_flow(price, assumed))
        reply = yield from question_flows.preview({**self.body(price), **assumed.members()})
        return read_preview(reply.json(), str(self))

    def _groups_flow(self, price: Price | None, assumed: Assumed) -> Flow[Preview]:
        """One preview of all groups. Each price of a curve is that of the groups together."""
        bodies = self._bodies(price)
        plan = yield from self._plan_flow(bodies, assumed)
        joined = joined_preview(str(self), plan.items, replace_one=self._replace_one)
        curve = []
        for epsilon in map(wire_amount, assumed.epsilons or ()):
            priced = [{**b, "privacy": {**b["privacy"], "epsilon": epsilon}} for b in bodies]
            plan = yield from self._plan_flow(priced, assumed)
            point = joined_preview(str(self), plan.items, replace_one=self._replace_one)
            curve.append(point_of(epsilon, point))
        return replace(joined, curve=tuple(curve))

    @property
    def _replace_one(self) -> bool:
        return self.card is not None and self.card.replace_one

    def _plan_flow(
        self, bodies: list[dict[str, Any]], assumed: Assumed | None = None
    ) -> Flow[PlanPreview]:
        reply = yield from question_flows.preview(listed(bodies, assumed or Assumed()))
        return read_previews(reply.json(), [str(self)] * len(bodies))


def listed(bodies: Sequence[Mapping[str, Any]], assumed: Assumed) -> Any:
    """Bodies with assumptions, as `POST /v1/queries/preview` takes a list."""
    each = [{**body, **assumed.of_each()} for body in bodies]
    whole = assumed.of_all()
    return {"questions": each, **whole} if whole else each


def named_columns(query: Mapping[str, Any]) -> list[str]:
    """The columns that a query names outside its filter."""
    names = [query[name] for name in COLUMN_FIELDS if query.get(name) is not None]
    names += query.get("features") or ()
    names += [one["column"] for one in query.get("of") or () if "column" in one]
    for side in ("numerator", "denominator"):
        part = query.get(side) or {}
        names += [part["column"]] if "column" in part else []
    return [str(name) for name in names]


def _several(group: "Group | list[Group]") -> "list[Group]":
    return group if isinstance(group, list) else [group]


def _group_name(group: str | Mapping[str, Any]) -> str:
    return group if isinstance(group, str) else str(group["column"])


def _joined(question: QuestionParts, groups: list[dict[str, Any]], answers: list[Answer]) -> Answer:
    """Answers of single groups as one answer with groups."""
    value = [
        {"group": group, "value": one.value, "interval": one.members.get("interval")}
        for group, one in zip(groups, answers, strict=True)
    ]
    last = answers[-1]
    return replace(
        last,
        value=value,
        interval=None,
        question=str(question),
        charged=_together(answers, replace_one=question._replace_one),
        reused=all(one.reused for one in answers),
        members={"made_up": last.made_up, "answers": [one.members for one in answers]},
    )


def _together(answers: list[Answer], *, replace_one: bool) -> Charged:
    """Price of the answers together."""
    paid = [one.charged for one in answers if not one.reused]
    loss = together([(one.loss, one.cells) for one in paid], replace_one=replace_one)
    price = together([(one.price, one.cells) for one in paid], replace_one=replace_one)
    return Charged(loss, price, answers[-1].charged.accounts, None)
