"""Replay an account from the entries of its book, one page at a time.

The state after each page is cached in memory, so the next page begins there. One call reads a
limited number of entries. If they do not suffice, its page is short or empty, and the next call
goes on from the cached state. A cached state names the hash of the chain, so that a restored ledger
is never continued from entries that it lacks.
"""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from app.errors import StoreUnavailable
from app.ledger.account import Account
from app.ledger.account_history.replay import Step, replay_step
from app.ledger.account_history.rewind import NOTHING_OPEN, NumberPlace
from app.ledger.chain import Entry
from app.ports.ledger import EntriesOfAccounts

CHUNK = 500  # entries of one statement
READS_MAX = 10  # statements of one call
WEIGHT_MAX = 10_000  # cached states, each counted with its cells
LOCKS = 16
UNREADABLE = (
    "The entries of this account cannot be replayed; an administrator should verify the ledger."
)


class ReplayPage(NamedTuple):
    steps: list[Step]
    after: int  # steps of the next page come after this entry
    reached: int  # the replay has read the chain up to here
    complete: bool  # there is no later step


class AccountState(NamedTuple):
    """An account after the first entries of its book; None before it is granted."""

    seq: int
    at: int  # time of the entry `seq`
    head: str
    account: Account | None
    open_numbers: frozenset[NumberPlace] = NOTHING_OPEN  # of its spend, known only in a rewind

    @property
    def weight(self) -> int:
        return 1 if self.account is None else 1 + len(self.account.balance.cells)


NOTHING_READ = AccountState(0, 0, "", None)


class ReplayedStates:
    """Cached states by account and entry. Above a limit, the least recently used go."""

    def __init__(self, weight_max: int = WEIGHT_MAX) -> None:
        self._weight_max = weight_max
        self._weight = 0
        self._states: OrderedDict[tuple[str, int], AccountState] = OrderedDict()
        self._sequences: dict[str, list[int]] = {}  # sorted, by account
        self._lock = Lock()

    def put(self, account_id: str, state: AccountState) -> None:
        with self._lock:
            self._drop(account_id, state.seq)
            self._states[account_id, state.seq] = state
            insort(self._sequences.setdefault(account_id, []), state.seq)
            self._weight += state.weight
            while self._weight > self._weight_max:
                self._drop(*next(iter(self._states)))

    def latest(self, account_id: str, until: int, before: int = 0) -> AccountState | None:
        """The later of two cached states: the last one up to entry `until`, and the last one older
        than time `before`."""
        with self._lock:
            known = self._sequences.get(account_id, [])
            earlier = bisect_left(known, before, key=lambda seq: self._states[account_id, seq].at)
            index = max(bisect_right(known, until), earlier)
            if index == 0:
                return None
            self._states.move_to_end((account_id, known[index - 1]))
            return self._states[account_id, known[index - 1]]

    def earliest(self, account_id: str, since: int) -> AccountState | None:
        """The earliest cached state at or after entry `since`."""
        with self._lock:
            known = self._sequences.get(account_id, [])
            index = bisect_left(known, since)
            if index == len(known):
                return None
            self._states.move_to_end((account_id, known[index]))
            return self._states[account_id, known[index]]

    def drop(self, account_id: str, seq: int) -> None:
        with self._lock:
            self._drop(account_id, seq)

    def _drop(self, account_id: str, seq: int) -> None:
        state = self._states.pop((account_id, seq), None)
        if state is None:
            return
        self._weight -= state.weight
        self._sequences[account_id].remove(seq)
        if not self._sequences[account_id]:
            del self._sequences[account_id]


@dataclass(slots=True)
class ReplayAccount:
    entries: EntriesOfAccounts
    states: ReplayedStates = field(default_factory=ReplayedStates)
    _locks: list[Lock] = field(default_factory=lambda: [Lock() for _ in range(LOCKS)])

    def __call__(
        self, live: Account, *, after: int, limit: int, since: int | None = None
    ) -> ReplayPage:
        """Steps after entry `after`, and not before time `since`. Blocking: reads entries.

        Callers for one account wait for each other, and go on from what the first one has cached.
        """
        with self._locks[hash(live.id) % LOCKS]:
            return self._page(live, after=after, limit=limit, since=since)

    def _page(self, live: Account, *, after: int, limit: int, since: int | None) -> ReplayPage:
        state = self._nearest(live, after, since or 0)
        steps: list[Step] = []
        complete = False
        for _ in range(READS_MAX):
            skipping = state.seq < after or since is not None
            chunk = CHUNK if skipping else min(CHUNK, limit - len(steps))
            batch = self.entries.after(live, state.seq, limit=chunk)
            before = state
            state = AccountState(batch.reached, batch.at, batch.head, before.account)
            for entry in batch.entries:
                step = _replayed(before.account, entry, live)
                if step is None:
                    continue
                before = AccountState(entry.seq, entry.at, entry.hash, step.account)
                if entry.seq > after and (since is None or entry.at >= since):
                    steps.append(step)
                if len(steps) == limit:
                    break
            whole = len(steps) < limit or before.seq == batch.reached
            state = state._replace(account=before.account) if whole else before
            complete = batch.at_end and whole
            if complete or len(steps) == limit:
                break
        if state.seq:
            self.states.put(live.id, state)
        return ReplayPage(steps, max(after, state.seq), state.seq, complete)

    def _nearest(self, live: Account, until: int, since: int) -> AccountState:
        """The nearest cached state that the ledger still has."""
        while (state := self.states.latest(live.id, until, since)) is not None:
            if self.entries.has(live.book_id, state.seq, state.head):
                return state
            self.states.drop(live.id, state.seq)
        return NOTHING_READ


def _replayed(before: Account | None, entry: Entry, live: Account) -> Step | None:
    try:
        return replay_step(before, entry, live)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StoreUnavailable(UNREADABLE) from None
