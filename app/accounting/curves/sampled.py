"""Renyi curves of Gaussian noise on a Poisson sample: continuous for the calculator, discrete for
releases.

Theorem: Mironov, Talwar and Zhang 2019, for adding or removing a record. Let q be the sampling
rate, s the noise multiplier, P = (1-q) N(0, s^2) + q N(1, s^2) and Q = N(0, s^2). The worse
direction is D_a(P || Q). At integer a,

    exp((a-1) D_a) = sum_k C(a,k) (1-q)^(a-k) q^k exp((k^2-k)/(2 s^2)).

Between integer orders (a-1) D_a is convex, so a line between the neighbours bounds it. At any order
let X = dN(1, s^2)/dQ. Minkowski's inequality in L_a(Q), |1-q + q X|_a <= 1-q + q |X|_a, gives

    D_a <= a/(a-1) ln(1 + q (exp((a-1)/(2 s^2)) - 1)).

This is near the truth at high orders, where the sum is long. The code takes the least of the bounds
that apply, and never more than without sampling.

At low non-integer orders the moment itself is integrated, by sums of step h. It is I = E (1-q + q
exp(U/s - 1/(2 s^2)))^a for a normal U. The integrand is analytic where the imaginary part of U is
at most d, for any d < pi s, and there at most exp(d^2/2) times as large. So the relative error of
the sum is at most 2 exp(d^2/2) / (exp(2 pi d / h) - 1) for any such d (Trefethen and Weideman 2014,
Theorem 5.1). The sum is cut off 12 beyond both peaks. As (1-q + q x)^a <= 1 + x^a, this omits at
most P(U > 12) (1 + exp((a^2-a)/2s^2)) on each side. Both errors are added.

Discrete noise of parameter t on integer vectors; a row adds v with |v| <= r, s = t/r.
- Given which other rows are in the sample, neighbours release N_u against (1-q) N_u + q N_(u+v).
  The moment E_Q (P/Q)^a is jointly convex, so the worst u bounds the mixture. Translations by
  integers change nothing. So P = (1-q) N_0 + q N_v against Q = N_0, in d dimensions as in one.
- Let X = N_v / N_0. For integer k, E_Q X^k = exp((k^2-k) |v|^2 / (2 t^2)) exactly, because k v is a
  point of the lattice again. For real k it is at most that (Canonne, Kamath and Steinke 2020,
  Proposition 5). So the sum above and Minkowski's bound hold unchanged. The integral may not hold,
  and is left out.
- The other direction is never worse. z -> v - z swaps N_0 and N_v, and X with 1/X. Add up both
  moments over such pairs, with A = 1-q + q X, B = 1-q + q/X, X >= 1 and h = a - 1/2. It is enough
  if sqrt(A) sinh(h ln A) >= X sqrt(B) sinh(h ln 1/B). At h = 1/2 both sides are q (X-1) / 2. As A B
  = 1 + (q - q^2) (X-1)^2 / X >= 1, the left one grows at least as fast in h, in proportion.
- Replacing a row has two bounds, and the code takes the least. By way of the table without the row,
  D_a(P || Q) <= (a-1/2)/(a-1) D_2a(P || R) + D_(2a-1)(R || Q) (Mironov 2017, Proposition 11). As
  the moment is convex, it is at most 1-q + q exp(2 a (a-1) / s^2) for |v - w| <= 2 r.
"""

from decimal import Decimal, localcontext

from app.accounting.precise import CONTEXT
from app.caches import owned_cache

WHOLE_ORDER_MAX = 1025
_INTEGRAL_ORDER_MAX, _INTEGRAL_MULTIPLIER_MIN = 16, Decimal("0.2")
_PI = Decimal("3.141592653589793238462643383279502884197")
_EXPONENT_MAX = 10**8  # decimals end near exp(2.3e9)


def sampled_gaussian(rate: Decimal, multiplier: Decimal, order: Decimal) -> Decimal:
    """Divergence with continuous noise; a row is added or removed."""
    between = order != int(order) and order < _INTEGRAL_ORDER_MAX
    if not between or multiplier < _INTEGRAL_MULTIPLIER_MIN:
        return sampled_discrete_gaussian(rate, multiplier, order)
    with localcontext(CONTEXT):
        rho = 1 / (2 * multiplier * multiplier)
        bound = min(rho * order, _minkowski(rate, rho, order))
        return min(bound, _by_integral(rate, multiplier, order) / (order - 1))


def sampled_discrete_gaussian(rate: Decimal, multiplier: Decimal, order: Decimal) -> Decimal:
    """Divergence with discrete noise, also valid for continuous noise; a row is added or
    removed."""
    with localcontext(CONTEXT):
        rho = 1 / (2 * multiplier * multiplier)
        bound = min(rho * order, _minkowski(rate, rho, order))
        below = int(order)
        above = below if order == below else below + 1
        if above > WHOLE_ORDER_MAX or above * above * rho > _EXPONENT_MAX:
            return bound
        high = _log_moment(rate, multiplier, above)
        if order == above:
            return min(bound, high / (order - 1))
        low = _log_moment(rate, multiplier, below) if below > 1 else Decimal(0)
        share = order - below
        return min(bound, ((1 - share) * low + share * high) / (order - 1))


def replaced_discrete_gaussian(rate: Decimal, multiplier: Decimal, order: Decimal) -> Decimal:
    """Divergence with discrete noise; a row is replaced.

    The multiplier is that of one row, which moves the sum by up to twice its norm."""
    with localcontext(CONTEXT):
        a, whole = order, 2 * order / (multiplier * multiplier)
        bound = whole
        exponent = (a - 1) * whole
        if exponent <= _EXPONENT_MAX:
            bound = min(bound, (1 - rate + rate * exponent.exp()).ln() / (a - 1))
        first = sampled_discrete_gaussian(rate, multiplier, 2 * a)
        second = sampled_discrete_gaussian(rate, multiplier, 2 * a - 1)
        return min(bound, (a - Decimal("0.5")) / (a - 1) * first + second)


@owned_cache(maxsize=8192)
def _by_integral(rate: Decimal, multiplier: Decimal, a: Decimal) -> Decimal:
    """Upper bound of ln I."""
    with localcontext(CONTEXT):
        strip = min(Decimal(3) * multiplier, Decimal(10))
        step = (2 * _PI * strip / (60 + strip * strip / 2)).quantize(Decimal("0.0001"))
        shift = 1 / (2 * multiplier * multiplier)
        total = Decimal(0)
        u = Decimal(-12)
        while u <= a / multiplier + 12:
            inner = 1 - rate + rate * (u / multiplier - shift).exp()
            total += (a * inner.ln() - u * u / 2).exp()
            u += step
        summed = total * step / (2 * _PI).sqrt() * (1 + Decimal("1e-24"))
        cut = Decimal("4e-33") * (1 + ((a * a - a) * shift).exp())  # P(U > 12) < 1.8e-33
        return (summed + cut).ln()


def _minkowski(rate: Decimal, rho: Decimal, order: Decimal) -> Decimal:
    x = (order - 1) * rho
    if x > _EXPONENT_MAX:
        return rho * order
    return order / (order - 1) * (1 + rate * (x.exp() - 1)).ln()


@owned_cache(maxsize=8192)
def _log_moment(rate: Decimal, multiplier: Decimal, a: int) -> Decimal:
    """(a-1) D_a at an integer order: each term of the sum follows from the one before."""
    with localcontext(CONTEXT):
        odds = rate / (1 - rate)
        growth = (1 / (multiplier * multiplier)).exp()
        term = total = (1 - rate) ** a
        factor = odds
        for k in range(a):
            term *= factor * (a - k) / (k + 1)
            total += term
            factor *= growth
        # Each step rounds in the fortieth digit; the growth factor repeats its own error.
        return (total * (1 + Decimal("1e-30"))).ln()
