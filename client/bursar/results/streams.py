"""Replies about streams: their price, their state, and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bursar.ask.amounts import Loss
from bursar.results.answers import Charged, Interval, Receipt
from bursar.results.show import stream as shown


@dataclass(frozen=True, repr=False)
class StreamAnswer(shown.Shown):
    """One answer of a stream. A threshold stream sets `above`; a running count sets `value`."""

    id: str
    epoch: int
    above: bool | None
    value: int | None
    interval: Interval | None
    crossings_left: int | None
    asks_left: int | None

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> "StreamAnswer":
        interval = members.get("interval")
        ends = None
        if interval is not None:
            ends = Interval(interval["low"], interval["high"], interval["confidence"])
        return cls(
            members["id"],
            members["epoch"],
            members.get("above"),
            members.get("value"),
            ends,
            members.get("crossings_left"),
            members.get("asks_left"),
        )

    def __repr__(self) -> str:
        return shown.answer_text(self)


@dataclass(frozen=True, repr=False)
class StreamPreview(shown.Shown):
    """The price of opening a stream."""

    price: Loss
    fits: bool
    mechanism: Mapping[str, Any]
    members: Mapping[str, Any]

    def __repr__(self) -> str:
        return shown.preview_text(self)


@dataclass(frozen=True, repr=False)
class StreamState(shown.Shown):
    """A stream as the server has it."""

    id: str
    dataset: str
    kind: str
    status: str  # open, ended or closed
    crossings_left: int | None
    asks_left: int | None
    charged: Charged | None
    receipt: Receipt | None
    members: Mapping[str, Any]

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> "StreamState":
        charged, receipt = members.get("charged"), members.get("receipt")
        return cls(
            members["id"],
            members["dataset"],
            members["stream"]["kind"],
            members["status"],
            members.get("crossings_left"),
            members.get("asks_left"),
            None if charged is None else Charged.read(charged),
            None if receipt is None else Receipt(receipt["entry"], receipt["hash"]),
            members,
        )

    def __repr__(self) -> str:
        return shown.state_text(self)
