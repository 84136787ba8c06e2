"""Expected error of an answer, from public facts alone: a bound, an estimate, or why there is none.

`planning/error_in_words.py` adds the unit and a sentence for people.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# Measure of the half width: the answer itself, its rank, the score of the chosen outcome, or a
# factor by which noise changes the answer either way.
ErrorUnit = Literal["answer", "ranks", "score", "factor"]


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """How far noise moves an answer, with the question's confidence."""

    half_width: int | float | None  # None if nothing can be said
    measured: ErrorUnit = "answer"
    promise: bool = True  # True if it holds for all data
    rows: int | None = None  # number of rows that an estimate assumes
    depends_on_rows: bool = False  # True if an assumed number of rows would give an estimate
    reason: str | None = None  # why there is no half width, or what the promise does not cover
    withholds: bool = False  # True if the answer may be withheld
    details: Mapping[str, Any] = field(default_factory=dict)  # figures of this mechanism alone
    parts: tuple["ExpectedError", ...] = ()  # errors of several figures with units of their own


def unknown(reason: str, **details: Any) -> ExpectedError:
    """The error depends on the data, and nothing can be said about it."""
    return ExpectedError(None, promise=False, reason=reason, details=details)
