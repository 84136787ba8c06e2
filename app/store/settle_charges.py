"""The orders about charges in one batch: read under locks, decided in order, written together.

Every order is decided against the running totals as the orders before it left them. Lock order:
request keys, accounts, books, each by id.
"""

from collections.abc import Sequence
from typing import Any

from app.errors import AppError, IdempotencyConflict, NoGrant, NotFound, StillRunning
from app.ledger.account import EVERYBODY, NO_GRANT, Account, account_id
from app.ledger.balance import Cells
from app.ledger.chain import Book, Entry, canonical
from app.ledger.loss_record import loss_record
from app.ledger.protocol import (
    ATTEMPTS_MAX,
    AtOnce,
    Cancelling,
    CancelOrder,
    Charged,
    ChargeOrder,
    ForfeitOrder,
    Noted,
    Outcome,
    ProgressOrder,
    QuestionOrder,
    RecordOrder,
    Settled,
    Stale,
    State,
    VoidOrder,
)
from app.ledger.stream_protocol import NewStream
from app.store.budgets import accounts_from_tuples, spend_columns
from app.store.charge_texts import charge_texts
from app.store.hot import Read, Write, now_microseconds
from app.store.statements import Statements
from app.store.time_grid import on_grid

Result = Outcome | AppError
STILL_RUNNING = "The first attempt at this question is still running."
UNKNOWN_QUESTION = "There is no question of this id."
# How long to wait is always told the same: the lease that is left would tell when the work is done.
RETRY_SECONDS = 1


_CHARGE = (
    *("request", "id", "body_hash", "state", "attempt", "lease_until", "version_id", "charged"),
    *("answer", "created_at", "settled_at", "analyst_id", "cancel_asked_at"),
)
_SETTLING = (
    *("id", "state", "attempt", "lease_until", "created_at", "settled_at", "analyst_id"),
    "cancel_asked_at",
)


def _is_our_own(order: ChargeOrder, earlier: dict[str, Any]) -> bool:
    """Made by this very order, in a commit whose outcome was unknown; and not taken over since."""
    charged = earlier["state"] == State.CHARGED.value
    made = (earlier["id"], earlier["attempt"], charged)
    return made == (order.charge_id, 1, order.at_once is None)


def _still_running(row: dict[str, Any]) -> StillRunning:
    return StillRunning(
        STILL_RUNNING,
        retry_after_seconds=RETRY_SECONDS,
        charge_id=row["id"],
        charged=row["charged"],
    )


def _many(values: Sequence[str]) -> tuple[str]:
    return (canonical(list(values)),)


class ChargeBatch:
    """The state of one transaction while its orders are decided."""

    def __init__(self, orders: Sequence[QuestionOrder], sql: Statements) -> None:
        self._sql = sql
        self._charge_orders = [o for o in orders if isinstance(o, ChargeOrder)]
        self._settle_orders = [o for o in orders if not isinstance(o, ChargeOrder)]
        self._reading: list[str] = []
        self.catalogue = 0
        self.now = 0
        self._by_request: dict[str, dict[str, Any]] = {}
        self._by_id: dict[str, dict[str, Any]] = {}  # the same rows: one state for each charge
        self._reusable: dict[str, tuple[str, str, str]] = {}
        self._accounts: dict[str, Account] = {}
        self._books: dict[str, Book] = {}
        self._touched: set[str] = set()
        self._touched_cells: set[tuple[str, int]] = set()
        self._entries: list[Entry] = []
        self._new_charges: list[tuple[Any, ...]] = []
        self._settlements: list[tuple[Any, ...]] = []
        self._earliest: dict[str, int] = {}  # when those who settle may hear of it
        self._take_overs: dict[str, tuple[Any, ...]] = {}  # the last one of a charge counts
        self._progress: list[tuple[Any, ...]] = []
        self._marks: list[tuple[Any, ...]] = []
        self._new_streams: list[tuple[Any, ...]] = []
        self._stored_ids: list[str] = []  # of what is told as it is stored
        self.charged = False
        self.recorded = False

    # Reading, under locks

    def reads(self) -> list[Read]:
        sql, charges = self._sql, self._charge_orders
        paying: list[ChargeOrder | VoidOrder] = [*charges]
        paying += [o for o in self._settle_orders if isinstance(o, VoidOrder)]
        accounts: set[str] = set()
        celled: set[str] = set()
        books: set[str] = set()
        for order in paying:
            touched = {account_id(order.book_id, h) for h in (*order.holders, EVERYBODY)}
            accounts |= touched
            celled |= touched if order.celled else set()
            books.add(order.book_id)
        wanted = [
            (sql.charges_by_request, [o.request for o in charges]),
            (sql.charges_by_id, [o.charge_id for o in self._settle_orders]),
            (sql.answers_to_reuse, [o.reuse_key for o in charges if not o.fresh]),
            (sql.accounts, sorted(accounts)),
            (sql.cells, sorted(celled)),
            (sql.books, sorted(books)),
        ]
        self._reading = [sql.clock, *(text for text, values in wanted if values)]
        return [(sql.clock, ()), *((text, _many(values)) for text, values in wanted if values)]

    def load(self, rows: list[list[Any]]) -> None:
        sql = self._sql
        found = dict(zip(self._reading, rows, strict=True))
        ((self.catalogue, database_now),) = found[sql.clock]
        self.now = database_now or now_microseconds()
        for values in found.get(sql.charges_by_request, []):
            row = dict(zip(_CHARGE, values, strict=True))
            self._by_request[row["request"]] = self._by_id[row["id"]] = row
        for values in found.get(sql.charges_by_id, []):
            self._by_id.setdefault(values[0], dict(zip(_SETTLING, values, strict=True)))
        for key, *answer in found.get(sql.answers_to_reuse, []):
            if answer[0] is not None:
                self._reusable[key] = (answer[0], answer[1], answer[2])
        accounts = found.get(sql.accounts, [])
        for account in accounts_from_tuples(accounts, found.get(sql.cells, [])):
            self._accounts[account.id] = account
        self._books = {row[0]: Book(*row) for row in found.get(sql.books, [])}

    # Deciding

    def decide(self, order: QuestionOrder) -> Result:
        try:
            match order:
                case ChargeOrder():
                    return self._charge(order)
                case RecordOrder():
                    if self._settle(order, State.ANSWERED, order.answer) and order.stream:
                        self._new_streams.append(self._opened(order.stream))
                    self.recorded = True
                case ForfeitOrder():
                    self._settle(order, State.FORFEITED, None)
                case VoidOrder():
                    self._void(order)
                case ProgressOrder():
                    return self._note(order)
                case CancelOrder():
                    return self._cancel(order)
            return self._to_be_read(order.charge_id)
        except AppError as refusal:
            return refusal

    def _charge(self, order: ChargeOrder) -> Result:
        earlier = self._by_request.get(order.request)
        if earlier is not None and _is_our_own(order, earlier):
            made = Charged(order.charge_id, 1, earlier["version_id"], earlier["charged"])
            return made if order.at_once is None else self._to_be_read(order.charge_id)
        if order.catalogue != self.catalogue:
            return Stale(self.catalogue)
        if earlier is not None and earlier["body_hash"] == order.body_hash:
            return self._again(order, earlier)
        # Without a grant every refusal is the one for a name that nobody knows.
        own = [self._accounts.get(account_id(order.book_id, h)) for h in order.holders]
        granted = [account for account in own if account is not None]
        everybody = self._accounts.get(account_id(order.book_id, EVERYBODY))
        if not granted or everybody is None:
            raise NoGrant(NO_GRANT)
        if earlier is not None:
            raise IdempotencyConflict("This Idempotency-Key was used with another body.")
        if not order.fresh and order.reuse_key in self._reusable:
            return self._reuse(order, *self._reusable[order.reuse_key])
        if order.refusal is not None:
            raise order.refusal
        paid = [account.admit(order.loss, order.cells) for account in (*granted, everybody)]
        for account in paid:
            self._keep(account, order.cells)
        texts = charge_texts(order, paid)
        entry = self._books[order.book_id].append_text(
            kind="charge", actor=order.actor, at=self.now, body=texts.body(order.charge_id)
        )
        self._entries.append(entry)
        charge = Charged(order.charge_id, 1, order.version_id, texts.charged(paid, entry))
        self.charged = True
        if order.at_once is not None:
            return self._answer(order, order.at_once, charge)
        self._insert(order, State.CHARGED, charge.charged)
        return charge

    def _answer(self, order: ChargeOrder, at_once: AtOnce, charge: Charged) -> Settled:
        """In the same commit: what is not stored with its charge is gone with this process."""
        state, answer = State.FORFEITED, None
        try:
            answer = at_once.answer(charge)
            state = State.ANSWERED
        except Exception:  # noqa: BLE001  # drawing again would choose
            answer = None
        # Of a grid that begins with the charge the next point is not this instant itself.
        later = self.now + (at_once.grid_seconds > 0)
        at = on_grid(later, since=self.now, grid_seconds=at_once.grid_seconds)
        self._insert(order, state, charge.charged, answer, settled_at=at)
        self.recorded = True
        return self._to_be_read(order.charge_id)

    def _to_be_read(self, charge_id: str) -> Settled:
        """It is concluded after the commit, from what is stored then."""
        self._stored_ids.append(charge_id)
        return Settled(charge_id, State.CHARGED, None)

    def _again(self, order: ChargeOrder, earlier: dict[str, Any]) -> Result:
        state, charge_id, attempt = State(earlier["state"]), earlier["id"], earlier["attempt"]
        if state is not State.CHARGED:
            if earlier["settled_at"] > self.now:
                raise _still_running(earlier)
            return Settled(charge_id, state, earlier["answer"], replayed=True)
        if earlier["lease_until"] > self.now:
            raise _still_running(earlier)
        if attempt >= ATTEMPTS_MAX or earlier["cancel_asked_at"] is not None:
            return self._give_up(earlier)
        earlier["attempt"] = attempt + 1
        earlier["lease_until"] = self._lease(order)
        self._take_overs[charge_id] = (attempt + 1, earlier["lease_until"], charge_id)
        return Charged(charge_id, attempt + 1, earlier["version_id"], earlier["charged"])

    def _give_up(self, row: dict[str, Any]) -> Settled:
        """Of an attempt that has vanished: nobody can prove that it had read nothing."""
        row["state"], row["settled_at"] = State.FORFEITED.value, self.now
        ended = (State.FORFEITED.value, None, self.now, row["id"], row["attempt"])
        self._settlements.append(ended)
        return Settled(row["id"], State.FORFEITED, None)

    def _reuse(self, order: ChargeOrder, charge_id: str, answer: str, charged: str) -> Result:
        # The new key points to the answer; a copy for each asking would fill the disk for free.
        self._insert(order, State.ANSWERED, charged, answer, charge_id, settled_at=self.now)
        return Settled(charge_id, State.ANSWERED, answer, reused=True)

    def _held(self, charge_id: str, attempt: int) -> bool:
        """Not taken over, nor settled before: else this attempt may store nothing."""
        row = self._by_id.get(charge_id, {"state": None, "attempt": 0})
        return (row["state"], row["attempt"]) == (State.CHARGED.value, attempt)

    def _note(self, order: ProgressOrder) -> Noted:
        if not self._held(order.charge_id, order.attempt):
            return Noted(held=False)
        until = self._lease(order)
        self._by_id[order.charge_id]["lease_until"] = until
        noted = (order.step, order.steps, until, order.charge_id, order.attempt)
        self._progress.append(noted)
        ends = self._cancelled_at(self._by_id[order.charge_id], order.grid_seconds)
        return Noted(True, None if ends is None else max(0, ends - self.now) / 1_000_000)

    def _cancel(self, order: CancelOrder) -> Result:
        """Of what is stored and not told yet the same is told as of what is at work."""
        row = self._by_id.get(order.charge_id)
        if row is None or order.analyst_id not in (None, row["analyst_id"]):
            raise NotFound(UNKNOWN_QUESTION)
        state = State(row["state"])
        if state is not State.CHARGED and row["settled_at"] <= self.now:
            return Settled(order.charge_id, state, None, replayed=True)
        if row["cancel_asked_at"] is None:
            row["cancel_asked_at"] = self.now
            self._marks.append((self.now, order.charge_id))
        if state is State.CHARGED and row["lease_until"] <= self.now:
            self._give_up(row)
            return self._to_be_read(order.charge_id)
        return Cancelling(order.charge_id)

    def _cancelled_at(self, row: dict[str, Any], grid_seconds: float) -> int | None:
        """As of which point of its grid: were it at once, what becomes of the charge would tell
        whether the work was done by then."""
        asked_at = row["cancel_asked_at"]
        if asked_at is None:
            return None
        return on_grid(asked_at, since=row["created_at"], grid_seconds=grid_seconds)

    def _settle(
        self, order: RecordOrder | ForfeitOrder | VoidOrder, wanted: State, answer: str | None
    ) -> bool:
        """Settled as of the next point of the grid: until then nothing tells that it is, so that
        nothing tells how long it really took. An answer that comes after its question was cancelled
        is not stored."""
        state = wanted
        row = self._by_id.get(order.charge_id)
        if row is None:
            return False
        at = on_grid(self.now, since=row["created_at"], grid_seconds=order.grid_seconds)
        self._earliest[order.charge_id] = at  # also of an attempt that was taken over
        if not self._held(order.charge_id, order.attempt):
            return False
        cancelled_at = self._cancelled_at(row, order.grid_seconds)
        if state is State.ANSWERED and cancelled_at is not None and cancelled_at < self.now:
            state, answer = State.FORFEITED, None
        row["state"], row["answer"], row["settled_at"] = state.value, answer, at
        self._settlements.append((state.value, answer, at, order.charge_id, order.attempt))
        return state is wanted

    def _void(self, order: VoidOrder) -> None:
        if not self._settle(order, State.VOIDED, None):
            return
        paid = []
        for holder in order.holders:
            account = self._accounts[account_id(order.book_id, holder)]
            paid.append(account.give_back(order.loss, order.cells))
            self._keep(paid[-1], order.cells)
        self._append(
            order.book_id,
            kind="void",
            actor="bursar",
            body={
                "charge": order.charge_id,
                "accounts": [a.holder for a in paid],
                "cells": order.cells,
                **loss_record(order.loss, frozenset(a.currency for a in paid)),
                "reason": order.reason,
            },
        )

    # Writing

    def _keep(self, account: Account, cells: Cells) -> None:
        self._accounts[account.id] = account
        self._touched.add(account.id)
        for cell in cells or ():
            self._touched_cells.add((account.id, cell))

    def _lease(self, order: ChargeOrder | ProgressOrder) -> int:
        return self.now + int(order.lease_seconds * 1_000_000)

    def _append(self, book_id: str, *, kind: str, actor: str, body: dict[str, Any]) -> Entry:
        entry = self._books[book_id].append(kind=kind, actor=actor, at=self.now, body=body)
        self._entries.append(entry)
        return entry

    def _insert(
        self,
        order: ChargeOrder,
        state: State,
        charged: str,
        answer: str | None = None,
        reused_from: str | None = None,
        *,
        settled_at: int | None = None,
    ) -> None:
        free = reused_from is not None
        row = (
            order.charge_id,
            order.analyst_id,
            order.request,
            order.body_hash,
            order.reuse_key,
            order.dataset_id,
            order.version_id,
            state.value,
            1,
            self._lease(order),
            0 if free else order.loss.epsilon,
            0 if free else order.loss.delta,
            "" if free else order.question,
            charged,
            None if free else answer,
            reused_from,
            self.now,
            settled_at,
        )
        self._new_charges.append(row)
        self._by_request[order.request] = self._by_id[order.charge_id] = {
            "id": order.charge_id,
            "body_hash": order.body_hash,
            "state": state.value,
            "attempt": 1,
            "lease_until": self._lease(order),
            "version_id": order.version_id,
            "charged": charged,
            "answer": answer,
            "created_at": self.now,
            "settled_at": settled_at,
            "analyst_id": order.analyst_id,
            "cancel_asked_at": None,
        }

    def _opened(self, stream: NewStream) -> tuple[Any, ...]:
        return (
            *(stream.id, stream.analyst_id, stream.charge_id, stream.dataset_id, stream.kind),
            *(stream.parameters, stream.secret, stream.crossings, stream.asks_max),
            *(0, 0, None, self.now, None),
        )

    def writes(self) -> list[Write]:
        sql = self._sql
        accounts = [
            (*spend_columns(a.balance.common), a.version, self.now, a.id)
            for a in (self._accounts[each] for each in sorted(self._touched))
        ]
        cells = [
            (account, cell, *spend_columns(self._accounts[account].balance.cells[cell]))
            for account, cell in sorted(self._touched_cells)
        ]
        entries = [(e.book_id, e.seq, e.at, e.kind, e.text, e.hash) for e in self._entries]
        changed = {entry.book_id for entry in self._entries}
        books = [(b.seq, b.head, b.last_at, b.id) for b in self._books.values() if b.id in changed]
        pairs = [
            (sql.insert_charge, self._new_charges),
            (sql.take_over, list(self._take_overs.values())),
            (sql.note_progress, self._progress),
            (sql.mark_cancelled, self._marks),
            (sql.settle_charge, self._settlements),
            (sql.insert_stream, self._new_streams),
            (sql.update_account, accounts),
            (sql.put_cell, cells),
            (sql.insert_entry, entries),
            (sql.update_book, books),
        ]
        return [(statement, rows) for statement, rows in pairs if rows]

    def reads_after(self) -> list[Read]:
        if not self._stored_ids:
            return []
        return [(self._sql.stored, _many(self._stored_ids))]

    def stored(self, rows: list[list[Any]]) -> dict[str, Settled]:
        """What the store holds now of the charges that were to be settled."""
        found = {}
        for charge_id, state, answer, at in rows[0] if rows else ():
            at = max(at or 0, self._earliest.get(charge_id, 0))
            wait = max(0, at - self.now) / 1_000_000
            found[charge_id] = Settled(charge_id, State(state), answer, wait_seconds=wait)
        return found
