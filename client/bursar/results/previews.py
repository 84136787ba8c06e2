"""Previews: what a question would cost, and how exact it would be. They are free."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bursar.ask.amounts import Loss
from bursar.ask.groups import together
from bursar.results.show.preview import plan_html, plan_text, preview_html, preview_text
from bursar.results.tables import Row, Table

WIRE_ROWS = 'Say assume: {"rows": n}'  # the server's advice, which is about JSON


@dataclass(frozen=True)
class ExpectedError:
    """The error that the noise will cause, before anything is asked.

    `promise` is true where it holds for every table. Otherwise it is an estimate for the number of
    rows that you assumed, or nothing can be said.
    """

    half_width: float | None
    unit: str | None
    confidence: float | None
    promise: bool
    text: str

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> "ExpectedError":
        return cls(
            members.get("half_width"),
            members.get("unit"),
            members.get("confidence"),
            bool(members.get("promise")),
            str(members.get("text", "")).replace(WIRE_ROWS, "Say rows=N"),
        )


@dataclass(frozen=True, repr=False)
class Preview:
    """The preview of one question."""

    question: str
    price: Loss
    expected_error: ExpectedError
    fits: bool
    reused: bool
    largest_epsilon: float | None
    mechanism: Mapping[str, Any]
    alternatives: tuple[Mapping[str, Any], ...]
    curve: tuple[Mapping[str, Any], ...]
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def questions_left(self) -> int | None:
        """How often it could be asked, if the preview named a holder or an account."""
        left = self.members.get("questions_left")
        return None if left is None else int(left)

    @property
    def refusal(self) -> Mapping[str, Any] | None:
        """Why an account would refuse, or None."""
        return self.members.get("refusal")

    def __repr__(self) -> str:
        return preview_text(self)

    def _repr_html_(self) -> str:
        return preview_html(self)


def read_preview(members: Mapping[str, Any], question: str) -> Preview:
    price = Loss.read(members["price"])
    assert price is not None
    return Preview(
        question=question,
        price=price,
        expected_error=ExpectedError.read(members["expected_error"]),
        fits=bool(members["fits"]),
        reused=bool(members["reused"]),
        largest_epsilon=members.get("largest_epsilon"),
        mechanism=members["mechanism"],
        alternatives=tuple(members.get("alternatives") or ()),
        curve=tuple(members.get("curve") or ()),
        members=members,
    )


def joined_preview(question: str, items: Sequence[Preview], *, replace_one: bool) -> Preview:
    """Previews of single groups as one. Its error is the largest of any group."""
    worst = max(items, key=lambda item: item.expected_error.half_width or 0.0)
    refused = next((item for item in items if not item.fits), worst)
    new = [item for item in items if not item.reused]
    return replace(
        refused,
        question=question,
        price=together(
            [(item.price, item.members.get("cells")) for item in new], replace_one=replace_one
        ),
        expected_error=worst.expected_error,
        reused=not new,
        members={
            **refused.members,
            "questions_left": None if replace_one else _all_left(items),
            "items": [item.members for item in items],
        },
    )


def _all_left(items: Sequence[Preview]) -> int | None:
    """How often all groups could be asked, where each is charged to cells of its own."""
    cells = [repr(cell) for item in items for cell in item.members.get("cells") or ()]
    left = [item.questions_left for item in items if item.questions_left is not None]
    alone = all(item.members.get("cells") for item in items) and len(cells) == len(set(cells))
    return min(left, default=None) if alone and len(left) == len(items) else None


def point_of(epsilon: float | str, preview: Preview) -> Mapping[str, Any]:
    """A preview as a point of a curve of error against price."""
    error = {**preview.members["expected_error"], "half_width": preview.expected_error.half_width}
    price = {"epsilon": preview.price.epsilon, "delta": preview.price.delta}
    return {"epsilon": epsilon, "price": price, "expected_error": error, "fits": preview.fits}


@dataclass(frozen=True, repr=False)
class PlanPreview(Table):
    """A list of questions, priced in order. `stops_at` is the first that would be refused."""

    items: tuple[Preview, ...]
    stops_at: int | None

    @property
    def fits(self) -> bool:
        return self.stops_at is None

    def rows(self) -> list[Row]:
        return [
            {
                "question": item.question,
                "epsilon": item.price.epsilon,
                "delta": item.price.delta,
                "error": item.expected_error.half_width,
                "unit": item.expected_error.unit,
                "fits": item.fits,
            }
            for item in self.items
        ]

    def __repr__(self) -> str:
        return plan_text(self)

    def _repr_html_(self) -> str:
        return plan_html(self)


def read_previews(members: Mapping[str, Any], questions: list[str]) -> PlanPreview:
    items = zip(members["items"], questions, strict=True)
    return PlanPreview(tuple(read_preview(*pair) for pair in items), members["stops_at"])
