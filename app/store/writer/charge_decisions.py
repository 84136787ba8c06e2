"""Decide each charge order of a batch from rows read under lock, or from the cached snapshot."""

from typing import Any

from app.errors import (
    AppError,
    IdempotencyConflict,
    LedgerBehind,
    NoGrant,
    NotFound,
    SourceChanged,
    StillRunning,
)
from app.ledger.account import EVERYBODY, NO_GRANT, account_id
from app.ledger.anchor_comparison import BEHIND
from app.ledger.loss_record import loss_record
from app.ledger.orders import (
    ATTEMPTS_MAX,
    Cancelling,
    CancelOrder,
    Charged,
    ChargeOrder,
    ForfeitOrder,
    LeaseRenewed,
    Outcome,
    PreparedAnswer,
    ProgressOrder,
    QuestionOrder,
    RecordOrder,
    Settled,
    StaleCatalogue,
    State,
    VoidOrder,
)
from app.ledger.stamp import asked_digest, reused_content, stored_with
from app.store.writer.charge_json import charge_texts
from app.store.writer.charge_rows import ChargeRows
from app.store.writer.time_grid import leaves_at, on_grid

Result = Outcome | AppError
STILL_RUNNING = "The first attempt at this question is still running."
LEDGER_BEHIND = f"Nothing was charged: {BEHIND}."
UNKNOWN_QUESTION = "There is no question of this id."
# The same delay every time: the rest of the lease would reveal when the work is done.
RETRY_SECONDS = 1


def _is_our_own(order: ChargeOrder, earlier: dict[str, Any]) -> bool:
    """True if this very order made the row in an unknown commit, and nobody took it over since."""
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


class ChargeDecisions(ChargeRows):
    """Decide each order against the running totals that the orders before it have left."""

    def decide(self, order: QuestionOrder) -> Result:
        try:
            match order:
                case ChargeOrder():
                    return self._charge(order)
                case RecordOrder():
                    stored = stored_with(order.answer, order.stream)
                    if self._settle(order, State.ANSWERED, order.answer, *stored) and order.stream:
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
            return StaleCatalogue(self.catalogue)
        if earlier is not None and earlier["body_hash"] == order.body_hash:
            return self._again(order, earlier)
        # Without a grant every refusal is the same as for an unknown dataset.
        own = [self._accounts.get(account_id(order.book_id, h)) for h in order.holders]
        granted = [account for account in own if account is not None]
        everybody = self._accounts.get(account_id(order.book_id, EVERYBODY))
        if not granted or everybody is None:
            raise NoGrant(NO_GRANT)
        if earlier is not None:
            raise IdempotencyConflict("This Idempotency-Key was used with another body.")
        if isinstance(order.refusal, SourceChanged):
            raise order.refusal  # a stored answer would be mistaken for one about the present rows
        if not order.fresh and order.reuse_key in self._reusable:
            return self._reuse(order, *self._reusable[order.reuse_key])
        if order.refusal is not None:
            raise order.refusal
        if self.stopped:
            raise LedgerBehind(LEDGER_BEHIND)
        paid = [account.admit(order.loss, order.cells) for account in (*granted, everybody)]
        for account in paid:
            self._keep(account, order.cells)
        texts = charge_texts(order, paid)
        asked_hash = asked_digest(
            order.request, order.body_hash, order.reuse_key, order.dataset_id, order.question
        )
        entry = self._books[order.book_id].append_text(
            kind="charge",
            actor=order.actor,
            at=self.now,
            body=texts.body(order.charge_id, asked_hash),
        )
        self._entries.append(entry)
        charge = Charged(order.charge_id, 1, order.version_id, texts.charged(paid, entry))
        self.charged = True
        if order.at_once is not None:
            return self._answer(order, order.at_once, charge)
        self._insert(order, State.CHARGED, charge.charged)
        return charge

    def _answer(self, order: ChargeOrder, at_once: PreparedAnswer, charge: Charged) -> Settled:
        """Store the answer with its charge; if the process ends before that, neither exists."""
        state, answer = State.FORFEITED, None
        try:
            answer = at_once.answer(charge)
            state = State.ANSWERED
        except Exception:  # noqa: BLE001  # a second draw would be a choice between two answers
            answer = None
        # The grid begins with the charge, so its next point must lie after this instant.
        later = self.now + (at_once.grid_seconds > 0)
        at = on_grid(later, since=self.now, grid_seconds=at_once.grid_seconds)
        stored = () if answer is None else (answer,)
        stamp = self._stamps.stamp(order.charge_id, state.value, at, *stored)
        self._insert(order, state, charge.charged, answer, settled_at=at, stamp=stamp)
        self.recorded = True
        return self._to_be_read(order.charge_id)

    def _to_be_read(self, charge_id: str) -> Settled:
        """Mark a charge whose result is read back after the commit."""
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
        if self.stopped:
            raise LedgerBehind(LEDGER_BEHIND)
        if attempt >= ATTEMPTS_MAX or earlier["cancel_asked_at"] is not None:
            return self._give_up(earlier)
        earlier["attempt"] = attempt + 1
        earlier["lease_until"] = self._lease(order)
        self._take_overs[charge_id] = (attempt + 1, earlier["lease_until"], charge_id)
        return Charged(charge_id, attempt + 1, earlier["version_id"], earlier["charged"])

    def _give_up(self, row: dict[str, Any]) -> Settled:
        """Forfeit a vanished attempt: nobody can prove that it had read nothing."""
        row["state"], row["settled_at"] = State.FORFEITED.value, self.now
        stamp = self._stamps.stamp(row["id"], State.FORFEITED.value, self.now)
        ended = (State.FORFEITED.value, None, self.now, stamp, row["id"], row["attempt"])
        self._settlements.append(ended)
        return Settled(row["id"], State.FORFEITED, None)

    def _reuse(self, order: ChargeOrder, charge_id: str, answer: str, charged: str) -> Result:
        # The new row refers to the stored answer; a copy for each repetition would fill the disk.
        state, at = State.ANSWERED, self.now
        stored = reused_content(charge_id, order.request, order.body_hash, "", charged)
        stamp = self._stamps.stamp(order.charge_id, state.value, at, *stored)
        self._insert(order, state, charged, answer, charge_id, settled_at=at, stamp=stamp)
        return Settled(charge_id, State.ANSWERED, answer, reused=True)

    def _held(self, charge_id: str, attempt: int) -> bool:
        """True if this attempt may store: the charge is neither taken over nor settled."""
        row = self._by_id.get(charge_id, {"state": None, "attempt": 0})
        return (row["state"], row["attempt"]) == (State.CHARGED.value, attempt)

    def _note(self, order: ProgressOrder) -> LeaseRenewed:
        if not self._held(order.charge_id, order.attempt):
            return LeaseRenewed(held=False)
        until = self._lease(order)
        self._by_id[order.charge_id]["lease_until"] = until
        noted = (order.step, order.steps, until, order.charge_id, order.attempt)
        self._progress.append(noted)
        ends = self._cancelled_at(self._by_id[order.charge_id], order.grid_seconds)
        return LeaseRenewed(True, None if ends is None else max(0, ends - self.now) / 1_000_000)

    def _cancel(self, order: CancelOrder) -> Result:
        """Cancel a query.

        A stored answer whose time-grid point has not been reached is reported as still running.
        """
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
        """Time-grid point at which a cancellation takes effect, or None without one.

        Acting at once would reveal whether the query had finished.
        """
        asked_at = row["cancel_asked_at"]
        if asked_at is None:
            return None
        return on_grid(asked_at, since=row["created_at"], grid_seconds=grid_seconds)

    def _settle(
        self,
        order: RecordOrder | ForfeitOrder | VoidOrder,
        requested_state: State,
        answer: str | None,
        *stored: str | None,
    ) -> bool:
        """Settle a charge as of its public time-grid point; nothing shows it before.

        An answer is not stored if its query was cancelled as of an earlier point. Public times
        alone decide which of the two wins. An answer is not stored either while the ledger is
        behind its anchors: a lost entry may have answered the charge already.
        """
        state = requested_state
        row = self._by_id.get(order.charge_id)
        if row is None:
            return False
        at = leaves_at(self.now, since=row["created_at"], leaving=order.leaving)
        self._earliest[order.charge_id] = at  # holds for an attempt that was taken over, too
        if not self._held(order.charge_id, order.attempt):
            return False
        cancelled_at = self._cancelled_at(row, order.leaving.grid_seconds)
        cancelled = cancelled_at is not None and cancelled_at < at
        if state is State.ANSWERED and (cancelled or self.stopped):
            state, answer, stored = State.FORFEITED, None, ()
        row["state"], row["answer"], row["settled_at"] = state.value, answer, at
        stamp = self._stamps.stamp(order.charge_id, state.value, at, *stored)
        self._settlements.append((state.value, answer, at, stamp, order.charge_id, order.attempt))
        return state is requested_state

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
