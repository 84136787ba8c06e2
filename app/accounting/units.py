"""Privacy loss in integer units: epsilon in 1e-12 (pico), delta in 1e-18 (atto), each in 64 bits.

A cost for an analyst rounds up and a limit of an account rounds down, so no rounding ever favours
spending. Decimal text and JSON numbers are read exactly; no float is ever added up.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

PICO = 10**12
ATTO = 10**18
UNITS_MAX = 2**63 - 1
_EXACT = Context(prec=60)


def cost_units(value: Decimal, unit: int) -> int:
    """Units that pay for `value`: rounded up."""
    return int(_EXACT.multiply(value, Decimal(unit)).to_integral_value(ROUND_CEILING))


def limit_units(value: Decimal, unit: int) -> int:
    """Units that `value` allows: rounded down."""
    return int(_EXACT.multiply(value, Decimal(unit)).to_integral_value(ROUND_FLOOR))


def exact_decimal(units: int, unit: int) -> str:
    """Exact decimal text of a number of units (unit is PICO or ATTO), without an exponent."""
    whole, part = divmod(units, unit)
    if part == 0:
        return str(whole)
    places = 12 if unit == PICO else 18
    return f"{whole}.{part:0{places}d}".rstrip("0")


def wire(name: str, units: int, unit: int) -> dict[str, float | str]:
    """A JSON number, with the exact decimal text beside it where the number is not exact."""
    number, exact = _number_and_text(units, unit)
    return {name: number} if exact is None else {name: number, f"{name}_exact": exact}


def wire_text(name: str, units: int, unit: int) -> str:
    """The same as text of JSON members."""
    number, exact = _number_and_text(units, unit)
    text = f'"{name}":{number!r}'
    return text if exact is None else f'{text},"{name}_exact":"{exact}"'


@lru_cache(maxsize=4096)
def _number_and_text(units: int, unit: int) -> tuple[float, str | None]:
    exact = exact_decimal(units, unit)
    number = units / unit  # integer division: correctly rounded
    same = repr(number) == exact or Decimal(repr(number)) == Decimal(exact)
    return number, None if same else exact
