"""Public time-grid points: results that depend on rows are settled and shown only at these."""

from app.ledger.leaving import Leaving

SECOND = 1_000_000


def leaves_at(now: int, *, since: int, leaving: Leaving) -> int:
    """First point at or after `now` at which the result may be shown; microseconds."""
    if not leaving.first_seconds:
        return on_grid(now, since=since, grid_seconds=leaving.grid_seconds)
    return since + round(leaving.rung((now - since) / SECOND) * SECOND)


def on_grid(now: int, *, since: int, grid_seconds: float) -> int:
    """First point at or after `now` of the grid that starts at `since`; microseconds."""
    grid = round(grid_seconds * SECOND)
    return since - (since - now) // grid * grid if grid else now
