"""Binary tree counter: how many rows up to each epoch of a public horizon, as epochs arrive.

A node of the tree is a run of 2^k epochs that begins behind a multiple of 2^k. Noise goes on the
count of each node, once; the count up to epoch t is the sum of the noisy nodes that make up 1..t,
one for each 1 in the binary digits of t, so its error grows with log(t), not with t.

Theorem: Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011.
Assumes: a row is in one epoch for ever, and a person has at most m rows in all epochs together
(`engines/sql/cleaning.py` keeps the first ones). Nodes that begin behind multiples of 2^k are
disjoint, so m rows move the counts on one of the h = floor(log2 T) + 1 levels by at most m in L1,
hence in L2, and all levels by h m in L1 and sqrt(h) m in L2, however the rows lie. So discrete
Laplace noise of scale h m / epsilon on every node is epsilon-private, and discrete Gaussian noise
with s^2 = h m^2 / (2 rho) is rho-zCDP (Canonne, Kamath and Steinke 2020). Each level by itself is
(epsilon / h)-private, and by convexity of the curve in the change
(`accounting/curves/renyi_curves.py`) its divergence at every order is at most that of randomised
response: the curves of h of them add up. Epochs that arrive later may depend on what was told:
nodes are released one after another, and what they cost one person adds up to the same, whatever
comes between (adaptive composition). Rows may be replaced while there is one epoch
(`refresh_dataset.py`), and then stand in others. The old ones are in the node (1, 1) alone, which
is not drawn again. Of the new ones a row is in a told node of at most h - 1 levels: one of epoch 1
not on the lowest, and one of epoch e > 1 not on level k where e - 1 has a binary digit 1, because
told nodes of that level begin behind multiples of 2^(k+1). So m old rows and m new ones move all by
at most m + (h - 1) m in L1, and as each level moves by at most m, by at most h m^2 in squares; by
convexity their curves are at most those of h levels too. What was told of epoch 1 is no count of
the new rows, and is not told as one. Under add_remove only: an epoch changes the number of rows,
which replace_one holds fixed.
Rounding: epsilon is the charged integer; scales round up, rho is that of the scale, rounded up.

Noisy nodes are what is paid for and are no secret: a stream keeps them, and draws none twice.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.accounting.curves.conversion import epsilon_of_rho
from app.accounting.loss import Loss
from app.accounting.losses import NO_PROMISE, repeated_loss, zcdp_loss
from app.accounting.precise import decimal, units_up
from app.accounting.units import ATTO, PICO, cost_units, limit_units
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.noise import gaussian, laplace
from app.mechanisms.noise.additive import NoiseDistribution, float_up
from app.mechanisms.noise.workload import width_of
from app.mechanisms.release import RandomSource
from app.queries.estimates import Estimate
from app.queries.shapes.measures import sensitivity_l1
from app.queries.weighted_noise import equal_weights

KIND = "running_count"
THEOREM = (
    "Dwork, Naor, Pitassi and Rothblum 2010, Chan, Shi and Song 2011 "
    "(binary tree counter, on whole numbers)"
)
LAWS: dict[str, NoiseDistribution] = {laplace.KIND: laplace.LAW, gaussian.KIND: gaussian.LAW}
Node = tuple[int, int]  # the first and the last epoch


@dataclass(frozen=True, slots=True)
class TreeCounter:
    """All public: the horizon, and the noise on each node."""

    epochs_max: int
    sensitivity: int
    noise: str
    scale: float

    @property
    def levels(self) -> int:
        return self.epochs_max.bit_length()

    def draw(self, wanted: list[Node], counts: list[int], noise: RandomSource) -> dict[Node, int]:
        """Noisy nodes, from the exact count of each."""
        draws = LAWS[self.noise].draw(noise, self.scale, len(wanted))
        return {n: count + z for n, count, z in zip(wanted, counts, draws, strict=True)}

    def figure(self, epoch: int, noisy: Mapping[Node, int], confidence: float) -> Estimate:
        """The count up to an epoch, with the interval of its noise."""
        parts = nodes(epoch)
        total = sum(noisy[node] for node in parts)
        half = self.half_width(len(parts), confidence)
        return Estimate(total, total - half, total + half)

    def half_width(self, parts: int, confidence: float) -> int:
        wide = width_of(LAWS[self.noise], self.scale, equal_weights(parts), 1.0 - confidence)
        return math.floor(wide)  # the noise is whole: above `wide` is above that

    def describe(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "noise": self.noise,
            "sensitivity": self.sensitivity,
            "levels": self.levels,
            "scale": self.scale,
        }


def nodes(epoch: int) -> list[Node]:
    """The nodes that make up the epochs from 1 to this one, the largest first."""
    found: list[Node] = []
    done = 0
    for level in reversed(range(epoch.bit_length())):
        if epoch >> level & 1:
            found.append((done + 1, done + (1 << level)))
            done += 1 << level
    return found


def prepare(
    card: Card,
    *,
    epochs_max: int,
    epsilon: Decimal | None,
    rho: Decimal | None,
    delta: Decimal | None,
) -> tuple[TreeCounter, Loss]:
    """The counter that costs this epsilon (Laplace noise), or at most this rho (Gaussian); a delta
    beside rho makes a promise that basic composition can count."""
    if card.neighbours != "add_remove":
        raise Invalid.field("/dataset", "one under add_remove: epochs change the number of rows")
    sensitivity = sensitivity_l1(card, low=1, high=1, grouped=False)
    levels = epochs_max.bit_length()
    if epsilon is not None:
        units = cost_units(epsilon, PICO)
        scale = float_up(levels * sensitivity / Fraction(units, PICO))
        _must_fit(scale, laplace.SCALE_MIN, laplace.SCALE_MAX)
        made = TreeCounter(epochs_max, sensitivity, laplace.KIND, scale)
        return made, repeated_loss(units, levels)
    assert rho is not None
    limit = Fraction(limit_units(rho, PICO), PICO)
    square = levels * sensitivity**2
    scale = gaussian.root_up(square / (2 * limit))
    _must_fit(scale, gaussian.SCALE_MIN, gaussian.SCALE_MAX)
    counter = TreeCounter(epochs_max, sensitivity, gaussian.KIND, scale)
    paid = square / (2 * Fraction(scale) ** 2)
    promise = NO_PROMISE
    if delta is not None:
        promise = units_up(epsilon_of_rho(decimal(paid), delta)), cost_units(delta, ATTO)
    return counter, zcdp_loss(paid, promise)


def _must_fit(scale: float, low: float, high: float) -> None:
    if scale < low:
        raise Invalid.field("/privacy", "so large a loss that there would be no noise at all")
    if scale > high:
        raise Invalid.field("/privacy", "so small a loss that the noise would not fit 64 bits")


def exact_counts(wanted: list[Node], by_epoch: Callable[[int], int]) -> list[int]:
    return [sum(map(by_epoch, range(first, last + 1))) for first, last in wanted]
