"""Threshold that hides a key if only one person has it.

Noise goes on the count of every key that some row has, and a key is released if its noisy count is
at least T. Two neighbouring tables share most keys. Every other key belongs to one table alone, and
a table has at most m rows with such keys (`queries/shapes/private_keys.py`). Let f bound the
probability that a table releases any key that it has alone.

Theorem: if noise makes the counts of the shared keys (epsilon, d)-private, then the release is
(epsilon, d + f)-private. If a curve bounds the counts, it bounds the release except with
probability f.

Proof: draw noise for all keys. Given that table x releases none of its own keys, its answer is that
of the shared ones, P_0; likewise Q_0 for x'. So P = (1 - f_x) P_0 + f_x P_1 with f_x <= f, which is
also (1 - f) P_0 + f P_2, and Q = (1 - f) Q_0 + f Q_2 likewise. Each side fails with probability at
most f, and the pair P_0, Q_0 is noise on shared counts. Then P(S) <= (1 - f)(e^epsilon Q_0(S) + d)
+ f <= e^epsilon Q(S) + d + f. The proof allows own keys on either side, so the same f holds for
replace_one, where both sides have them.

Size of f: let q(r) be the probability that noise reaches T - r. A table releases a key of its own
with r rows in it with probability q(r), keys independently. So with at most m rows in total f = max
of 1 - prod (1 - q(r_i)) over r_1 + r_2 + ... <= m, r_i >= 1. For T > m the steps q(r + 1) - q(r) =
P(Z = T - r - 1) grow with r, so g(r) = -ln(1 - q(r)) is convex and increasing. Consider all ways to
put m rows into j keys. The sum of g is then largest for one key with m - j + 1 rows and j - 1 keys
with one row. This is convex in j, so largest for j = 1 or j = m:

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
    """The least threshold T > rows whose failure probability is at most `failure` units."""
    with localcontext(_EXACT):
        limit = Decimal(failure) / ATTO
        # 1 - (1 - q)^m <= limit for q <= 1 - (1 - limit)^(1/m)
        per_row_limit = (1 - ((1 - limit).ln() / rows).exp()) * (1 - _OFF)
    return max(rows + 1, 1 + tail.reach(per_row_limit), rows + tail.reach(limit))


def failure_units(tail: Tail, rows: int, threshold: int) -> int:
    """Failure probability f, rounded up to units; requires a threshold above the rows of a
    person."""
    if threshold <= rows:
        raise ValueError("the threshold must be above the number of rows of one person")
    together = tail.between(threshold - rows)[1]
    alone = tail.between(threshold - 1)[1]
    with localcontext(_EXACT):
        spread = (1 - ((1 - alone).ln() * rows).exp()) * (1 + _OFF)
        return _units(max(together, spread))


def units_above(tail: Tail, k: int) -> int:
    """Probability that noise reaches k, rounded up to units."""
    with localcontext(_EXACT):
        return _units(tail.between(k)[1])


def _units(chance: Decimal) -> int:
    return max(1, int((min(Decimal(1), chance) * ATTO).to_integral_value(ROUND_CEILING)))
