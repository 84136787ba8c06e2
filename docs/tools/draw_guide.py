"""Draw the pictures of docs/guide/ and compute the table in currencies.md: `make pictures`.

Every figure comes from the code that the service runs: the trade-off curves, the plan of a count,
and the stop rules of accounts. Nothing is random, so the files are the same on every machine.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from app.accounting import COMPOSITION_RULES
from app.accounting.losses import pure_loss
from app.accounting.rules.terms import GrantTerms
from app.accounting.tradeoff.curve import tradeoff_of
from app.accounting.units import PICO
from app.data.card import Card
from app.demo.cards import CENSUS
from app.ledger.account import Account
from app.ledger.balance import Balance
from app.planning.plan import make_plan
from app.planning.request import Question

GUIDE = Path(__file__).resolve().parents[1] / "guide"
CURRENCIES_PAGE = GUIDE / "currencies.md"
TABLE_BEGIN, TABLE_END = "<!-- counts: begin -->", "<!-- counts: end -->"
WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 68, 30, 44, 50
INK, QUIET, GRID = "#1c2733", "#5b6b7a", "#e3e8ee"
COLOURS = ("#1b6ca8", "#c1440e", "#2f7d32", "#7b3fa0", "#8a6d00")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 5")
PROMISE = GrantTerms(epsilon=Decimal(3), delta=Decimal("1e-6"))
PURE = GrantTerms(epsilon=Decimal(3))

Point = tuple[float, float]


class Line(NamedTuple):
    """A line with its name, which stands beside the point `at`, moved by `aside`."""

    name: str
    points: Sequence[Point]
    at: int
    aside: tuple[float, float] = (8, -6)
    anchor: str = "start"


class Axis(NamedTuple):
    name: str
    marks: Sequence[tuple[float, str]]  # the first and the last are the ends
    logarithmic: bool = False

    def share(self, value: float) -> float:
        low, high = self.marks[0][0], self.marks[-1][0]
        if self.logarithmic:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)


def chart(title: str, across: Axis, up: Axis, lines: Sequence[Line], *more: str) -> str:
    """Lines in one picture, on a white ground, each with its name beside it."""

    def parts() -> Iterator[str]:
        yield _text(LEFT, 24, title, INK, "start", 'font-weight="bold" font-size="14"')
        for value, name in up.marks:
            y = _up(up, value)
            yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>'
            yield _text(LEFT - 8, y + 4, name, QUIET, "end")
        for value, name in across.marks:
            x = _across(across, value)
            yield f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{GRID}"/>'
            yield _text(x, HEIGHT - BOTTOM + 18, name, QUIET, "middle")
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield _text(middle, HEIGHT - 10, across.name, INK, "middle")
        turned = f'transform="rotate(-90 16 {HEIGHT / 2:.0f})"'
        yield _text(16, HEIGHT / 2, up.name, INK, "middle", turned)
        yield from more
        for number, line in enumerate(lines):
            spots = [(_across(across, x), _up(up, y)) for x, y in line.points]
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
            dash = f' stroke-dasharray="{DASHES[number]}"' if DASHES[number] else ""
            colour = COLOURS[number]
            yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
        for number, line in enumerate(lines):
            x, y = (_across(across, line.points[line.at][0]), _up(up, line.points[line.at][1]))
            colour, (right, down) = COLOURS[number], line.aside
            yield _text(x + right, y + down, line.name, colour, line.anchor, 'font-weight="bold"')

    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
    )
    return head + "\n".join(parts()) + "\n</svg>\n"


def _across(axis: Axis, value: float) -> float:
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def _up(axis: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, colour: str, anchor: str, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" {more}>'
        f"{escape(text)}</text>"
    )


def _percent(*values: int) -> list[tuple[float, str]]:
    return [(value / 100, f"{value} %") for value in values]


def _marks(*values: str) -> list[tuple[float, str]]:
    return [(float(value), value) for value in values]


# The attacker


def caught(epsilon: str, accused: float) -> float:
    """The largest share of persons that an attack recognizes at a rate of false accusations."""
    curve = tradeoff_of(pure=Fraction(epsilon), alphas=[accused])
    return 1 - curve.betas[0]


def tradeoff_svg() -> str:
    # The curve of an epsilon is two straight lines, which meet at 1 / (1 + e^epsilon).
    lines = [
        Line(
            f"epsilon {price}",
            [(a, caught(price, a)) for a in (0.0, 1 / (1 + math.exp(float(price))), 1.0)],
            1,
            aside,
        )
        for price, aside in [("3", (10.0, 22.0)), ("1", (10.0, 18.0)), ("0.1", (-8.0, -12.0))]
    ]
    lines[2] = lines[2]._replace(anchor="end")
    lines.append(Line("blind guessing", [(0, 0), (1, 1)], 1, (-14, 66), "end"))
    return chart(
        "The best attack that any answers can allow",
        Axis("persons outside the data who are wrongly accused", _percent(0, 20, 40, 60, 80, 100)),
        Axis("persons in the data who are recognized", _percent(0, 20, 40, 60, 80, 100)),
        lines,
    )


# Error against price


def half_width(epsilon: float) -> float:
    """The half width at 95 % that a plan promises for a count on the demo census."""
    question = Question.model_validate(
        {"dataset": "census", "query": {"kind": "count"}, "privacy": {"epsilon": f"{epsilon:.6f}"}}
    )
    around = ("name", "description", "source")
    card = Card.model_validate({k: v for k, v in CENSUS.items() if k not in around})
    width = make_plan(question, card).release.expected_error(0.95).half_width
    assert width is not None
    return float(width)


def error_svg() -> str:
    prices = [0.01 * 10 ** (step / 12) for step in range(25)]
    widths = [half_width(price) for price in prices]
    lines = [
        Line(
            f"a group of {size:,} rows",
            [(price, width / size) for price, width in zip(prices, widths, strict=True)],
            10,
            (6, -14),
        )
        for size in (100, 1_000, 10_000)
    ]
    return chart(
        "Error of a count against its price, as a share of the count",
        Axis("epsilon", _marks("0.01", "0.03", "0.1", "0.3", "1"), logarithmic=True),
        Axis(
            "half width at 95 %, over the count",
            [(10.0**power, f"{10.0 ** (power + 2):,.4g} %") for power in range(-4, 2)],
            logarithmic=True,
        ),
        lines,
    )


# Budgets


def account(currency: str) -> Account:
    """A made-up account with the promise (3, 1e-6), or (3, 0) where the currency has no delta."""
    rule = COMPOSITION_RULES[currency]
    terms = rule.freeze(PURE if currency == "pure" else PROMISE)
    return Account("book", "holder", "holder", currency, terms, Balance(rule.nothing), 1)


def counts_of(currency: str, epsilon: str) -> int:
    """How many counts of this epsilon the account admits."""
    return account(currency).repeats_left(pure_loss(int(Decimal(epsilon) * PICO)))


def burn_down(currency: str, epsilon: str) -> list[Point]:
    """The share that is left after each count, until the account refuses."""
    cost = pure_loss(int(Decimal(epsilon) * PICO))
    paying, points = account(currency), [(0.0, 1.0)]
    for number in range(1, counts_of(currency, epsilon) + 1):
        paying = paying.admit(cost)
        points.append((float(number), 1 - paying.used))
    return points


def burn_down_svg() -> str:
    names = {"pure": 30, "gdp": 60, "zcdp": 80}
    lines = [Line(name, burn_down(name, "0.05"), at) for name, at in names.items()]
    return chart(
        "Burn-down: counts of epsilon 0.05 from a budget of (3, 1e-6)",
        Axis("counts asked", [(n, str(n)) for n in range(0, 161, 20)]),
        Axis("share of the budget left", _percent(0, 25, 50, 75, 100)),
        lines,
    )


def questions_svg() -> str:
    prices = [f"{0.005 * 600 ** (step / 40):.4f}" for step in range(41)]
    names = {"pure": (-8.0, 16.0), "gdp": (-8.0, 14.0), "zcdp": (8.0, -6.0)}
    lines = [
        Line(name, [(float(price), float(counts_of(name, price))) for price in prices], 5, aside)
        for name, aside in names.items()
    ]
    lines[:2] = [line._replace(anchor="end") for line in lines[:2]]
    marks = _marks("0.005", "0.01", "0.03", "0.1", "0.3", "1", "3")
    return chart(
        "Counts that a budget of (3, 1e-6) buys",
        Axis("epsilon of each count", marks, logarithmic=True),
        Axis(
            "number of counts",
            [(10.0**power, f"{10**power:,}") for power in range(6)],
            logarithmic=True,
        ),
        lines,
    )


def counts_table() -> str:
    """Counts by currency and epsilon, as Markdown."""
    prices = ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
    lines = [
        f"| epsilon of a count | {' | '.join(prices)} |",
        "|---" * (len(prices) + 1) + "|",
    ]
    for name in COMPOSITION_RULES:
        cells = (f"{counts_of(name, price):,}" for price in prices)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def currencies_page() -> str:
    """The page about currencies, with its table computed again."""
    before, _, rest = CURRENCIES_PAGE.read_text().partition(TABLE_BEGIN)
    _, _, after = rest.partition(TABLE_END)
    return f"{before}{TABLE_BEGIN}\n{counts_table()}\n{TABLE_END}{after}"


DRAWN: dict[str, Callable[[], str]] = {
    "tradeoff.svg": tradeoff_svg,
    "error.svg": error_svg,
    "burn-down.svg": burn_down_svg,
    "questions.svg": questions_svg,
}


def pictures() -> dict[Path, str]:
    drawn = {GUIDE / name: draw() for name, draw in DRAWN.items()}
    return {**drawn, CURRENCIES_PAGE: currencies_page()}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text)
