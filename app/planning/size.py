"""Number of values a query lists: the cost of planning it, known in advance."""

from pydantic import BaseModel

from app.queries.candidates import Grid

LISTED_MAX = 1_000_000  # in one request, over all of its queries


def listed_values(part: object) -> int:
    """Number of candidates, edges, predicates and compared values, over all levels."""
    if isinstance(part, Grid):
        return part.count
    if isinstance(part, BaseModel):
        return sum(map(listed_values, vars(part).values()))
    if isinstance(part, list | tuple):
        return len(part) + sum(map(listed_values, part))
    return 0
