"""Public points in time: what depends on rows is settled as of one, and nothing shows before it."""

from app.ledger.leaving import Leaving

SECOND = 1_000_000


def leaves_at(now: int, *, since: int, leaving: Leaving) -> int:
    """The first point at or after `now` at which it may be seen; microseconds."""
    if not leaving.first_seconds:
        return on_grid(now, since=since, grid_seconds=leaving.grid_seconds)
    return since + round(leaving.rung((now - since) / SECOND) * SECOND)


def on_grid(now: int, *, since: int, grid_seconds: float) -> int:
    """The first point at or after `now` of a grid that begins at `since`; microseconds."""
    grid = round(grid_seconds * SECOND)
    return since - (since - now) // grid * grid if grid else now
