"""How many values a question lists: what planning it costs, known before it is begun."""

from pydantic import BaseModel

from app.queries.candidates import Grid

LISTED_MAX = 1_000_000  # in one request, over all of its questions


def listed_values(part: object) -> int:
    """Candidates, edges, predicates and what filters compare with, over all levels."""
    if isinstance(part, Grid):
        return part.count
    if isinstance(part, BaseModel):
        return sum(map(listed_values, vars(part).values()))
    if isinstance(part, list | tuple):
        return len(part) + sum(map(listed_values, part))
    return 0
