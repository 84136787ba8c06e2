"""Query request: which dataset, which query, how much noise."""

import math
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from app.accounting.units import PICO, UNITS_MAX
from app.data.card import ROWS_MAX
from app.mechanisms.learning.gradient_descent import STEPS_MAX
from app.mechanisms.smooth_sensitivity.pure_noise import DEGREES_MAX
from app.queries import Query
from app.queries.ranks.quantile import Share


def exact_amount(value: object) -> Decimal:
    """A loss from a JSON number or decimal text, exactly. JSON numbers arrive as Decimal or int."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("must be a number, or a decimal text such as '0.1'")
    text = getattr(value, "text", None) or str(value)  # a JSON number keeps its text
    if len(text) > 60 or not set(text) <= set("0123456789.eE+-"):
        raise ValueError("must be a number, or a decimal text such as '0.1'")
    try:
        amount = Decimal(text)
    except ArithmeticError:
        raise ValueError("must be a number, or a decimal text such as '0.1'") from None
    if amount <= 0:
        raise ValueError("must be greater than zero")
    if isinstance(value, float) and amount != Decimal(repr(float(value))):
        raise ValueError("has more digits than a JSON number holds: send it as a decimal text")
    return amount


def exact_epsilon(value: object) -> Decimal:
    amount = exact_amount(value)
    if not Decimal(1) / PICO <= amount <= Decimal(UNITS_MAX) / PICO:
        raise ValueError("must be between 1e-12 and 9223372")
    return amount


Epsilon = Annotated[
    Decimal,
    BeforeValidator(exact_epsilon),
    Field(json_schema_extra={"examples": [0.1, "0.1"]}),
]


def exact_delta(value: object) -> Decimal:
    amount = exact_amount(value)
    if not Decimal("1e-18") <= amount < 1:
        raise ValueError("must be at least 1e-18 and less than 1")
    return amount


CONFIDENCE_MIN, CONFIDENCE_MAX = 0.001, 1.0 - 1e-9  # beyond, floats cannot resolve tails
Confidence = Annotated[float, Field(ge=CONFIDENCE_MIN, le=CONFIDENCE_MAX)]


def as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def as_width(value: object) -> object:
    """A half width as a JSON number, or as decimal text.

    Text becomes the nearest float, or the next one below if the nearest is wider than the text."""
    if not isinstance(value, str):
        return as_float(value)
    amount = exact_amount(value)
    width = float(amount)
    exact = math.isinf(width) or Decimal(repr(width)) <= amount
    return width if exact else math.nextafter(width, 0.0)


HalfWidth = Annotated[
    float,
    BeforeValidator(as_width),
    Field(gt=0, le=1e18),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": 1e18},
                {"type": "string", "pattern": r"^[0-9.eE+-]{1,60}$"},
            ],
            "examples": [100, "0.1"],
        }
    ),
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Privacy(_Frozen):
    """Loss the query may cost, or accuracy its answer must have.

    Exactly one of `epsilon` (with `delta`, for mechanisms that need one), `rho` and
    `half_width`. For `half_width` the planner charges the least loss that promises it. For a
    selection `half_width` is the distance to the best."""

    epsilon: Epsilon | None = None
    delta: Annotated[Decimal, BeforeValidator(exact_delta)] | None = None
    rho: Epsilon | None = None
    half_width: HalfWidth | None = None
    confidence: Confidence | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = [w for w in (self.epsilon, self.rho, self.half_width) if w is not None]
        if len(ways) != 1:
            raise ValueError("give exactly one of epsilon, rho and half_width")
        if self.confidence is not None and self.half_width is None:
            raise ValueError("confidence is allowed only with half_width")
        return self


class Mechanism(_Frozen):
    """The mechanism to use. By default the planner chooses the one with the least expected error
    that the accounts can pay for.

    `noise` is required for `noisy_max`, and optional for `stability_histogram`."""

    kind: Literal[
        "laplace",
        "gaussian",
        "permute_and_flip",
        "exponential",
        "noisy_max",
        "randomized_response",
        "stability_histogram",
        "partition_selection",
    ]
    noise: Literal["exponential", "laplace", "gumbel", "gaussian"] | None = None

    @model_validator(mode="after")
    def _noise_of_its_kind(self) -> Self:
        if self.kind == "stability_histogram":
            if self.noise not in (None, "laplace", "gaussian"):
                raise ValueError("the noise of a stability_histogram must be laplace or gaussian")
        elif (self.noise is not None) != (self.kind == "noisy_max"):
            raise ValueError("noise is required for noisy_max and not allowed for this mechanism")
        elif self.noise == "gaussian":
            raise ValueError("the noise of a noisy_max must be exponential, laplace or gumbel")
        return self


DatasetName = Annotated[str, Field(min_length=1, max_length=200)]
SQL_CHARACTERS_MAX = 10_000
Positive = Annotated[float, BeforeValidator(as_float), Field(ge=1e-9, le=1e9)]


class GradientDescent(_Frozen):
    """Gradient descent with noise, for regressions.

    Each step uses all rows, or a sample to which each row belongs with probability
    `sampling_rate`. `expected_rows` is a public number of rows to divide by, if the card has
    none; by default the number is released with noise."""

    kind: Literal["noisy_gradient_descent"]
    steps: Annotated[int, Field(ge=1, le=STEPS_MAX)] | None = None
    clipping_norm: Positive | None = None
    learning_rate: Positive | None = None
    sampling_rate: Annotated[float, BeforeValidator(as_float), Field(ge=1e-9, le=1.0)] | None = None
    expected_rows: Annotated[int, Field(ge=1, le=ROWS_MAX)] | None = None


class ProposeTestRelease(_Frozen):
    """Noise for a proposed bound on how far one person can move the statistic of this table.

    The answer is `"withheld"` if a noisy test does not find the table safe for the bound.
    Without `bound` one is chosen privately, for `proposal_share` of the loss. `test_share` is
    the test's part."""

    kind: Literal["propose_test_release"]
    bound: Annotated[float, BeforeValidator(as_float), Field(gt=0, le=1e18)] | None = None
    noise: Literal["laplace", "gaussian"] | None = None
    test_share: Share | None = None
    proposal_share: Share | None = None

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.bound is not None and self.proposal_share is not None:
            raise ValueError("proposal_share is not allowed with a bound")
        if (self.test_share or 0) + (self.proposal_share or 0) >= 1:
            raise ValueError("test_share and proposal_share must add up to less than 1")
        return self


class StableValue(_Frozen):
    """The exact outcome, or `"withheld"` if a noisy test does not find it stable against any one
    person.

    `ordered` is for `top_k`: `true` for the best first; by default a set, in the card's order."""

    kind: Literal["stable_value"]
    ordered: bool = False


class NoisyBound(_Frozen):
    """A noisy bound on how far one person can move the statistic of this table, and noise for it.

    For triangles. `bound_share` is the bound's part of the loss."""

    kind: Literal["noisy_bound"]
    bound_share: Share | None = None


class SmoothSensitivity(_Frozen):
    """Noise scaled to the smooth sensitivity of a median, quantile, min, max, iqr, trimmed_mean or
    of triangles.

    Parameters that are absent are chosen from the price alone, for the least noise on evenly
    spread values. `gamma` is for `cauchy`, `degrees` for `student_t`, `sigma` for the last
    three. `interval_epsilon` is the part of epsilon that pays for an interval."""

    kind: Literal["smooth_sensitivity"]
    noise: (
        Literal[
            "student_t",
            "cauchy",
            "laplace",
            "gaussian",
            "laplace_log_normal",
            "uniform_log_normal",
            "arsinh_normal",
        ]
        | None
    ) = None
    beta: Annotated[float, BeforeValidator(as_float)] | None = None
    gamma: Annotated[float, BeforeValidator(as_float)] | None = None
    degrees: Annotated[int, Field(ge=1, le=DEGREES_MAX)] | None = None
    sigma: Annotated[float, BeforeValidator(as_float)] | None = None
    interval_epsilon: Epsilon | None = None


class _Terms(_Frozen):
    """Terms of an answer, common to all queries."""

    privacy: Privacy
    mechanism: (
        Annotated[
            Mechanism
            | GradientDescent
            | SmoothSensitivity
            | NoisyBound
            | ProposeTestRelease
            | StableValue,
            Field(discriminator="kind"),
        ]
        | None
    ) = None
    confidence: Confidence = 0.95
    fresh: bool = False

    @model_validator(mode="before")
    @classmethod
    def _one_confidence(cls, sent: Any) -> Any:
        """Default the answer's confidence to that of the requested accuracy."""
        privacy = sent.get("privacy") if isinstance(sent, dict) else None
        promised = privacy.get("confidence") if isinstance(privacy, dict) else None
        known = isinstance(promised, float) and CONFIDENCE_MIN <= promised <= CONFIDENCE_MAX
        if known and "confidence" not in sent:
            return {**sent, "confidence": promised}
        return sent


class Question(_Terms):
    """One query about one dataset."""

    dataset: DatasetName
    query: Query


class SqlQuestion(_Terms):
    """A query in SQL, which names the dataset too.

    It is translated to a `Question` before any other check (`sql/translate.py`)."""

    sql: Annotated[str, Field(min_length=1, max_length=SQL_CHARACTERS_MAX)]
    dataset: DatasetName | None = None
