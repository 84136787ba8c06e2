"""Follow the balances: one feed in each process, for all its watchers.

The feed looks at the ledger a few times a second while somebody watches. So it sees the charges of
every server on either store, and costs the same for one watcher and for hundreds. A watcher that
reads too slowly misses steps in between, and never the latest balance.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from app.errors import StoreUnavailable
from app.ledger.records import Budget
from app.ports.ledger import BalanceChanges, Catalogue

LOOK_SECONDS = 0.25
# Servers may commit in another order than that of their times. So each look goes back this far,
# and versions that are known are left out.
OVERLAP_MICROSECONDS = 10_000_000
RIGHTS_SECONDS = 2.0  # how often a quiet watcher's rights are read again
WAITING_MAX = 2_000  # budgets that wait for one watcher


@dataclass(slots=True)
class BalanceEvent:
    """A budget after a change. `text` is rendered once, for all watchers."""

    at: int  # ledger time in microseconds
    budget: Budget
    text: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.budget.dataset, self.budget.account.id


@dataclass(slots=True, eq=False)
class Watcher:
    """One watcher. `holders`: only their budgets; None watches all."""

    holders: tuple[str, ...] | None
    waiting: "OrderedDict[tuple[str, str], BalanceEvent]" = field(default_factory=OrderedDict)
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def sees(self, event: BalanceEvent) -> bool:
        return self.holders is None or event.budget.account.holder in self.holders

    def put(self, event: BalanceEvent) -> None:
        """A newer balance replaces one of the same budget that still waits."""
        self.waiting.pop(event.key, None)
        self.waiting[event.key] = event
        if len(self.waiting) > WAITING_MAX:
            self.waiting.popitem(last=False)
        self.woken.set()

    def take(self) -> list[BalanceEvent]:
        """The events that wait, as far as the watcher still sees them."""
        events = [event for event in self.waiting.values() if self.sees(event)]
        self.waiting.clear()
        self.woken.clear()
        return events


class FollowBalances:
    """The feed of one process."""

    def __init__(self, changes: BalanceChanges, catalogue: Catalogue) -> None:
        self._changes = changes
        self._catalogue = catalogue
        self._watchers: set[Watcher] = set()
        self._task: asyncio.Task[None] | None = None
        self._stopped = asyncio.Event()
        self._looked = asyncio.Event()
        self._head = (-1, 0)
        self._versions: dict[tuple[str, str], int] = {}
        self._looked_at = 0.0  # on the loop's clock

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def lag_seconds(self) -> float:
        """Time since the last look at the ledger; 0 if nobody watches."""
        return asyncio.get_running_loop().time() - self._looked_at if self._watchers else 0.0

    def stop(self) -> None:
        """End all streams at once. Safe to call from a signal handler's callback."""
        self._stopped.set()
        for watcher in self._watchers:
            watcher.woken.set()

    async def watch(
        self,
        visible_holders: Callable[[], Awaitable[tuple[str, ...] | None]],
        since: int | None,
        pause_seconds: float,
    ) -> AsyncIterator[list[BalanceEvent]]:
        """Events as they come; an empty list at first, and after a pause without any.

        The first list comes when no later change can be missed. `since` begins with the budgets
        that have changed since this time. `visible_holders` is asked before events are passed on,
        and every few seconds: the holders that the watcher may see now, or None for all. It raises
        when the watcher may see none any more.
        """
        watcher = Watcher(await visible_holders())
        looked = self._add(watcher)
        try:
            await looked.wait()
            yield []
            for event in await self._events_since(since):
                if watcher.sees(event) and event.key not in watcher.waiting:
                    watcher.put(event)
            quiet = 0.0
            while not self._stopped.is_set():
                wait = min(RIGHTS_SECONDS, pause_seconds - quiet)
                with suppress(TimeoutError):
                    await asyncio.wait_for(watcher.woken.wait(), wait)
                if self._stopped.is_set():
                    return
                watcher.holders = await visible_holders()
                events = watcher.take()
                quiet += wait
                if events or quiet >= pause_seconds:
                    quiet = 0.0
                    yield events
        finally:
            self._watchers.discard(watcher)

    async def _events_since(self, since: int | None) -> list[BalanceEvent]:
        if since is None:
            return []
        changed = await asyncio.to_thread(self._changes.since, since)
        return [BalanceEvent(at, budget) for at, budget in changed]

    def _add(self, watcher: Watcher) -> asyncio.Event:
        """Add a watcher; the event is set once the feed passes on every change from then on."""
        if not self._watchers:
            self._looked_at = asyncio.get_running_loop().time()
        self._watchers.add(watcher)
        if self._task is None or self._task.done():
            self._looked = asyncio.Event()
            self._task = asyncio.create_task(self._follow(self._looked))
        return self._looked

    async def _follow(self, looked: asyncio.Event) -> None:
        """Look at the ledger while somebody watches."""
        try:
            await self._look(first=True)
        finally:
            looked.set()
        while self._watchers and not self._stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), LOOK_SECONDS)
            await self._look()

    async def _look(self, *, first: bool = False) -> None:
        try:
            await self._catalogue.check()  # forgets people whose keys were revoked
            head = await asyncio.to_thread(self._changes.head)
            self._looked_at = asyncio.get_running_loop().time()
            if head == self._head and not first:
                return
            since = max(0, self._head[1] - OVERLAP_MICROSECONDS) if not first else head[1]
            changed = await asyncio.to_thread(self._changes.since, since)
        except StoreUnavailable:
            return  # the next look finds what this one has missed
        self._head = head
        for at, budget in changed:
            self._pass_on(BalanceEvent(at, budget), quietly=first)

    def _pass_on(self, event: BalanceEvent, *, quietly: bool) -> None:
        version = event.budget.account.version
        if self._versions.get(event.key) == version:
            return
        self._versions[event.key] = version
        if not quietly:
            for watcher in self._watchers:
                if watcher.sees(event):
                    watcher.put(event)
