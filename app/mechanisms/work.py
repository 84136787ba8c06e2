"""Public measures of the work for one answer, from its plan alone.

`planning/duration.py` turns them into a public duration. Nothing here may depend on a row.
"""

from dataclasses import dataclass

from app.queries.tally import Tally


@dataclass(frozen=True, slots=True)
class Work:
    """Work for one answer. The defaults describe a plain count of all rows."""

    scans: int = 1  # SQL statements that each read every row, before any is made of pieces
    leaves: int = 0  # comparisons in each statement
    edges: int = 0  # bin edges in each statement
    aggregates: int = 1
    conditional_counts: int = 0  # of these aggregates
    results: int = 1  # numbers that the engine returns and that receive noise
    row_nanoseconds: float = 0.0  # time per row beyond a plain scan: sorting, joining, hashing
    ranks: int = 0  # ranks that a smooth bound or a distance examines
    steps: int = 0  # passes over the rows in this process
    step_terms: int = 0  # terms of each row in each pass
    seconds: float = 0.0  # time for work that none of the other fields covers

    @classmethod
    def of(cls, tally: Tally) -> "Work":
        """Work for one statement per tally and one noise draw per number in it."""
        aggregates = len(tally.aggregates)
        return cls(
            leaves=tally.leaves(),
            edges=tally.edges(),
            aggregates=aggregates,
            conditional_counts=tally.conditional_counts(),
            results=tally.group_count() * aggregates,
        )
