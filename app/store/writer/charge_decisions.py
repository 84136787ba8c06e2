"""What becomes of each order about a charge, once all that it hangs on is read or assumed."""

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
from app.ledger.standing import BEHIND
from app.store.writer.charge_json import charge_texts
from app.store.writer.charge_rows import ChargeRows
from app.store.writer.time_grid import leaves_at, on_grid

Result = Outcome | AppError
STILL_RUNNING = "The first attempt at this question is still running."
LEDGER_BEHIND = f"Nothing was charged: {BEHIND}."
UNKNOWN_QUESTION = "There is no question of this id."
# How long to wait is always told the same: the lease that is left would tell when the work is done.
RETRY_SECONDS = 1


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


class ChargeDecisions(ChargeRows):
    """Decides each order against the running totals as the orders before it have left them."""

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
        # Without a grant every refusal is the one for a name that nobody knows.
        own = [self._accounts.get(account_id(order.book_id, h)) for h in order.holders]
        granted = [account for account in own if account is not None]
        everybody = self._accounts.get(account_id(order.book_id, EVERYBODY))
        if not granted or everybody is None:
            raise NoGrant(NO_GRANT)
        if earlier is not None:
            raise IdempotencyConflict("This Idempotency-Key was used with another body.")
        if isinstance(order.refusal, SourceChanged):
            raise order.refusal  # a stored answer would be taken for one about the rows there now
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
        asked = asked_digest(
            order.request, order.body_hash, order.reuse_key, order.dataset_id, order.question
        )
        entry = self._books[order.book_id].append_text(
            kind="charge", actor=order.actor, at=self.now, body=texts.body(order.charge_id, asked)
        )
        self._entries.append(entry)
        charge = Charged(order.charge_id, 1, order.version_id, texts.charged(paid, entry))
        self.charged = True
        if order.at_once is not None:
            return self._answer(order, order.at_once, charge)
        self._insert(order, State.CHARGED, charge.charged)
        return charge

    def _answer(self, order: ChargeOrder, at_once: PreparedAnswer, charge: Charged) -> Settled:
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
        stored = () if answer is None else (answer,)
        stamp = self._stamps.stamp(order.charge_id, state.value, at, *stored)
        self._insert(order, state, charge.charged, answer, settled_at=at, stamp=stamp)
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
        if self.stopped:
            raise LedgerBehind(LEDGER_BEHIND)
        if attempt >= ATTEMPTS_MAX or earlier["cancel_asked_at"] is not None:
            return self._give_up(earlier)
        earlier["attempt"] = attempt + 1
        earlier["lease_until"] = self._lease(order)
        self._take_overs[charge_id] = (attempt + 1, earlier["lease_until"], charge_id)
        return Charged(charge_id, attempt + 1, earlier["version_id"], earlier["charged"])

    def _give_up(self, row: dict[str, Any]) -> Settled:
        """Of an attempt that has vanished: nobody can prove that it had read nothing."""
        row["state"], row["settled_at"] = State.FORFEITED.value, self.now
        stamp = self._stamps.stamp(row["id"], State.FORFEITED.value, self.now)
        ended = (State.FORFEITED.value, None, self.now, stamp, row["id"], row["attempt"])
        self._settlements.append(ended)
        return Settled(row["id"], State.FORFEITED, None)

    def _reuse(self, order: ChargeOrder, charge_id: str, answer: str, charged: str) -> Result:
        # The new key points to the answer; a copy for each asking would fill the disk for free.
        state, at = State.ANSWERED, self.now
        stored = reused_content(charge_id, order.request, order.body_hash)
        stamp = self._stamps.stamp(order.charge_id, state.value, at, *stored)
        self._insert(order, state, charged, answer, charge_id, settled_at=at, stamp=stamp)
        return Settled(charge_id, State.ANSWERED, answer, reused=True)

    def _held(self, charge_id: str, attempt: int) -> bool:
        """Not taken over, nor settled before: else this attempt may store nothing."""
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
        self,
        order: RecordOrder | ForfeitOrder | VoidOrder,
        wanted: State,
        answer: str | None,
        *stored: str | None,
    ) -> bool:
        """Settled as of its public point in time; nothing shows it before. An answer whose question
        was cancelled as of an earlier point is not stored: which of the two wins depends on public
        times alone. Neither is one while the ledger is behind its anchors: the charge may have been
        answered already, in what was lost."""
        state = wanted
        row = self._by_id.get(order.charge_id)
        if row is None:
            return False
        at = leaves_at(self.now, since=row["created_at"], leaving=order.leaving)
        self._earliest[order.charge_id] = at  # also of an attempt that was taken over
        if not self._held(order.charge_id, order.attempt):
            return False
        cancelled_at = self._cancelled_at(row, order.leaving.grid_seconds)
        cancelled = cancelled_at is not None and cancelled_at < at
        if state is State.ANSWERED and (cancelled or self.stopped):
            state, answer, stored = State.FORFEITED, None, ()
        row["state"], row["answer"], row["settled_at"] = state.value, answer, at
        stamp = self._stamps.stamp(order.charge_id, state.value, at, *stored)
        self._settlements.append((state.value, answer, at, stamp, order.charge_id, order.attempt))
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
