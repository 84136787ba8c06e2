"""Content of an anchor file, kept in memory so that the file can be rewritten."""

from collections.abc import Iterable, Mapping, Sequence

from app.ledger.stamp import StampChain
from app.store.anchors.lines import Anchor, BookEnd, Row, book_line, stamp_line

POINTS_NEWEST = 2000  # the newest n points of each book are all kept
CHAINS_MAX = 1000


def thinned(points: Mapping[int, str]) -> dict[int, str]:
    """Keep one in ten of the older points, one in a hundred of those ten times as old, and so on.

    If a restored copy ends between two kept points, booking starts at the earlier one. So entries
    count twice: at most a tenth as many as were lost.
    """
    newest = max(points)
    kept: dict[int, str] = {}
    seen: set[tuple[int, int]] = set()
    for seq in sorted(points):
        step, age = 1, newest - seq
        while age >= POINTS_NEWEST * step:
            step *= 10
        if (step, seq // step) not in seen:
            seen.add((step, seq // step))
            kept[seq] = points[seq]
    return kept


class MergedEnds:
    """Ends of one book after several commits, merged into one."""

    def __init__(self, end: BookEnd) -> None:
        self.end = end
        self._accounts: dict[str, Row] = {}
        self._cells: dict[tuple[str, int], Row] = {}

    def add(self, end: BookEnd) -> None:
        self.end = end
        for row in end.accounts:
            self._accounts[row[0]] = row
        for row in end.cells:
            self._cells[row[0], row[1]] = row

    def whole(self) -> BookEnd:
        book, seq, head = self.end[:3]
        return BookEnd(book, seq, head, list(self._accounts.values()), list(self._cells.values()))


class AnchorContent:
    """Content of an anchor file, so that it can be rewritten without its older points."""

    def __init__(self) -> None:
        self._points: dict[str, dict[int, str]] = {}  # heads by book and sequence number
        self._points_max: dict[str, int] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        self._accounts: dict[str, dict[str, Row]] = {}  # by book
        self._cells: dict[str, dict[tuple[str, int], Row]] = {}
        self._stamps: dict[str, str] = {}  # lines, by chain
        self._terms_and_marks: dict[str, None] = {}  # lines, in order and without repetition

    def pass_by(self, end: BookEnd) -> None:
        """Record the end of a book after a commit, if the same write has a later end of it."""
        self._add_point(end.id, end.seq, end.head)

    def _add_point(self, book: str, seq: int, head: str) -> None:
        points = self._points.setdefault(book, {})
        points[seq] = head
        if len(points) > self._points_max.get(book, 2 * POINTS_NEWEST):
            kept = self._points[book] = thinned(points)
            self._points_max[book] = len(kept) + POINTS_NEWEST

    def inherit(self, anchors: Iterable[Anchor]) -> None:
        """Take over the anchors of earlier processes; the ledger must contain all of them."""
        for anchor in anchors:
            for point in anchor.points:
                self._add_point(point.book, point.seq, point.head)
            for chain, (stamp, row) in anchor.stamps.items():
                known = StampChain(chain, b"", stamp.seq, stamp.link, row)
                self._stamps[chain] = stamp_line(known)
        for chain in list(self._stamps)[:-CHAINS_MAX]:
            del self._stamps[chain]

    def note(
        self,
        ends: Sequence[BookEnd],
        stamps: Sequence[StampChain],
        terms_and_marks: Sequence[str],
    ) -> None:
        for end in ends:
            self._ends[end.id] = end.seq, end.head
            self._add_point(end.id, end.seq, end.head)
            accounts = self._accounts.setdefault(end.id, {})
            cells = self._cells.setdefault(end.id, {})
            for row in end.accounts:
                before = accounts.get(row[0], row)
                if before[1] != row[1]:  # cells in the old currency no longer apply
                    for key in [key for key in cells if key[0] == row[0]]:
                        del cells[key]
                accounts[row[0]] = row
            if end.cells:
                for row in end.cells:
                    cells[row[0], row[1]] = row
        for chain in stamps:
            self._stamps[chain.id] = stamp_line(chain)
        for line in terms_and_marks:
            self._terms_and_marks[line] = None

    def text(self) -> str:
        points = [
            book_line(BookEnd(book, seq, heads[seq]))
            for book, heads in self._points.items()
            for seq in sorted(heads)
        ]
        ends = []
        for book, (seq, head) in self._ends.items():
            accounts = list(self._accounts[book].values())
            cells = list(self._cells.get(book, {}).values())
            ends.append(book_line(BookEnd(book, seq, head, accounts, cells)))
        return "".join([*points, *ends, *self._stamps.values(), *self._terms_and_marks])
