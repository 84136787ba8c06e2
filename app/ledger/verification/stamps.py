"""Check the chains of stamps: every settled row has its link, with the recorded content.

Rows come in the order of their ids, which is nearly the order of settlement. A row that comes early
waits for its predecessors, so only a few rows are held at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from app.ledger.chain import FIRST_PREVIOUS
from app.ledger.stamp import SettledRow, Stamp, next_link, stamp_from

Waiting = tuple[str, Stamp, SettledRow]  # the first is the book, or the stream of an ask


@dataclass(slots=True)
class _Chain:
    link: str = FIRST_PREVIOUS
    seq: int = 0
    waiting: dict[int, Waiting] = field(default_factory=dict)


class StampChecker:
    def __init__(self, report: Callable[[str, str, str], None]) -> None:
        self._report = report  # takes book, charge and problem
        self._chains: dict[str, _Chain] = {}

    def row(self, book: str, text: str, settled: SettledRow) -> None:
        try:
            stamp = stamp_from(text)
        except ValueError:
            self._report(book, settled.id, "its stamp cannot be read")
            return
        chain = self._chains.setdefault(stamp.chain, _Chain())
        if stamp.seq <= chain.seq or stamp.seq in chain.waiting:
            self._report(book, settled.id, "its stamp belongs to another row")
            return
        chain.waiting[stamp.seq] = book, stamp, settled
        while (next_row := chain.waiting.pop(chain.seq + 1, None)) is not None:
            self._next(chain, next_row)

    def _next(self, chain: _Chain, waiting: Waiting) -> None:
        book, stamp, settled = waiting
        if stamp.link != next_link(chain.link, stamp.chain, stamp.seq, settled):
            self._report(book, settled.id, "its state or stored answer differs from its stamp")
        chain.link, chain.seq = stamp.link, stamp.seq

    def finish(self) -> None:
        for chain in self._chains.values():
            for seq in sorted(chain.waiting):
                book, stamp, settled = chain.waiting[seq]
                if seq != chain.seq + 1:
                    missing = seq - chain.seq - 1
                    problem = f"{missing} earlier rows of its chain are missing or unsettled"
                    self._report(book, settled.id, problem)
                    chain.link, chain.seq = stamp.link, seq
                else:
                    self._next(chain, chain.waiting[seq])
