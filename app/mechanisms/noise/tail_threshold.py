"""The bar that keeps a key to itself if only one person has it.

Noise goes on the count of every key that some row has, and a key is told if its noisy count is at
least T. Two neighbouring tables share most keys; of the others each belongs to one table alone, and
of these keys a table has at most m rows (`queries/shapes/private_keys.py`). Let f bound the
probability that a table tells any key that it has alone.

Theorem: if noise makes the counts of the shared keys (epsilon, d)-private, or a curve bounds them,
then the release is (epsilon, d + f)-private, and the curve bounds it except with probability f.
Proof: draw for all keys. Given that table x tells none of its own keys, its answer is that of the
shared ones, P_0; likewise Q_0 for x'. So P = (1 - f_x) P_0 + f_x P_1 with f_x <= f, which is also
(1 - f) P_0 + f P_2, and Q = (1 - f) Q_0 + f Q_2 likewise: each side fails with f at most, and the
pair P_0, Q_0 is noise on shared counts. Then P(S) <= (1 - f)(e^epsilon Q_0(S) + d) + f <=
e^epsilon Q(S) + d + f. Nothing is said of which side has keys of its own, so the same f does for
replace_one, where both have.

How large f is: let q(r) be the probability that noise reaches T - r. A table tells a key of its own
with r rows in it with probability q(r), keys independently, so with at most m rows in all
f = max of 1 - prod (1 - q(r_i)) over r_1 + r_2 + ... <= m, r_i >= 1. For T > m the steps
q(r + 1) - q(r) = P(Z = T - r - 1) grow with r, so g(r) = -ln(1 - q(r)) is convex and increasing. Of
all ways to put m rows into j keys the sum of g is then largest for one key with m - j + 1 of them
and j - 1 keys with one; and this is convex in j, so largest for j = 1 or j = m:

    f = max( q(m), 1 - (1 - q(1))^m )

(Korolova, Kenthapadi, Mishra and Ntoulas 2009; Bun, Nissim and Stemmer 2016: m = 1.)
Rounding: probabilities from above, T up, f up to a unit.
"""

from decimal import ROUND_CEILING, Context, Decimal, localcontext

from app.accounting.units import ATTO
from app.mechanisms.noise.tails import Tail

_EXACT = Context(prec=100, Emax=10**9, Emin=-(10**9))
_OFF = Decimal("1e-40")


def least_threshold(tail: Tail, rows: int, failure: int) -> int:
    """The least T > rows that fails with at most so many units of probability."""
    with localcontext(_EXACT):
        limit = Decimal(failure) / ATTO
        # 1 - (1 - q)^m <= limit for q <= 1 - (1 - limit)^(1/m)
        each = (1 - ((1 - limit).ln() / rows).exp()) * (1 - _OFF)
    return max(rows + 1, 1 + tail.reach(each), rows + tail.reach(limit))


def failure_units(tail: Tail, rows: int, threshold: int) -> int:
    """f, rounded up to units; for a threshold above the rows of a person."""
    if threshold <= rows:
        raise ValueError("a threshold is above the rows that one person has")
    together = tail.between(threshold - rows)[1]
    alone = tail.between(threshold - 1)[1]
    with localcontext(_EXACT):
        spread = (1 - ((1 - alone).ln() * rows).exp()) * (1 + _OFF)
        return _units(max(together, spread))


def units_above(tail: Tail, k: int) -> int:
    """How likely noise is to reach k, rounded up to units."""
    with localcontext(_EXACT):
        return _units(tail.between(k)[1])


def _units(chance: Decimal) -> int:
    return max(1, int((min(Decimal(1), chance) * ATTO).to_integral_value(ROUND_CEILING)))
