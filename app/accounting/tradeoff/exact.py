"""Trade-off functions in closed form: f(α) is the least β of any attack.

An attack examines a release and decides which of two neighbouring datasets it came from; α is the
rate of wrong decisions for "the second", β that for "the first". By the lemma of Neyman and Pearson
the best attack decides for "the second" where the likelihood ratio is large, and mixes on ties: f
joins the points (α, β) of those sets by straight lines. Every f here is its own inverse.

Sources: Wasserman and Zhou 2010, Kairouz, Oh and Viswanath 2015 (randomised response, leaks); Dong,
Roth and Su 2022 (Laplace, Gaussian).

Rounding: none here; `curve.py` lowers the shown values.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

from app.accounting.precise import CONTEXT, decimal
from app.caches import owned_cache

TradeoffCurve = Callable[[float], float]  # maps α in [0, 1] to β
REPEATS_MAX = 20_000
_EXPONENT_MAX = 700.0
_NORMAL = NormalDist()


def limited(epsilon: float, delta: float) -> TradeoffCurve:
    """max(0, 1 - δ - exp(ε) α, exp(-ε) (1 - δ - α)): the curve of leaky randomised response.

    It shows its input with probability δ, and otherwise answers truly with odds exp(ε). No (ε,
    δ)-private mechanism has a lower curve. With ε = 0 it is the leaky input, with δ = 0 plain
    randomised response."""
    falling = _exp(-epsilon)

    def curve(alpha: float) -> float:
        kept = 1.0 - delta
        return max(0.0, kept - _times_exp(alpha, epsilon), falling * (kept - alpha))

    return curve


def randomized_response(epsilon: float, categories: int) -> TradeoffCurve:
    """One of k answers, the true one with odds exp(ε), where one person's truth is replaced.

    The ratios are exp(ε), 1 and exp(-ε); 1 has the probability (k - 2) / (exp(ε) + k - 1)."""
    # Divided by exp(ε), so that nothing overflows; α sums the falling ratios, β the rising ones.
    per_category = _exp(-epsilon) / (1.0 + (categories - 1) * _exp(-epsilon))
    wrong = (categories - 1) * per_category
    return joined([(0.0, 1.0), (per_category, wrong), (wrong, per_category), (1.0, 0.0)])


def repeated_randomized_response(epsilon: Fraction, repeats: int) -> TradeoffCurve:
    """k binary answers, all with the same ε.

    The ratio grows with the number of answers "the second". This number is binomial with chance
    1 / (1 + exp(ε)) on one side and exp(ε) / (1 + exp(ε)) on the other. The queries may be
    adaptive; ε and k are fixed in advance."""
    if not 1 <= repeats <= REPEATS_MAX:
        raise ValueError(f"between 1 and {REPEATS_MAX} repeats")
    return joined(_binomial_corners(epsilon, repeats))


@owned_cache(maxsize=32)
def _binomial_corners(epsilon: Fraction, repeats: int) -> list[tuple[float, float]]:
    with localcontext(CONTEXT):
        odds = (-decimal(epsilon)).exp()  # odds of a wrong answer
        chance = (1 / (1 + odds)) ** repeats  # chance that none is wrong
        wrong = []  # chance of i wrong answers
        for i in range(repeats + 1):
            wrong.append(chance)
            chance = chance * odds * (repeats - i) / (i + 1)
        # "The second" if at least t of k answers are "the second": under the first those are wrong,
        # and under the second a miss has more than k - t wrong ones. Tails are added up from the
        # small end.
        tails = [Decimal(0)]
        for chance_of_count in reversed(wrong):
            tails.append(tails[-1] + chance_of_count)
        tails.reverse()  # tails[t]: at least t wrong answers
        return [
            (min(1.0, float(tails[t])), min(1.0, float(tails[repeats + 1 - t])))
            for t in range(repeats + 1, -1, -1)
        ]


def laplace(epsilon: float) -> TradeoffCurve:
    """Continuous Laplace noise, with answers 1/ε scales apart.

    1 - exp(ε) α up to α = exp(-ε)/2, then exp(-ε) / (4α) up to α = 1/2, then exp(-ε) (1 - α)."""
    falling = _exp(-epsilon)

    def curve(alpha: float) -> float:
        if alpha > 0.5:
            return falling * (1.0 - alpha)
        if alpha <= falling / 2.0:
            return 1.0 - _times_exp(alpha, epsilon)
        return falling / (4.0 * alpha)

    return curve


def discrete_laplace(epsilon: float, steps: int) -> TradeoffCurve:
    """Discrete Laplace noise, p = exp(-ε/steps), on answers `steps` apart.

    The corners are the sets {answer >= t}, t from 0 to steps + 1: α = 1 - p/(1+p) at 0,
    p^t/(1+p) above, β = α at steps + 1 - t. Between two corners it is straight; one step is
    `limited(ε, 0)`.

    A vector of answers with this noise on each, with changes that add up to `steps`, has no
    lower curve. Take two answers that change by a + b = steps. The ratio is a function of w = u
    + v, where u, v are the answers clamped to [0, a] and [0, b]. At 0 and at `steps` w has less
    probability than one answer clamped to [0, steps], 1/(1+p)^2 for 1/(1+p); at every k between
    at least as much, 2 (1-p) p^k/(1+p)^2 for (1-p) p^k/(1+p). With equal means its ratio is
    therefore less spread, in convex order, hence its curve is higher; add further answers one by
    one."""
    step = epsilon / steps
    other = _exp(-step)

    def corner(t: int) -> tuple[float, float]:
        return _upper_tail(step, t), _upper_tail(step, steps + 1 - t)

    def curve(alpha: float) -> float:
        if alpha <= 0.0 or alpha >= 1.0:
            return 1.0 - alpha
        # The t with P(noise >= t) next above alpha: alpha lies between t and t + 1.
        guess = math.floor(-math.log(alpha * (1.0 + other)) / step) if alpha < 0.5 else 0
        t = min(max(guess, 0), steps)
        while t > 0 and _upper_tail(step, t) < alpha:
            t -= 1
        while t < steps and _upper_tail(step, t + 1) > alpha:
            t += 1
        right, left = corner(t), corner(t + 1)
        if alpha < left[0]:  # beyond the last corner: straight to (0, 1)
            return _between((0.0, 1.0), left, alpha)
        if alpha > right[0]:  # before the first corner: straight to (1, 0)
            return _between(right, (1.0, 0.0), alpha)
        return _between(left, right, alpha)

    return curve


def _upper_tail(step: float, t: int) -> float:
    """P(noise >= t) of discrete Laplace noise with p = exp(-step)."""
    if t >= 1:
        return _exp(-step * t) / (1.0 + _exp(-step))
    return 1.0 - _exp(-step * (1 - t)) / (1.0 + _exp(-step))


def gaussian(mu: float) -> TradeoffCurve:
    """Gaussian noise, with answers μ standard deviations apart: Φ(Φ⁻¹(1 - α) - μ)."""

    def curve(alpha: float) -> float:
        if alpha <= 0.0 or alpha >= 1.0:
            return 1.0 - alpha
        # Φ⁻¹(1 - α) = -Φ⁻¹(α), and Φ(-x) = erfc(x / √2) / 2, which preserve small α and β.
        return math.erfc((_NORMAL.inv_cdf(alpha) + mu) / math.sqrt(2.0)) / 2.0

    return curve


def leaking(curve: TradeoffCurve, delta: float) -> TradeoffCurve:
    """A mechanism that shows its input with probability δ, and otherwise has the given curve.

    An attack that errs with α on the whole errs with a <= α / (1 - δ) where nothing leaks, as
    leaks add no negative errors; and the best attack answers a leak truly. So β = (1 - δ) f(α /
    (1 - δ)), and 0 where that leaves [0, 1]. As a lower bound it holds for any pair P = (1 - δ)
    P' + δ P'', Q = (1 - δ) Q' + δ Q'' in which (P', Q') has the curve f."""

    def leaked(alpha: float) -> float:
        return (1.0 - delta) * curve(alpha / (1.0 - delta)) if alpha < 1.0 - delta else 0.0

    return leaked


def joined(corners: list[tuple[float, float]]) -> TradeoffCurve:
    """Straight lines between the corners, given from (0, 1) to (1, 0) in order of α."""
    alphas = [alpha for alpha, _ in corners]

    def curve(alpha: float) -> float:
        after = min(bisect_right(alphas, alpha), len(corners) - 1)
        return _between(corners[after - 1], corners[after], alpha)

    return curve


def _between(left: tuple[float, float], right: tuple[float, float], alpha: float) -> float:
    width = right[0] - left[0]
    if width <= 0.0:
        return min(left[1], right[1])
    share = min(1.0, max(0.0, (alpha - left[0]) / width))
    return (1.0 - share) * left[1] + share * right[1]


def _exp(x: float) -> float:
    return math.exp(x) if x <= _EXPONENT_MAX else math.inf


def _times_exp(factor: float, x: float) -> float:
    """factor * exp(x); 0 for a factor of 0, for any x."""
    return 0.0 if factor <= 0.0 else factor * _exp(x)
