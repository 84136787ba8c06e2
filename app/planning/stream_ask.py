"""What is asked of an open stream, checked against its opening and the card."""

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.streams.above_threshold import AboveThreshold
from app.mechanisms.streams.tree_counter import TreeCounter
from app.planning.stream_request import POINTER, AboveThresholdStream, Counter, Opening
from app.queries.filters import Filter, resolve
from app.queries.tally import Condition, CountRows, Tally


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class AskedCount(_Frozen):
    """How many rows meet the filter."""

    kind: Literal["count"]
    where: Filter | None = None


class Ask(_Frozen):
    """One ask: of an `above_threshold` stream the `query` whose count is compared, of a
    `running_count` nothing."""

    query: AskedCount | None = None


@dataclass(frozen=True, slots=True)
class AskPlan:
    """What to count, and what to do with it."""

    counter: Counter
    tally: Tally
    confidence: float
    epochs_max: int | None


def plan_ask(opening_text: str, parameters: str, ask: Ask, card: Card) -> AskPlan:
    """`opening_text` and `parameters` are the stream's, as stored: it is asked with the noise that
    it was charged for. Raises Invalid, naming the field, for what this stream is not asked."""
    opening = Opening.model_validate(json.loads(opening_text))
    stream, noise = opening.stream, json.loads(parameters)
    if isinstance(stream, AboveThresholdStream):
        if ask.query is None:
            raise Invalid.field("/query", "this field is needed: what an above_threshold compares")
        scales = noise["sensitivity"], noise["threshold_scale"], noise["count_scale"]
        above = AboveThreshold(stream.threshold, stream.crossings, stream.asks_max, *scales)
        where = resolve(ask.query.where, card, "/query/where")
        return AskPlan(above, _rows(where), opening.confidence, None)
    if ask.query is not None:
        raise Invalid.field("/query", "a running_count is asked nothing: leave it out")
    horizon = stream.epochs_max
    tree = TreeCounter(horizon, noise["sensitivity"], noise["noise"], noise["scale"])
    where = resolve(stream.where, card, f"{POINTER}/where")
    return AskPlan(tree, _rows(where), opening.confidence, horizon)


def _rows(where: Condition | None) -> Tally:
    return Tally(where, (), (CountRows(),))
