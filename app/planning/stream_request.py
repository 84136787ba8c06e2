"""Stream request: priced in full from public facts, before the first ask."""

import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.accounting.loss import Loss
from app.data.card import EPOCHS_MAX, Card, Dataset
from app.errors import Invalid
from app.mechanisms.streams import above_threshold, tree_counter
from app.mechanisms.streams.above_threshold import AboveThreshold
from app.mechanisms.streams.tree_counter import TreeCounter
from app.planning.cells import ChargedCells, cell_labels, cells_to_charge
from app.planning.error_in_words import comparison_error, running_error
from app.planning.request import Epsilon, exact_delta
from app.queries.filters import Filter, resolve
from app.queries.tally import CountRows, Tally

CROSSINGS_MAX = 10_000
ASKS_MAX = 1_000_000
THRESHOLD_MAX = 1 << 53
POINTER = "/stream"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AboveThresholdStream(_Frozen):
    """Answers for each count whether it reaches `threshold`, until `crossings` have, or after
    `asks_max` asks."""

    kind: Literal["above_threshold"]
    threshold: Annotated[int, Field(ge=-THRESHOLD_MAX, le=THRESHOLD_MAX)]
    crossings: Annotated[int, Field(ge=1, le=CROSSINGS_MAX)]
    asks_max: Annotated[int, Field(ge=1, le=ASKS_MAX)]


class RunningCountStream(_Frozen):
    """Counts rows that meet the filter up to the newest epoch, once for each epoch that has
    arrived.

    It ends at epoch `epochs_max`."""

    kind: Literal["running_count"]
    where: Filter | None = None
    epochs_max: Annotated[int, Field(ge=1, le=EPOCHS_MAX)]


class StreamPrivacy(_Frozen):
    """Price of the whole stream: `epsilon`, or for a running count `rho`, with Gaussian noise.

    A `delta` beside rho makes a promise that `approximate` accounts can count."""

    epsilon: Epsilon | None = None
    rho: Epsilon | None = None
    delta: Annotated[Decimal, BeforeValidator(exact_delta)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("give exactly one of epsilon and rho")
        if self.delta is not None and self.rho is None:
            raise ValueError("delta is allowed only with rho")
        return self


class Opening(_Frozen):
    """One stream about one dataset."""

    dataset: Annotated[str, Field(min_length=1, max_length=200)]
    stream: Annotated[AboveThresholdStream | RunningCountStream, Field(discriminator="kind")]
    privacy: StreamPrivacy
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95

    @property
    def fresh(self) -> bool:
        """True: every opening is a new stream, and two streams must not share noise."""
        return True


Counter = AboveThreshold | TreeCounter


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A stream with its price, in the form a charge needs."""

    opening: Opening
    counter: Counter
    loss: Loss
    theorem: str
    digest: str
    charged_cells: ChargedCells
    cells_shown: list[Any] | None
    record: dict[str, Any]
    expected_error: dict[str, Any]
    mechanism: dict[str, Any]  # description of the mechanism for the analyst
    tally: Tally  # the rows that may count

    @property
    def asks_max(self) -> int | None:
        return self.counter.asks_max if isinstance(self.counter, AboveThreshold) else None

    @property
    def crossings(self) -> int | None:
        return self.counter.crossings if isinstance(self.counter, AboveThreshold) else None


class StreamPlanner:
    """Plans openings; nothing is cached, because openings are rare."""

    def plan(
        self,
        analyst_id: str,
        question: Opening,
        dataset: Dataset,
        text: str,
        currencies: frozenset[str],
    ) -> StreamPlan:
        """Plan an opening. Raises Invalid, with the field, if the card does not allow it."""
        stream = question.stream
        arrived = dataset.version.number
        if isinstance(stream, RunningCountStream) and stream.epochs_max < arrived:
            rule = "must be at least the number of epochs that have arrived (the dataset's version)"
            raise Invalid.field(f"{POINTER}/epochs_max", rule)
        return plan_stream(question, dataset.card)

    def kept(
        self, analyst_id: str, dataset: Dataset, text: str, currencies: frozenset[str]
    ) -> StreamPlan | None:
        return None


def _digest(members: list[Any]) -> str:
    return hashlib.sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()


def plan_stream(opening: Opening, card: Card) -> StreamPlan:
    stream, privacy = opening.stream, opening.privacy
    where = None
    counter: Counter
    if isinstance(stream, AboveThresholdStream):
        if privacy.epsilon is None:
            raise Invalid.field(
                "/privacy/rho", "must be absent: give an epsilon, as this noise has no better rho"
            )
        counter, loss = above_threshold.prepare(
            card,
            threshold=stream.threshold,
            crossings=stream.crossings,
            asks_max=stream.asks_max,
            epsilon=privacy.epsilon,
        )
        theorem = above_threshold.THEOREM
        error = comparison_error(counter.within(opening.confidence), opening.confidence)
    else:
        where = resolve(stream.where, card, f"{POINTER}/where")
        counter, loss = tree_counter.prepare(
            card,
            epochs_max=stream.epochs_max,
            epsilon=privacy.epsilon,
            rho=privacy.rho,
            delta=privacy.delta,
        )
        theorem = tree_counter.THEOREM
        most = (stream.epochs_max + 1).bit_length() - 1  # nodes of one answer
        error = running_error(counter.half_width(most, opening.confidence), opening.confidence)
    described = counter.describe()
    canonical = stream.model_dump(mode="json", by_alias=True)
    tally = Tally(where, (), (CountRows(),))
    charged_cells = cells_to_charge(tally, card)
    cells = charged_cells.cells
    labels = cell_labels(card)
    price = [loss.epsilon, loss.delta, loss.rho]
    return StreamPlan(
        opening=opening,
        counter=counter,
        loss=loss,
        theorem=theorem,
        digest=_digest([canonical, described, price]),
        charged_cells=charged_cells,
        cells_shown=None if cells is None else [labels[cell] for cell in cells],
        record={"stream": stream.kind, "mechanism": stream.kind, "parameters": described},
        expected_error=error,
        mechanism={**described, "expected_error": error},
        tally=tally,
    )
