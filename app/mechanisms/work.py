"""Public measures of the work that one answer takes, from its plan alone.

They become a public duration in `planning/duration.py`. Nothing here may depend on a row.
"""

from dataclasses import dataclass

from app.queries.tally import Tally


@dataclass(frozen=True, slots=True)
class Work:
    """What an answer takes. A default is what a plain count of all rows takes."""

    scans: int = 1  # statements that each read every row
    leaves: int = 0  # comparisons in each statement
    edges: int = 0  # bin edges in each statement
    aggregates: int = 1
    results: int = 1  # numbers that the engine returns and that get noise
    row_nanoseconds: float = 0.0  # for each row, beyond a plain scan: sorting, joining, hashing
    ranks: int = 0  # ranks that a smooth bound or a distance looks at
    steps: int = 0  # passes over the rows in this process
    step_terms: int = 0  # terms of each row in each pass
    seconds: float = 0.0  # of anything that fits none of these

    @classmethod
    def of(cls, tally: Tally) -> "Work":
        """One statement for a tally, and a draw for each of its numbers."""
        aggregates = len(tally.aggregates)
        return cls(
            leaves=tally.leaves(),
            edges=tally.edges(),
            aggregates=aggregates,
            results=tally.group_count() * aggregates,
        )
