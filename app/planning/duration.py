"""Public duration of a query: the length of its time slot, from its plan and the card alone.

A reply is sent at the end of its slot. So the slot must nearly always be longer than the work, for
every table that the card allows. The figures for DuckDB are upper envelopes of measurements on
synthetic rows, and MARGIN multiplies them. Those for PostgreSQL and Spark are estimates. `bursard
calibrate` measures how much slower a machine is than the one of the figures.

The number of rows is private under `add_remove`. The card may declare a public `size` instead; the
slot uses the least power of ten that is not below it. Without one, DEFAULT_SIZE is assumed. A table
that is larger than declared answers later, at a later step of the overrun ladder, and stays
private.
"""

from dataclasses import dataclass

from app.data.card import Card
from app.mechanisms.work import Work
from app.queries.pieces import pieces_needed

MARGIN = 2.0
DEFAULT_SIZE = 100_000
SIZE_MIN = 1000
SLOT_MIN = 0.004


@dataclass(frozen=True, slots=True)
class EngineSpeed:
    """Speed of an engine for one statement, relative to DuckDB."""

    statement: float  # seconds per statement, for any rows
    rows: float  # factor on the time per row
    in_pieces: bool = False  # large statements are made of pieces


SPEEDS = {
    "duckdb": EngineSpeed(0.0016, 1.0, in_pieces=True),
    "postgresql": EngineSpeed(0.010, 60.0),
    "spark": EngineSpeed(1.5, 40.0),
}
_SLOWEST = SPEEDS["spark"]

NANO = 1e-9
ROW = 6.0 * NANO  # seconds to read a row
ROW_AGGREGATE = 4.0 * NANO  # seconds to add a row to one aggregate
ROW_CONDITIONAL = 8.0 * NANO  # seconds to select a row for one conditional count
ROW_LEAF = 1.5 * NANO  # seconds to compare a row once
LEAF = 0.25e-3  # seconds to write and compile one comparison
MANY_LEAVES = 1000  # beyond, the compiler's time grows faster than the text
EDGE = 4e-6
RESULT = 8e-6  # seconds to read one number and draw its noise
RANK = 0.12e-3
STEP = 0.3e-3  # seconds for a pass over no rows
STEP_TERM = 11.0 * NANO  # seconds for one term of one row in one pass


def size_class(card: Card) -> int:
    """Public number of rows that slots are planned for: a power of ten."""
    declared = card.rows or card.size or DEFAULT_SIZE
    size = SIZE_MIN
    while size < declared:
        size *= 10
    return size


def slot_seconds(work: Work, card: Card, engine: str, factor: float = 1.0) -> float:
    """Length of the slot in seconds; `factor` is how many times slower this machine is."""
    rows, speed = size_class(card), SPEEDS.get(engine, _SLOWEST)
    counts = work.conditional_counts
    pieces = pieces_needed(counts, work.leaves) if speed.in_pieces else 1
    per_row = ROW * pieces + ROW_AGGREGATE * work.aggregates + ROW_LEAF * work.leaves
    per_row += ROW_CONDITIONAL * counts
    compiling = LEAF * work.leaves * max(1.0, work.leaves / pieces / MANY_LEAVES) ** 0.25
    scan = pieces * speed.statement + compiling + EDGE * work.edges + rows * per_row * speed.rows
    seconds = (
        work.scans * scan
        + rows * work.row_nanoseconds * NANO
        + RESULT * work.results
        + RANK * work.ranks
        + work.steps * (STEP + rows * STEP_TERM * work.step_terms)
        + work.seconds
    )
    return float(max(SLOT_MIN, MARGIN * factor * seconds))
