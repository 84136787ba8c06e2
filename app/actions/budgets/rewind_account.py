"""Read the history of an account from its newest entry back, one page at a time.

The walk begins at the present balance and takes away what each entry added. So the newest rows of
an account cost the same after ten entries and after ten million. Where the balance before an entry
cannot be known that way, the account is replayed up to there. One call reads a limited number of
entries; then its page is short or empty, and the next call goes on from the states cached here.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from app.actions.budgets.replay_account import (
    CHUNK,
    READS_MAX,
    UNREADABLE,
    AccountState,
    ReplayAccount,
    ReplayedStates,
)
from app.errors import StoreUnavailable
from app.ledger.account import Account
from app.ledger.account_history.replay import Step
from app.ledger.account_history.rewind import (
    infinite_numbers,
    rewound,
    stated_account,
    touching_body,
)
from app.ledger.chain import Entry
from app.ports.ledger import EntriesOfAccounts


class RewindPage(NamedTuple):
    steps: list[Step]  # newest first, each with the account after it
    before: int  # steps of the next page come before this entry
    reached: int  # the walk, or the replay that it waits for, has read the chain to here
    complete: bool  # there is no earlier step


@dataclass(slots=True)
class RewindAccount:
    entries: EntriesOfAccounts
    replay: ReplayAccount
    states: ReplayedStates = field(default_factory=ReplayedStates)

    def __call__(
        self, live: Account, *, before: int | None, limit: int, since: int | None = None
    ) -> RewindPage:
        """Steps before this entry, at this time or later. Blocking: reads entries."""
        state = self._nearest(live, before)
        end = state.seq + 1 if before is None else before
        steps: list[Step] = []
        for _ in range(READS_MAX):
            chunk = CHUNK if state.seq >= end else min(CHUNK, limit - len(steps) + 1)
            batch = self.entries.before(live, state.seq, limit=chunk)
            for entry in batch.entries:
                if since is not None and entry.at < since:
                    return RewindPage(steps, entry.seq, entry.seq, complete=True)
                try:
                    step = self._step(state, entry, live)
                    if step is None:
                        continue
                    account, open_numbers = rewound(step)
                except _NotReplayedYet as wait:
                    state = state._replace(seq=entry.seq)
                    return self._page(live, state, end, steps, wait.reached)
                except (ValueError, KeyError, TypeError, RecursionError):
                    raise StoreUnavailable(UNREADABLE) from None
                if entry.seq < end:
                    steps.append(step)
                if account is None:
                    return RewindPage(steps, entry.seq, entry.seq, complete=True)
                state = AccountState(entry.seq - 1, entry.at, "", account, open_numbers)
                if len(steps) == limit:
                    return self._page(live, state, end, steps, state.seq)
            state = state._replace(seq=batch.reached - 1)
            if batch.at_end:
                break
        return self._page(live, state, end, steps, state.seq)

    def _step(self, state: AccountState, entry: Entry, live: Account) -> Step | None:
        """The step of this entry, after which `state` holds; None if it touched another account."""
        assert state.account is not None, "the walk ends at the first grant"
        body = touching_body(entry, live)
        if body is None:
            return None
        step = Step(entry, body, state.account)
        if state.open_numbers <= infinite_numbers(step):
            return step
        stated = stated_account(entry, body, live)
        return self._replayed(entry, live) if stated is None else step._replace(account=stated)

    def _replayed(self, entry: Entry, live: Account) -> Step:
        page = self.replay(live, after=entry.seq - 1, limit=1)
        if not page.steps:
            raise _NotReplayedYet(page.reached)
        return page.steps[0]

    def _page(
        self, live: Account, state: AccountState, end: int, steps: list[Step], reached: int
    ) -> RewindPage:
        head = self.entries.head(live.book_id, state.seq)
        if head is not None:
            self.states.put(live.id, state._replace(head=head))
        before = min(end, state.seq + 1)
        return RewindPage(steps, before, reached, complete=state.seq == 0)

    def _nearest(self, live: Account, before: int | None) -> AccountState:
        """The nearest cached state that the ledger still has; otherwise the present one."""
        while before is not None and (state := self.states.earliest(live.id, before - 1)):
            if self.entries.has(live.book_id, state.seq, state.head):
                return state
            self.states.drop(live.id, state.seq)
        account, seq = self.entries.present(live)
        return AccountState(seq, 0, "", account)


class _NotReplayedYet(Exception):
    """The replay needs another call to come to this entry."""

    def __init__(self, reached: int) -> None:
        self.reached = reached
