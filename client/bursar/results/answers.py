"""Answers: a noisy value, its interval, what it cost, and the receipt in the ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bursar.ask.amounts import Loss
from bursar.errors import BadQuestion
from bursar.results.show.answer import answer_html, answer_text
from bursar.results.tables import Row, Table, rows_of


@dataclass(frozen=True)
class Interval:
    """Where the answer without noise lies, with a probability of `confidence`.

    It covers the noise, and neither sampling error nor values that were clamped or missing.
    """

    low: float
    high: float
    confidence: float
    covers: str = "noise"


@dataclass(frozen=True)
class Receipt:
    """The charge in the ledger: number of its entry, and the hash of the chain there."""

    entry: int
    hash: str


@dataclass(frozen=True)
class AccountCharge:
    """A balance right after the charge. The balance of `*` is hidden from analysts."""

    holder: str
    spent: Loss | None
    remaining: Loss | None


@dataclass(frozen=True)
class Charged:
    """The price of an answer, and the accounts that paid it.

    A rehearsal is charged nothing; its `price` is what an answer would cost.
    """

    loss: Loss
    price: Loss
    accounts: tuple[AccountCharge, ...] = ()
    cells: tuple[Any, ...] | None = None

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> "Charged":
        accounts = tuple(
            AccountCharge(each["holder"], Loss.read(each["spent"]), Loss.read(each["remaining"]))
            for each in members.get("accounts") or ()
        )
        cells = members.get("cells")
        loss = Loss.read(members)
        assert loss is not None
        price = Loss.read(members.get("price")) or loss
        return cls(loss, price, accounts, None if cells is None else tuple(cells))

    def __str__(self) -> str:
        return str(self.loss)


@dataclass(frozen=True, repr=False)
class Answer(Table):
    """The answer of one question.

    `status` is `answered`, `withheld` (charged, without a value) or `rehearsed` (made-up rows,
    nothing charged). `reused` says that the same question was answered before, for free.
    """

    question: str  # for people
    status: str
    value: Any
    interval: Interval | None
    charged: Charged
    mechanism: Mapping[str, Any]
    theorem: str
    receipt: Receipt | None
    id: str | None
    reused: bool = False
    remaining: Loss | None = None  # of your account now
    used: float | None = None  # share of your account that is used now, 0 to 1
    members: Mapping[str, Any] = field(default_factory=dict)  # everything that the server sent

    @property
    def made_up(self) -> bool:
        """True for a rehearsal: the rows were made up from the public card."""
        return bool(self.members.get("made_up"))

    def rows(self) -> list[Row]:
        """The rows of the value. Those of a rehearsal say that they are made up."""
        rows = rows_of(self.value, self.members.get("interval"))
        return [{**row, "made_up": True} for row in rows] if self.made_up else rows

    def full(self) -> dict[str, Any]:
        """Everything as one JSON object: question, rows, and what the server sent."""
        return {"question": self.question, "rows": self.rows(), **self.members}

    def __float__(self) -> float:
        if isinstance(self.value, (int, float)) and not isinstance(self.value, bool):
            return float(self.value)
        raise BadQuestion("This answer is not one number.", hint="Use .rows() or .to_pandas().")

    def __repr__(self) -> str:
        return answer_text(self)

    def _repr_html_(self) -> str:
        return answer_html(self)


def read_answer(members: Mapping[str, Any], question: str, headers: Mapping[str, str]) -> Answer:
    """The answer in a reply of the server."""
    interval, receipt = members.get("interval"), members.get("receipt")
    read_interval = None
    if interval is not None:
        ends = interval["low"], interval["high"], interval["confidence"]
        read_interval = Interval(*ends, interval.get("covers", "noise"))
    return Answer(
        question=question,
        status=members["status"],
        value=members.get("value"),
        interval=read_interval,
        charged=Charged.read(members["charged"]),
        mechanism=members["mechanism"],
        theorem=members.get("theorem", ""),
        receipt=None if receipt is None else Receipt(receipt["entry"], receipt["hash"]),
        id=members.get("id"),
        reused="bursar-reused" in headers,
        remaining=read_remaining(headers),
        used=float(headers["bursar-used"].strip('"')) if "bursar-used" in headers else None,
        members=dict(members),
    )


def read_remaining(headers: Mapping[str, str]) -> Loss | None:
    """Your balance now, from the header `Bursar-Remaining`: `epsilon="2.9", delta="1e-6"`."""
    text = headers.get("bursar-remaining")
    if text is None:
        return None
    pairs = (part.partition("=") for part in text.split(","))
    return Loss.read({name.strip(): float(value.strip(' "')) for name, _, value in pairs})
