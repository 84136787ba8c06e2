"""Largest private probability of keeping a key of n persons, as integers over 2^64.

Theorem: Desfontaines, Voss, Gipson and Mandayam (2022). A coin keeps a key of n persons with
probability p(n), p(0) = 0. Consider neighbours whose n differs by one. The coin is (epsilon,
delta)-private if and only if this holds for every n: no probability of either side is more than
exp(epsilon) times that of the other, plus delta. Among all such p the largest, for every n at once,
is

    p(n + 1) = min( exp(epsilon) p(n) + delta, 1 - exp(-epsilon) (1 - p(n) - delta), 1 ).

Rounding: the step starts from the rounded p(n) and rounds down, with exp(epsilon) and delta from
below and exp(-epsilon) from above. So the table itself, and not only the real numbers it
approximates, satisfies all of these inequalities. As p(n + 1) > p(n) until p(n) = 1, the two that
bound p(n) by p(n + 1) hold too.
"""

from array import array
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from app.caches import owned_cache

WHOLE = 1 << 64
ROWS_MAX = 200_000
_BITS = 192  # fractional bits of the factors in each step
_CONTEXT = Context(prec=140, rounding=ROUND_FLOOR, Emax=10**9, Emin=-(10**9))
_EXPONENT_MAX = Decimal(100)  # a smaller e keeps no more, and e^-100 is far below 2^-64
_OFF = Decimal("1e-100")  # far more than the relative error of the context


@owned_cache(maxsize=16)
def keep_table(epsilon: Fraction, delta: int, keys: int) -> Sequence[int] | None:
    """p(0), p(1), ... while below 1, in units of 2^-64; every later value is 1.

    One person changes at most `keys` keys, by one person each. All of them together are (keys *
    epsilon, delta * 1e-18)-private: each coin is (epsilon, d)-private with (1 - d)^keys = 1 -
    delta. None if the table would be longer than ROWS_MAX, or would never leave 0."""
    with localcontext(_CONTEXT):
        exponent = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        exponent = min(exponent, _EXPONENT_MAX)
        grows = exponent.exp() * (1 - _OFF)
        falls = 1 / grows
        delta_per_key = (1 - ((1 - Decimal(delta).scaleb(-18)).ln() / keys).exp()) * (1 - _OFF)
        unit = Decimal(1 << _BITS)
        factor, shrunk = int(grows * unit), int(falls * unit) + 1
        added = int(delta_per_key * WHOLE * unit)
    if added < 1 << _BITS:  # less than one unit of 2^-64: no key could ever be kept
        return None
    table = array("Q")
    kept = 0
    while kept < WHOLE:
        if len(table) == ROWS_MAX:
            return None
        table.append(kept)
        more = (factor * kept + added) >> _BITS
        dropped = ((WHOLE - kept) << _BITS) - added
        less = WHOLE - -(-shrunk * max(dropped, 0) >> 2 * _BITS)
        kept = min(more, less, WHOLE)
    return table
