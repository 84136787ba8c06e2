"""A question: what is asked, apart from its price. Building one sends nothing."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from bursar import mechanisms
from bursar.ask import question_flows
from bursar.ask.amounts import Amount, privacy_of, together, wire_amount
from bursar.ask.cards import Card
from bursar.ask.filters import Column, text_of
from bursar.errors import BadQuestion, BudgetExhausted
from bursar.http.flow import Flow
from bursar.http.rollback_check import SeenCharges
from bursar.results.answers import Answer, Charged
from bursar.results.previews import (
    PlanPreview,
    Preview,
    joined_preview,
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
SEPARATE_MAX = 100
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
    elif mechanism is not None:
        body = mechanism.body
    return Price(dict(privacy), body, confidence)


@dataclass(frozen=True)
class Assumed:
    """Assumptions of a preview: rows, several prices, and the account that pays."""

    rows: int | None = None
    epsilons: Sequence[Amount] | None = None
    holder: str | None = None
    account: Mapping[str, Any] | None = None

    def members(self) -> dict[str, Any]:
        body: dict[str, Any] = {}
        if self.rows is not None:
            body["assume"] = {"rows": self.rows}
        if self.epsilons is not None:
            body["epsilons"] = [wire_amount(one) for one in self.epsilons]
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

    def by(self: Self, *groups: Group) -> Self:
        """One answer for each group: `by("region")`, `by(col.age.edges([0, 18, 65, 120]))`.

        A kind that the server does not group is asked once for each value of a category. If the
        dataset has cells by that column, all of them together cost as much as one.
        """
        if self.query is None or self.card is None:
            raise BadQuestion("Groups of SQL stand in the text.", hint="Write GROUP BY.")
        listed = [group.name if isinstance(group, Column) else group for group in groups]
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
        return text + (f" by {', '.join(groups)}" if groups else "")

    def __repr__(self) -> str:
        return f"<question: {self}; nothing asked yet, use .preview() or .ask()>"

    # Flows

    def _parts(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Each combination of values that is asked for by itself, with its query."""
        assert self.query is not None
        combinations = list(itertools.product(*(self._values(name) for name in self.separate)))
        if len(combinations) > SEPARATE_MAX:
            raise BadQuestion(f"There are {len(combinations)} groups; at most {SEPARATE_MAX}.")
        parts = []
        for values in combinations:
            group = dict(zip(self.separate, values, strict=True))
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
        extra = {} if rows is None else {"assume": {"rows": rows}}
        if not self.separate:
            body = {**self.body(price), **extra}
            return (yield from question_flows.rehearse(body, str(self)))
        answers = []
        for body in self._bodies(price):
            answers.append((yield from question_flows.rehearse({**body, **extra}, str(self))))
        return _joined(self, [group for group, _ in self._parts()], answers)

    def preview_flow(self, price: Price | None, assumed: Assumed) -> Flow[Preview]:
        if self.separate:
            plan = yield from self._plan_flow(self._bodies(price))
            return joined_preview(str(self), plan.items)
        if price is None and self.price is None and assumed.epsilons:
            price = Price({"epsilon": wire_amount(assumed.epsilons[0])})
        reply = yield from question_flows.preview({**self.body(price), **assumed.members()})
        return read_preview(reply.json(), str(self))

    def _plan_flow(self, bodies: list[dict[str, Any]]) -> Flow[PlanPreview]:
        reply = yield from question_flows.preview(bodies)
        return read_previews(reply.json(), [str(self)] * len(bodies))


def named_columns(query: Mapping[str, Any]) -> list[str]:
    """The columns that a query names outside its filter."""
    names = [query[name] for name in COLUMN_FIELDS if query.get(name) is not None]
    names += query.get("features") or ()
    names += [one["column"] for one in query.get("of") or () if "column" in one]
    for side in ("numerator", "denominator"):
        part = query.get(side) or {}
        names += [part["column"]] if "column" in part else []
    return [str(name) for name in names]


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
        charged=_together(answers),
        reused=all(one.reused for one in answers),
        members={"made_up": last.made_up, "answers": [one.members for one in answers]},
    )


def _together(answers: list[Answer]) -> Charged:
    """Price of the answers together."""
    paid = [one.charged for one in answers if not one.reused]
    loss = together([(charged.loss, charged.cells) for charged in paid])
    price = together([(charged.price, charged.cells) for charged in paid])
    return Charged(loss, price, answers[-1].charged.accounts, None)
