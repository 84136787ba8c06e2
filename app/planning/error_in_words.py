"""Expected errors in the one shape of every preview: half width, unit, promise and a sentence.

Units: `rows`, `persons`, `triangles`, `column` and `column_squared` (of the member `column`),
`share` (of 1), `ranks`, `score`, `factor`, `answer` (the answer's own), and `mixed` (each part has
its own).
"""

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any

from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.release import Release
from app.planning.request import Question
from app.queries import Query
from app.queries.blocks.sample_aggregate import SampleAggregate
from app.queries.choices.mode import Mode, TopK
from app.queries.choices.price import Price
from app.queries.keys import Keys
from app.queries.randomized_column import RandomizedColumn
from app.queries.ranks.extremes import Max, Min
from app.queries.ranks.iqr import Iqr
from app.queries.ranks.quantile import Median, Quantile
from app.queries.ranks.trimmed_mean import TrimmedMean
from app.queries.sums.aggregates import Aggregates
from app.queries.sums.count import Count
from app.queries.sums.count_distinct import CountDistinct
from app.queries.sums.histogram import Histogram
from app.queries.sums.mean import Mean
from app.queries.sums.ratio import Ratio
from app.queries.sums.reciprocal import Reciprocal
from app.queries.sums.sum import Sum
from app.queries.sums.variance import Variance
from app.queries.triangles import Triangles
from app.queries.workloads.cdf import Cdf
from app.queries.workloads.workload import Workload

DIGITS = 4  # significant digits of a number in a sentence
SMALL, LARGE = Decimal("1e-6"), Decimal("1e15")  # beyond, a sentence has powers of ten
ASSUME = 'The error depends on the number of rows. Say assume: {"rows": n} to get an estimate.'
PARTS = "Each aggregate has an error of its own, under parts."
ANSWER = "the answer"


@dataclass(frozen=True, slots=True)
class Subject:
    """The number that noise changes, in words, and its unit."""

    words: str
    unit: str = "answer"
    column: str | None = None
    counted: str = "rows"  # what an assumed number counts

    def amount(self, half_width: float) -> str:
        text = rounded_up(half_width)
        match self.unit:
            case "rows" | "persons" | "triangles":
                return f"{text} {self.unit}"
            case "column":
                return f"{text} (in the unit of {self.column})"
            case "column_squared":
                return f"{text} (in the unit of {self.column}, squared)"
            case _:
                return text


def shown_error(release: Release, question: Question, rows: int | None = None) -> dict[str, Any]:
    """The expected error of a release, as a preview shows it."""
    error, confidence = release.expected_error(question.confidence, rows), question.confidence
    return error_of(error, question.query, confidence, grouped=bool(release.tally.groups))


def error_of(
    error: ExpectedError, query: Query, confidence: float, *, grouped: bool
) -> dict[str, Any]:
    if isinstance(query, Aggregates):
        shown = stated(error, Subject(ANSWER, "mixed"), confidence, PARTS)
        names = [part.model_dump() for part in query.of]
        errors = [
            error_of(part, alone, confidence, grouped=grouped)
            for part, alone in zip(error.parts, query.alone(), strict=True)
        ]
        parts = [{**name, **part} for name, part in zip(names, errors, strict=True)]
        return {**shown, "parts": parts}
    subject = _subject(query)
    if grouped and not isinstance(query, Histogram) and error.measured == "answer":
        words, counted = f"{subject.words} of each group", f"{subject.counted} in each group"
        subject = replace(subject, words=words, counted=counted)
    return stated(error, subject, confidence, _text(error, query, subject, confidence))


def stated(error: ExpectedError, subject: Subject, confidence: float, text: str) -> dict[str, Any]:
    unit = subject.unit if error.measured == "answer" else error.measured
    column = {"column": subject.column} if unit.startswith("column") else {}
    return {
        "half_width": error.half_width,
        "unit": unit,
        **column,
        "confidence": confidence,
        "promise": error.promise,
        "text": text,
        **error.details,
    }


def comparison_error(within: int, confidence: float) -> dict[str, Any]:
    """The error of a stream that compares counts with a threshold."""
    text = (
        f"With {percent(confidence)} confidence every answer is right about a count that is more "
        f"than {rounded_up(within)} rows away from the threshold."
    )
    return stated(ExpectedError(within), Subject(ANSWER, "rows"), confidence, text)


def running_error(half_width: int, confidence: float) -> dict[str, Any]:
    """The error of each answer of a running count."""
    error, subject = ExpectedError(half_width), Subject("each count", "rows")
    return stated(error, subject, confidence, _noise_text(error, subject, confidence))


def percent(confidence: float) -> str:
    return f"{float(f'{100 * confidence:.9g}'):.9g} %"


def rounded_up(number: float) -> str:
    """The number with a few digits, never less than it is."""
    exact = Decimal(str(number))
    step = Decimal(1).scaleb(min(0, exact.adjusted() - DIGITS + 1))
    shown = exact if exact == exact.to_integral_value() else exact.quantize(step, ROUND_CEILING)
    return f"{shown:,.3e}" if 0 < shown < SMALL or shown >= LARGE else f"{plain(shown):,f}"


def plain(number: Decimal) -> Decimal:
    """The number without zeros behind its point."""
    return (
        number.quantize(Decimal(1)) if number == number.to_integral_value() else number.normalize()
    )


def _text(error: ExpectedError, query: Query, subject: Subject, confidence: float) -> str:
    sure, half = f"With {percent(confidence)} confidence", error.half_width
    if isinstance(query, Keys):
        kept = error.details["kept_from"]
        return f"{sure} a text of {kept:,} persons is released; fewer persons make it less likely."
    if half is None and error.depends_on_rows:
        return ASSUME
    if half is None:
        reason = (error.reason or "it depends on the data").removeprefix("none: ")
        return f"No error is known beforehand: {reason}."
    if error.measured == "ranks":
        return (
            f"{sure} the chosen value is at most {rounded_up(half)} ranks further from the "
            "requested rank than the best candidate."
        )
    if error.measured == "factor":
        return (
            f"{sure} the noise changes {subject.words} by at most the factor {rounded_up(half)}, "
            "up or down."
        )
    if error.measured == "score":
        return _score_text(error, query, sure, half)
    return _noise_text(error, subject, confidence)


def _noise_text(error: ExpectedError, subject: Subject, confidence: float) -> str:
    assert error.half_width is not None
    changes = (
        f"ith {percent(confidence)} confidence the noise changes {subject.words} by at most "
        f"{subject.amount(error.half_width)}"
    )
    if error.rows is not None:
        return f"Estimate for {error.rows:,} {subject.counted}: w{changes}."
    return f"W{changes}{', unless the answer is withheld' if error.withholds else ''}."


def _score_text(error: ExpectedError, query: Query, sure: str, half: float) -> str:
    if error.withholds:
        lead = rounded_up(error.details["told_from"])
        return f"The answer is exact or withheld. {sure} it is released if its lead is {lead}."
    less = rounded_up(half)
    match query:
        case TopK():
            return (
                f"{sure} each chosen value has at most {less} rows fewer than the best one that "
                "was left."
            )
        case Price():
            return f"{sure} the chosen price earns at most {less} less than the best one."
        case SampleAggregate():
            return f"{sure} the chosen value has at most {less} votes fewer than the first one."
        case _:
            return f"{sure} the chosen value has at most {less} rows fewer than the first one."


def _subject(query: Query) -> Subject:
    match query:
        case Count():
            return Subject("the count", "rows")
        case CountDistinct():
            return Subject("the count", "persons")
        case Histogram():
            return Subject("the count of each bin", "rows")
        case Workload() | Cdf():
            return Subject("each count", "rows")
        case RandomizedColumn():
            return Subject("the count of each outcome", "rows")
        case Triangles():
            return Subject("the count", "triangles")
        case Sum():
            return Subject("the sum", "column", query.column)
        case Mean():
            counted = "rows" if query.per_person is None else "persons"
            return Subject("the mean", "column", query.column, counted)
        case Variance():
            return Subject("the variance", "column_squared", query.column)
        case Ratio():
            return Subject("the ratio", "share" if query.denominator is None else "answer")
        case Reciprocal():
            return Subject("the reciprocal")
        case Quantile() | Median() | Min() | Max() | Iqr() | TrimmedMean() | Price() | Mode():
            return Subject(ANSWER, "column", query.column)
        case _:
            return Subject(ANSWER)
