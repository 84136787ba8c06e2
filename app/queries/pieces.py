"""A tally of many conditional counts as several tallies, each of a bounded number of comparisons.

DuckDB takes about 100 KB for each comparison of a statement, and its time for conditional counts
grows with the square of their number.
"""

from collections.abc import Iterator
from dataclasses import replace

from app.queries.tally import Aggregate, CountWhere, Tally, listed

COMPARISONS_MAX = 500  # one condition alone may have more
COUNTS_MAX = 64


def pieces(tally: Tally) -> Iterator[Tally]:
    """Tallies whose results, one after the other, are those of the tally.

    A split has one statement: it asks for the combinations of all its conditions.
    """
    if tally.split is not None or not tally.conditional_counts():
        yield tally
        return
    part: list[Aggregate] = []
    comparisons = 0
    for aggregate in tally.aggregates:
        more = listed(aggregate.condition) if isinstance(aggregate, CountWhere) else 0
        if part and (comparisons + more > COMPARISONS_MAX or len(part) == COUNTS_MAX):
            yield replace(tally, aggregates=tuple(part))
            part, comparisons = [], 0
        part.append(aggregate)
        comparisons += more
    yield replace(tally, aggregates=tuple(part))


def pieces_needed(counts: int, comparisons: int) -> int:
    """About as many pieces as `pieces` makes, from public measures of a tally."""
    return max(1, -(-counts // COUNTS_MAX), -(-comparisons // COMPARISONS_MAX)) if counts else 1


def is_large(tally: Tally) -> bool:
    """True for a statement that cannot be made of small pieces."""
    return tally.split is not None and tally.leaves() > COMPARISONS_MAX
