"""Asks to an open stream, checked against its opening and the card."""

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
    """Number of rows that meet the filter."""

    kind: Literal["count"]
    where: Filter | None = None


class Ask(_Frozen):
    """One ask: `query` is the count to compare, for an `above_threshold` stream; absent for a
    `running_count`."""

    query: AskedCount | None = None


@dataclass(frozen=True, slots=True)
class AskPlan:
    """The tally to count, and the counter that adds noise to it."""

    counter: Counter
    tally: Tally
    confidence: float
    epochs_max: int | None


def plan_ask(opening_text: str, parameters: str, ask: Ask, card: Card) -> AskPlan:
    """Plan an ask from the stored opening and parameters, with the noise that the stream paid for.

    Raises Invalid, with the field, if this stream does not accept the ask."""
    opening = Opening.model_validate(json.loads(opening_text))
    stream, noise = opening.stream, json.loads(parameters)
    if isinstance(stream, AboveThresholdStream):
        if ask.query is None:
            raise Invalid.field(
                "/query", "required: the count that an above_threshold stream compares"
            )
        scales = noise["sensitivity"], noise["threshold_scale"], noise["count_scale"]
        above = AboveThreshold(stream.threshold, stream.crossings, stream.asks_max, *scales)
        where = resolve(ask.query.where, card, "/query/where")
        return AskPlan(above, _rows(where), opening.confidence, None)
    if ask.query is not None:
        raise Invalid.field("/query", "must be absent: a running_count takes no query")
    horizon = stream.epochs_max
    tree = TreeCounter(horizon, noise["sensitivity"], noise["noise"], noise["scale"])
    where = resolve(stream.where, card, f"{POINTER}/where")
    return AskPlan(tree, _rows(where), opening.confidence, horizon)


def _rows(where: Condition | None) -> Tally:
    return Tally(where, (), (CountRows(),))
