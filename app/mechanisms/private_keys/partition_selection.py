"""Partition selection: each private key is kept by its own coin, as likely as privacy allows.

Theorem: `keep_probability.py` for one key. A person changes the numbers of persons of at most k
keys, by one each (`queries/shapes/private_keys.py`), and the coins of the keys are independent. A
pair of coins that is (epsilon / k, d)-private is, on both sides, with probability 1 - d one that is
epsilon / k-private (Kairouz, Oh and Viswanath 2015). So k of them are so with probability (1 - d)^k
= 1 - delta; then together they are epsilon-private, with k times the curve of epsilon / k. The
charge is epsilon and its curve, and delta as failure probability. Only the keys are released. Their
numbers of persons would be a second release.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from typing_extensions import override

from app.accounting.curves.curve_units import pure_rho
from app.accounting.losses import repeated_loss
from app.accounting.units import ATTO, PICO, cost_units, limit_units
from app.errors import Invalid
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget, UnsupportedShape
from app.mechanisms.private_keys.keep_probability import ROWS_MAX, WHOLE, keep_table
from app.mechanisms.private_keys.keys_release import KEYS_MAX, KeysRelease
from app.mechanisms.release import RandomSource
from app.mechanisms.unit_search import EPSILON_UNITS_MAX, largest_satisfying
from app.queries.shapes.private_keys import PrivateKeysShape
from app.queries.tally import KeyBatch

KIND = "partition_selection"
THEOREM = "Desfontaines, Voss, Gipson and Mandayam 2022 (private partition selection)"


@dataclass(frozen=True, slots=True)
class PartitionRelease(KeysRelease):
    theorem: str = THEOREM

    @property
    def table(self) -> Sequence[int]:
        """Table of keep probabilities. Plans are cached and tables are long, so a plan does not
        hold it."""
        table = _table(self.shape, self.loss.epsilon, self.loss.delta)
        assert table is not None, "the planner checked that the table exists"
        return table

    @override
    def released(self, batch: KeyBatch, noise: RandomSource) -> Iterator[tuple[int, str, int]]:
        chances = np.asarray(self.table, dtype=np.uint64)
        persons = np.array([count for _, _, count in batch], dtype=np.int64)
        words = np.asarray(noise.words(len(batch)), dtype=np.uint64)
        surely = persons >= len(chances)
        kept = surely | (words < chances[np.where(surely, 0, persons)])
        for i in np.flatnonzero(kept).tolist():
            yield batch[i][0], batch[i][1], 0

    @override
    def shown_keys(self, keys: KeyBatch, confidence: float) -> list[Any]:
        return [text for _, text, _ in keys]

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        return (float(self._kept_from(0.95)),)

    def _kept_from(self, probability: float) -> int:
        return bisect_left(self.table, Fraction(probability) * WHOLE)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "keys_of_a_person": self.shape.keys,
            "epsilon_of_a_key": float(Fraction(self.loss.epsilon, PICO * self.shape.keys)),
            "failure": self.loss.failure / ATTO,
            "keys_max": KEYS_MAX,
        }

    def ledger_entry(self) -> dict[str, Any]:
        return {"mechanism": KIND, "keys_of_a_person": self.shape.keys}

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        details = {
            "kept_from": self._kept_from(confidence),
            "surely_kept_from": len(self.table),
        }
        return ExpectedError(None, details=details)


def prepare(shape: PrivateKeysShape, target: PrivacyTarget) -> PartitionRelease:
    if shape.counts:
        raise UnsupportedShape("it releases keys without counts: use a keys query")
    if target.delta is None:
        raise Invalid.field("/privacy/delta", "required: private keys cost a delta")
    if target.epsilon is not None:
        epsilon = cost_units(target.epsilon, PICO)
    elif target.rho is not None:
        epsilon = _epsilon_within(limit_units(target.rho, PICO), shape.keys)
    else:
        raise CannotServe("released keys have no half width: request epsilon and delta")
    if epsilon > EPSILON_UNITS_MAX:
        raise Invalid.field("/privacy/epsilon", "must be at most 1000000")
    delta = cost_units(target.delta, ATTO)
    if _table(shape, epsilon, delta) is None:
        rule = f"too small: even a key of {ROWS_MAX} persons might be left out"
        raise Invalid.field("/privacy", rule)
    loss = repeated_loss(epsilon, shape.keys).replace(delta=delta, failure=delta)
    return PartitionRelease(shape, loss)


def _table(shape: PrivateKeysShape, epsilon: int, delta: int) -> Sequence[int] | None:
    return keep_table(Fraction(epsilon, PICO * shape.keys), delta, shape.keys)


def _epsilon_within(rho: int, keys: int) -> int:
    """The largest epsilon, in units, whose rho over all keys of a person is at most `rho` units."""

    def fits(epsilon: int) -> bool:
        return pure_rho(epsilon, keys) <= rho

    if not fits(1):
        raise CannotServe("the rho is too small for any selection of keys")
    return largest_satisfying(fits, 1, EPSILON_UNITS_MAX)
