"""Plans: questions in order, priced together, so that nobody is surprised half way."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bursar.ask import question_flows
from bursar.ask.question import Assumed, Price, QuestionParts, listed
from bursar.errors import BadQuestion, BudgetExhausted
from bursar.http.flow import Flow
from bursar.results.answers import Answer
from bursar.results.previews import PlanPreview, read_previews

Q = TypeVar("Q", bound=QuestionParts)
QUESTIONS_MAX = 100


@dataclass(frozen=True, repr=False)
class PlanParts(Generic[Q]):
    """The questions of a plan."""

    questions: tuple[Q, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= QUESTIONS_MAX:
            raise BadQuestion(f"A plan has 1 to {QUESTIONS_MAX} questions.")
        if not all(isinstance(question, QuestionParts) for question in self.questions):
            raise BadQuestion("A plan takes questions.", hint="b.plan(q1, q2), not a list of them")

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        lines = [f"{number}. {question}" for number, question in enumerate(self.questions, 1)]
        return "\n".join(["Plan:", *lines, "Use .preview(epsilon=0.1) or .ask(epsilon=0.1)."])


def _price(question: QuestionParts, price: Price | None) -> Price | None:
    """A question's own price comes before the plan's."""
    return question.price or price


def plan_preview_flow(
    plan: PlanParts[Any], price: Price | None, assumed: Assumed | None = None
) -> Flow[PlanPreview]:
    bodies: list[dict[str, Any]] = []
    names: list[str] = []
    for question in plan.questions:
        own = _price(question, price)
        parts = question._bodies(own) if question.separate else [question.body(own)]
        bodies += parts
        names += [str(question)] * len(parts)
    reply = yield from question_flows.preview(listed(bodies, assumed or Assumed()))
    return read_previews(reply.json(), names)


def plan_flow(plan: PlanParts[Any], price: Price | None) -> Flow[list[Answer]]:
    preview = yield from plan_preview_flow(plan, price)
    if preview.stops_at is not None:
        refusal = preview.items[preview.stops_at].refusal or {}
        raise BudgetExhausted(402, {"type": "/problems/budget-exhausted", **refusal})
    answers = []
    for question in plan.questions:
        own = _price(question, price)
        answers.append((yield from question.ask_flow(own, fresh=False, key=None)))
    return answers
