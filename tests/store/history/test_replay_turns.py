"""Callers who replay the same account at the same time read its entries once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

from typing_extensions import override

from app.actions.budgets.replay_account import ReplayAccount
from app.ledger.account import EVERYBODY, Account
from app.ledger.records import AccountEntries
from app.store.connect import Database
from app.store.history.account_entries import SqlAccountEntries
from tests.store.ledgers import Ledger

CALLERS = 4


class CountedEntries(SqlAccountEntries):
    """Counts the callers who read entries of one account at the same time."""

    together = 0

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.inside: Counter[str] = Counter()

    @override
    def after(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
        self.inside[account.id] += 1
        self.together = max(self.together, self.inside[account.id])
        sleep(0.05)  # so that callers without turns would meet here
        try:
            return super().after(account, seq, limit=limit)
        finally:
            self.inside[account.id] -= 1


def test_waiting_callers_continue_from_what_the_first_one_read(ledger: Ledger) -> None:
    for _ in range(8):
        ledger.charge(ledger.order())
    live = ledger.account(EVERYBODY)
    entries = CountedEntries(ledger.database)
    replay, start = ReplayAccount(entries), Barrier(CALLERS)

    def last_step() -> int:
        start.wait(60)
        return replay(live, after=0, limit=200).steps[-1].entry.seq

    with ThreadPoolExecutor(CALLERS) as pool:
        found = [pool.submit(last_step) for _ in range(CALLERS)]
        assert len({each.result(60) for each in found}) == 1
    assert entries.together == 1
