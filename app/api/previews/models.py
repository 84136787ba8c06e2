"""Wire models of previews."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from app.actions.asking.paying_accounts import Payer
from app.api.budgets import Promise
from app.api.http.wire import AmountResponse, LossResponse
from app.planning.preview_request import AssumedQuestion, AssumedSqlQuestion
from app.planning.request import Epsilon

PREVIEWS_MAX = 100
EPSILONS_MAX = 50
Many = Field(min_length=1, max_length=PREVIEWS_MAX)
Holder = Annotated[str, Field(min_length=1, max_length=300)]
Epsilons = Annotated[list[Epsilon], Field(min_length=1, max_length=EPSILONS_MAX)]


class _Paid(BaseModel):
    """Who would pay: `as` an existing holder (an analyst, `group:name` or `*`), or a made-up
    `account` with nothing spent. Without both, the caller."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    as_: Annotated[Holder | None, Field(alias="as")] = None
    account: Promise | None = None

    def payer(self) -> Payer:
        if self.account is None:
            return Payer(self.as_)
        return Payer(self.as_, self.account.currency, self.account.wish())


class PreviewQuestion(_Paid, AssumedQuestion):
    """One question to preview. `epsilons`: its price and error at each of them, as `curve`."""

    epsilons: Epsilons | None = None

    def question(self) -> AssumedQuestion:
        names = AssumedQuestion.model_fields
        return AssumedQuestion.model_construct(
            self.model_fields_set & set(names), **{name: getattr(self, name) for name in names}
        )

    def curve(self) -> tuple[Decimal, ...]:
        return tuple(self.epsilons or ())


class PreviewSqlQuestion(_Paid, AssumedSqlQuestion):
    """The same in SQL."""

    epsilons: Epsilons | None = None


class PreviewList(_Paid):
    """Questions to preview in order, with one payer for all."""

    questions: Annotated[list[AssumedQuestion], Many]


class PreviewSqlList(_Paid):
    """The same, with questions in SQL."""

    questions: Annotated[list[AssumedQuestion | AssumedSqlQuestion], Many]


def _form(sent: Any) -> str:
    if isinstance(sent, list):
        return "a list of questions"
    with_payer = isinstance(sent, dict) and "questions" in sent
    return "questions with a payer" if with_payer else "one question"


Previewed = PreviewQuestion | PreviewList | list[AssumedQuestion]
PREVIEWED = Annotated[
    Annotated[PreviewQuestion, Tag("one question")]
    | Annotated[PreviewList, Tag("questions with a payer")]
    | Annotated[list[AssumedQuestion], Many, Tag("a list of questions")],
    Discriminator(_form),
]
DOCUMENTED = (
    PreviewQuestion
    | PreviewSqlQuestion
    | PreviewSqlList
    | Annotated[list[AssumedQuestion | AssumedSqlQuestion], Many]
)


class RehearsalCharge(LossResponse):
    """Nothing was charged: epsilon and delta are 0. `price` is what an answer would cost."""

    cells: list[Any] | None
    accounts: list[Any]
    price: LossResponse


class RehearsalResponse(BaseModel):
    """An answer about made-up rows. It has no id and no receipt, and nothing was charged.
    `outcome` is the status that an answer would have."""

    id: None
    status: Literal["rehearsed"]
    made_up: Literal[True]
    rows: int
    outcome: Literal["answered", "withheld"]
    value: Any
    mechanism: dict[str, Any]
    interval: dict[str, Any] | None
    bound: float | None = None
    padding: str | None = None
    charged: RehearsalCharge
    theorem: str
    receipt: None


class ExpectedErrorResponse(BaseModel):
    """How far noise moves the answer, with this confidence. `half_width` is null if nothing can be
    said. `promise`: it holds for all data; otherwise it is an estimate. `unit` is one of rows,
    persons, triangles, column, column_squared (of `column`), share, ranks, score, factor, answer,
    mixed. `parts` has the errors of several aggregates. Some mechanisms add figures of their
    own."""

    model_config = ConfigDict(extra="allow")

    half_width: float | None
    unit: Literal[
        "rows",
        "persons",
        "triangles",
        "column",
        "column_squared",
        "share",
        "ranks",
        "score",
        "factor",
        "answer",
        "mixed",
    ]
    column: str | None = None
    confidence: float
    promise: bool
    text: str
    parts: list[dict[str, Any]] | None = None


class CurvePoint(BaseModel):
    """The question at one epsilon, by itself."""

    epsilon: float
    epsilon_exact: str | None = None
    price: LossResponse
    expected_error: ExpectedErrorResponse
    fits: bool


class PreviewResponse(BaseModel):
    """Price and error of a question. `questions_left`, with `as` or `account`: how often it could
    be asked. `curve` has a point for each of `epsilons`. `remaining_after` is null for `*`, whose
    balance analysts do not see."""

    dataset: str
    kind: str
    price: LossResponse
    account_price: dict[str, Any] | None
    mechanism: dict[str, Any]
    alternatives: list[dict[str, Any]]
    theorem: str
    expected_error: ExpectedErrorResponse
    groups: int | None
    cells: list[Any] | None
    composition: str
    reused: bool
    fits: bool
    refusal: dict[str, Any] | None
    remaining_after: AmountResponse | None
    largest_epsilon: float
    largest_epsilon_exact: str | None = None
    questions_left: int | None = None
    curve: list[CurvePoint] | None = None


class PreviewListResponse(BaseModel):
    """Previews in order; `stops_at` is the index of the first that would be refused."""

    items: list[PreviewResponse]
    fits: bool
    stops_at: int | None
