"""Plain rows as a release reads them: counts and tallies in Python, slow and exact."""

from collections import Counter
from collections.abc import Iterable

from app.data.card import Card
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    Exact,
    GraphCounts,
    GraphCountsRequest,
    KeyBatch,
    KeyCountsRequest,
    Matrix,
    Records,
    StepCounts,
    StepHistogram,
    Tally,
)
from tests.queries.reference import Row, holds, in_steps, tallied


class RowsData:
    """The parts of `mechanisms.release.Data` that releases about ranks need."""

    def __init__(self, card: Card, rows: list[Row]) -> None:
        self.card, self.rows = card, rows

    def exact(self, tally: Tally) -> Exact:
        return tallied(self.card, tally, self.rows)

    def steps(self, request: StepHistogram) -> StepCounts:
        kept = [row[request.column] for row in self.rows if holds(request.where, row)]
        steps = [in_steps(self.card, request.column, each) for each in kept if each is not None]
        inside = [s for s in steps if any(low <= s <= high for low, high in request.ranges)]
        return sorted(Counter((s - request.low) >> request.shift for s in inside).items())

    def records(self, wanted: Records) -> Iterable[Matrix]:
        raise NotImplementedError

    def blocks(self, wanted: BlockTally) -> BlockCounts:
        raise NotImplementedError

    def graph(self, wanted: GraphCountsRequest) -> GraphCounts:
        raise NotImplementedError

    def keys(self, wanted: KeyCountsRequest) -> Iterable[KeyBatch]:
        raise NotImplementedError

    def checkpoint(self, step: int) -> None:
        raise NotImplementedError
