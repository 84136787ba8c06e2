"""The time grid: what depends on data is settled as of its next point, and nothing tells before."""


def on_grid(now: int, *, since: int, grid_seconds: float) -> int:
    """The first point at or after `now` of a grid that begins at `since`; microseconds."""
    grid = round(grid_seconds * 1_000_000)
    return since - (since - now) // grid * grid if grid else now
