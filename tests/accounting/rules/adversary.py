"""An analyst who tries every strategy from a menu: the exact loss of whole interactions.

A mechanism is a pair of distributions over a few outcomes, its answer to one dataset and to its
neighbour. A strategy is a tree: the next question depends on the answers so far, while a stop rule
accepts. The least delta of a whole interaction at epsilon is the hockey-stick divergence

    sum over transcripts t of max(0, P(t) - exp(epsilon) Q(t)).

A maximum at every node gives the largest value of any strategy: the search is exhaustive over its
menu. The menu has fixed mechanisms and, at every node, ones cut to what the rule still accepts.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

Costs = tuple[Any, ...]
Accepts = Callable[[Costs, Costs], bool]  # arguments: the totals so far and the cost of one more


@dataclass(frozen=True)
class Mechanism:
    """Answers to the first and the second dataset; with probability `leak` it reveals the
    dataset.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    leak: float = 0.0

    def exchanged(self) -> "Mechanism":
        return Mechanism(self.second, self.first, self.leak)

    def outcomes(self) -> Iterator[tuple[float, float]]:
        kept = 1.0 - self.leak
        yield from ((kept * p, kept * q) for p, q in zip(self.first, self.second, strict=True))
        if self.leak:
            yield self.leak, 0.0
            yield 0.0, self.leak

    def loss(self) -> float:
        """The largest log-ratio, if nothing leaks."""
        return max(
            (abs(math.log(p / q)) for p, q in zip(self.first, self.second, strict=True)),
            default=0.0,
        )

    def divergence(self, order: float) -> float:
        """The Rényi divergence, if nothing leaks: the larger of both directions."""
        return max(
            _divergence(self.first, self.second, order), _divergence(self.second, self.first, order)
        )


def _divergence(first: tuple[float, ...], second: tuple[float, ...], order: float) -> float:
    logs = [
        order * math.log(p) + (1 - order) * math.log(q) for p, q in zip(first, second, strict=True)
    ]
    most = max(logs)
    return max(0.0, (most + math.log(sum(math.exp(x - most) for x in logs))) / (order - 1))


def rare(chance: float, loss: float) -> Mechanism:
    """Two answers; the rare one speaks for the first dataset by `loss`."""
    other = chance * math.exp(-loss)
    return Mechanism((chance, 1.0 - chance), (other, 1.0 - other))


def randomized_response(epsilon: float, leak: float = 0.0) -> Mechanism:
    true = 1.0 / (1.0 + math.exp(-epsilon))
    return Mechanism((true, 1.0 - true), (1.0 - true, true), leak)


def leaky_input(chance: float) -> Mechanism:
    return Mechanism((1.0,), (1.0,), chance)


@dataclass(frozen=True)
class Game:
    """A stop rule to play against, and its promise."""

    epsilon: float
    nothing: Costs
    cost: Callable[[Mechanism], Costs]
    accepts: Accepts
    menu: tuple[Mechanism, ...] = ()
    overshoots: tuple[float, ...] = ()  # of the loss above epsilon that cut mechanisms target
    leaks_up_to: float = 0.0  # a leak cut to the remaining limit, if above 0
    # An epsilon read from the totals: then the gain is the probability that the loss ever exceeds
    # it.
    odometer: Callable[[Costs], float] | None = None

    def best(self, depth: int) -> float:
        """The largest delta that any strategy with this many questions reaches."""
        return self._best(self.nothing, 1.0, 1.0, depth)

    def _best(self, totals: Costs, first: float, second: float, depth: int) -> float:
        most = self._gain(totals, first, second)
        if depth == 0 or first <= 0.0 or second <= 0.0:
            return most
        for mechanism in self._choices(totals, first, second):
            after = tuple(a + b for a, b in zip(totals, self.cost(mechanism), strict=True))
            reached = sum(
                self._best(after, first * p, second * q, depth - 1) for p, q in mechanism.outcomes()
            )
            most = max(most, reached)
        return most

    def _gain(self, totals: Costs, first: float, second: float) -> float:
        if self.odometer is None:
            return max(0.0, first - math.exp(self.epsilon) * second)
        # By more than the error of floats: the likeliest answers attain a pure loss exactly.
        passed = first > math.exp(self.odometer(totals) + 1e-9) * second
        return first if passed else 0.0

    def _choices(self, totals: Costs, first: float, second: float) -> Iterable[Mechanism]:
        yield from (each for each in self.menu if self.accepts(totals, self.cost(each)))
        missing = self.epsilon - math.log(first / second)
        for over in self.overshoots:
            if missing + over > 0.0:
                yield from self._cut(totals, partial(rare, loss=missing + over))
        if self.leaks_up_to:
            yield from self._cut(totals, leaky_input, self.leaks_up_to)

    def _cut(
        self, totals: Costs, made: Callable[[float], Mechanism], most: float = 0.999999
    ) -> Iterable[Mechanism]:
        """The mechanism with the largest probability that is still accepted, by bisecting its
        log.
        """
        low, high = math.log(most) - 40.0, math.log(most)
        if self.accepts(totals, self.cost(made(math.exp(high)))):
            return [made(math.exp(high))]
        if not self.accepts(totals, self.cost(made(math.exp(low)))):
            return []
        for _ in range(34):
            middle = (low + high) / 2
            if self.accepts(totals, self.cost(made(math.exp(middle)))):
                low = middle
            else:
                high = middle
        return [made(math.exp(low))]
