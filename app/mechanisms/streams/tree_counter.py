"""Binary tree counter: number of rows up to each epoch of a public horizon, as epochs arrive.

A node of the tree is a run of 2^k epochs that starts right after a multiple of 2^k. Noise goes on
the count of each node, once. The count up to epoch t is the sum of the noisy nodes that make up
1..t, one for each 1 in the binary digits of t. So its error grows with log(t), not with t.

Theorem: Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song 2011.
Assumes: a row stays in one epoch forever, and a person has at most m rows in all epochs together
(`engines/sql/cleaning.py` keeps the first ones).

The nodes of one level k are disjoint. So m rows move the counts on one of the h = floor(log2 T) + 1
levels by at most m in L1, hence in L2. They move all levels by h m in L1 and sqrt(h) m in L2, for
any position of the rows. So discrete Laplace noise of scale h m / epsilon on every node is
epsilon-private, and discrete Gaussian noise with s^2 = h m^2 / (2 rho) is rho-zCDP (Canonne, Kamath
and Steinke 2020). A level by itself is (epsilon / h)-private, so its divergence at every order is
at most that of randomised response with epsilon / h. The curves of the h levels add up. Later
epochs may depend on released nodes. Nodes are released one after another, and their cost for one
person adds up to the same under adaptive composition.

Rows may be replaced while there is one epoch (`refresh_dataset.py`), and then belong to others. The
old rows are only in the node (1, 1), which is not drawn again. A new row is in a released node of
at most h - 1 levels. A row of epoch 1 is in none on the lowest level. A row of epoch e > 1 is in
none on a level k where e - 1 has a binary digit 1, because released nodes of that level start right
after multiples of 2^(k+1). So m old rows and m new ones move all nodes together by at most m + (h -
1) m = h m in L1, and none by more than m. Hence the sum of squares is at most h m^2. The divergence
of Laplace noise is convex in the change of a node, and 0 without one
(`accounting/curves/renyi_curves.py`). So all nodes cost at most h times what one costs that moves
by m, and this is at most randomised response with epsilon / h. The released count of epoch 1 does
not count the new rows, and is not reported as if it did.

Only add_remove is supported: an epoch changes the number of rows, which replace_one holds fixed.

Rounding: epsilon is the charged integer; scales round up, rho is that of the scale, rounded up.

Noisy nodes are paid for and are no secret: a stream stores them, and draws none twice.
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
from app.mechanisms.noise.workload_release import width_of
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
TreeNode = tuple[int, int]  # first and last epoch


@dataclass(frozen=True, slots=True)
class TreeCounter:
    """Public parameters of a counter: the horizon, and the noise on each node."""

    epochs_max: int
    sensitivity: int
    noise: str
    scale: float

    @property
    def levels(self) -> int:
        return self.epochs_max.bit_length()

    def draw(
        self, nodes_due: list[TreeNode], counts: list[int], noise: RandomSource
    ) -> dict[TreeNode, int]:
        """Noisy nodes, from the exact count of each."""
        draws = LAWS[self.noise].draw(noise, self.scale, len(nodes_due))
        return {n: count + z for n, count, z in zip(nodes_due, counts, draws, strict=True)}

    def figure(self, epoch: int, noisy: Mapping[TreeNode, int], confidence: float) -> Estimate:
        """The count up to an epoch, with the interval of its noise."""
        parts = nodes(epoch)
        total = sum(noisy[node] for node in parts)
        half = self.half_width(len(parts), confidence)
        return Estimate(total, total - half, total + half)

    def half_width(self, parts: int, confidence: float) -> int:
        wide = width_of(LAWS[self.noise], self.scale, equal_weights(parts), 1.0 - confidence)
        # noise is integral, so values above `wide` are also above its floor
        return math.floor(wide)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "noise": self.noise,
            "sensitivity": self.sensitivity,
            "levels": self.levels,
            "scale": self.scale,
        }


def nodes(epoch: int) -> list[TreeNode]:
    """The nodes that cover the epochs from 1 to this one, the largest first."""
    covering: list[TreeNode] = []
    done = 0
    for level in reversed(range(epoch.bit_length())):
        if epoch >> level & 1:
            covering.append((done + 1, done + (1 << level)))
            done += 1 << level
    return covering


def prepare(
    card: Card,
    *,
    epochs_max: int,
    epsilon: Decimal | None,
    rho: Decimal | None,
    delta: Decimal | None,
) -> tuple[TreeCounter, Loss]:
    """Prepare the counter that costs this epsilon (Laplace noise), or at most this rho (Gaussian).

    A delta beside rho makes a promise that basic composition can count."""
    if card.neighbours != "add_remove":
        raise Invalid.field(
            "/dataset", "must use add_remove neighbours: epochs change the number of rows"
        )
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
        raise Invalid.field("/privacy", "too large: there would be no noise at all")
    if scale > high:
        raise Invalid.field("/privacy", "too small: the noise would not fit 64 bits")


def exact_counts(nodes_due: list[TreeNode], by_epoch: Callable[[int], int]) -> list[int]:
    return [sum(map(by_epoch, range(first, last + 1))) for first, last in nodes_due]
