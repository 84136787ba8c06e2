"""Plan of a query: priced from public facts, before any row is read."""

import hashlib
import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from app.accounting.loss import Loss
from app.data.card import Card, Dataset
from app.errors import Invalid
from app.mechanisms.release import RandomSource, Release
from app.planning.cells import ChargedCells, cell_labels, cells_to_charge
from app.planning.mechanism_choice import choose, options
from app.planning.request import Question


@dataclass(frozen=True, slots=True)
class Plan:
    """A query with its mechanism and price, on one version of a dataset."""

    question: Question
    card: Card
    release: Release
    digest: str  # equal for equal query, mechanism and price
    charged_cells: ChargedCells  # the cells it is charged to
    mechanism: dict[str, Any]  # description of the mechanism for the analyst
    mechanism_text: str  # the same as JSON text
    record: dict[str, Any]  # description of the mechanism in the ledger entry

    @property
    def loss(self) -> Loss:
        return self.release.loss

    @property
    def theorem(self) -> str:
        return self.release.theorem

    @property
    def cells_shown(self) -> list[Any] | None:
        """Labels of the charged cells; None for the whole dataset."""
        if self.charged_cells.cells is None:
            return None
        labels = cell_labels(self.card)
        return [labels[cell] for cell in self.charged_cells.cells]

    def answer(self, exact: Any, noise: RandomSource) -> dict[str, Any]:
        """Value and interval in the form the analyst reads; everything in it is released."""
        question = self.question
        return self.release.answer(
            exact, noise, query=question.query, card=self.card, confidence=question.confidence
        )


KEPT_TEXT_MAX = 4096
KEPT_SIZE_MAX = 3000


PlanKey = tuple[str, str, int, str, frozenset[str]]


class Planner:
    """Makes plans, and caches each analyst's latest: an equal query on an equal card has the same
    plan.

    No analyst gets a cached plan of another: a fast reply would reveal that the other had sent
    the same query.

    A registered card never changes, so the dataset's identifier stands for it. The number of
    epochs may decide the cells, so it is part of the key."""

    def __init__(self, plans_max: int = 2048, groups_max: int = 4_000_000) -> None:
        self._plans: OrderedDict[PlanKey, Plan] = OrderedDict()
        self._plans_max = plans_max
        self._groups_max = groups_max
        self._lock = threading.Lock()

    def plan(
        self,
        analyst_id: str,
        question: Question,
        dataset: Dataset,
        text: str,
        currencies: frozenset[str] = frozenset(),
    ) -> Plan:
        """Price a query. Raises Invalid, with the field, if the card does not allow it.

        `text` is the query's JSON: in Python a query about 1, 1.0 or True is equal. `currencies`
        are those of the accounts that will pay."""
        plan = self.kept(analyst_id, dataset, text, currencies)
        if plan is None:
            plan = make_plan(question, dataset.card, currencies, dataset.version.number)
            plan.release.warm(question.confidence)
            if plan.release.tally.group_count() > self._groups_max:
                rule = f"at most {self._groups_max} groups are allowed on this server"
                raise Invalid.field("/query", rule)
            kept = len(text) <= KEPT_TEXT_MAX and plan.release.tally.size() <= KEPT_SIZE_MAX
            if kept:  # a short text can ask for a large grid; cached plans must not fill the memory
                with self._lock:
                    self._plans[_key(analyst_id, dataset, text, currencies)] = plan
                    if len(self._plans) > self._plans_max:
                        self._plans.popitem(last=False)
        return plan

    def kept(
        self, analyst_id: str, dataset: Dataset, text: str, currencies: frozenset[str]
    ) -> Plan | None:
        """The analyst's cached plan, if any: making one may take milliseconds."""
        with self._lock:
            return self._plans.get(_key(analyst_id, dataset, text, currencies))


def _key(analyst_id: str, dataset: Dataset, text: str, currencies: frozenset[str]) -> PlanKey:
    return analyst_id, dataset.id, dataset.version.number, text, currencies


def make_plan(
    question: Question,
    card: Card,
    currencies: frozenset[str] = frozenset(),
    epochs: int | None = None,
) -> Plan:
    candidates = options(question, card, currencies)
    return plan_of(question, card, choose(candidates, question, currencies).release, epochs)


def plan_of(question: Question, card: Card, release: Release, epochs: int | None = None) -> Plan:
    canonical = question.model_dump(mode="json", by_alias=True, include={"query", "confidence"})
    mechanism = release.describe()
    promise = [release.loss.epsilon, release.loss.delta, release.loss.rho]
    text = json.dumps([canonical, mechanism, promise], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    record = {"query": question.query.kind, **release.ledger_entry()}
    charged_cells = cells_to_charge(release.tally, card, epochs)
    mechanism_text = json.dumps(
        mechanism, allow_nan=False, ensure_ascii=False, separators=(",", ":")
    )
    return Plan(question, card, release, digest, charged_cells, mechanism, mechanism_text, record)
