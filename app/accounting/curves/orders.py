"""Public grid of Renyi orders: frozen, because accounts hold one spend for each of them.

It is spaced geometrically in (order - 1). Against all real orders it costs at most 0.85 % of
epsilon for Gaussian totals (rho 1e-4 to 5, delta down to 1e-12).
"""

from fractions import Fraction

_TEXT = (
    *("1.25", "1.5", "1.75", "2", "2.5", "3", "3.5", "4", "5", "6", "7", "8", "9", "10", "12"),
    *("14", "16", "19", "22", "26", "30", "35", "41", "48", "56", "66", "78", "92", "108", "128"),
    *("152", "180", "214", "256", "306", "366", "440", "530", "640", "1024"),
)
ORDERS: tuple[Fraction, ...] = tuple(Fraction(text) for text in _TEXT)
PLACES: dict[str, int] = {text: place for place, text in enumerate(_TEXT)}
# all orders are multiples of a quarter
QUARTERS: tuple[int, ...] = tuple(int(4 * order) for order in ORDERS)
