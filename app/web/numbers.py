"""Numbers and times as people read them; the exact value is on hover."""

from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from markupsafe import Markup, escape

DIGITS = 3
MINUS = "\u2212"  # the minus sign, which is as wide as a digit
NOTHING = "\u2013"


def short(value: float | int | str | None, digits: int = DIGITS) -> str:
    """About three significant digits: 0.0501, 2.9, 1,240, 1.2e-6."""
    if value is None:
        return NOTHING
    number = float(value)
    if number == 0:
        return "0"
    size = abs(number)
    if 1e-4 <= size < 1e15:
        places = max(0, digits - 1 - _exponent(size))
        text = f"{number:,.{places}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return text.replace("-", MINUS, 1) if number < 0 else text


def _exponent(size: float) -> int:
    return int(f"{size:e}".split("e")[1])


def exact(value: float | int | str | None, exact_text: str | None = None) -> Markup:
    """A short number with its exact value on hover."""
    shown = short(value)
    whole = exact_text or ("" if value is None else _plain(value))
    if whole in ("", shown, shown.replace(",", "")):
        return escape(shown)
    return Markup('<span class="number" title="{}">{}</span>').format(whole, shown)


def _plain(value: float | int | str) -> str:
    return value if isinstance(value, str) else repr(value)


def amount(loss: dict[str, Any] | None, name: str = "epsilon") -> Markup:
    """One member of a loss, such as its epsilon, with the exact text that the interface sends."""
    if loss is None:
        return escape(NOTHING)
    return exact(loss.get(name), loss.get(f"{name}_exact"))


def price(loss: dict[str, Any]) -> Markup:
    """A price in words: epsilon, or else rho, and a delta above 0. It is rounded up, so that
    a button never names less than it takes."""
    if loss.get("epsilon") is None and loss.get("rho"):
        text = Markup("rho {}").format(_rounded_up(loss, "rho"))
    else:
        text = Markup("ε {}").format(_rounded_up(loss, "epsilon"))
    if loss.get("delta"):
        text += Markup(" and δ {}").format(_rounded_up(loss, "delta"))
    return text


def _rounded_up(loss: dict[str, Any], name: str) -> Markup:
    value = loss.get(name)
    if value is None:
        return escape(NOTHING)
    whole = str(loss.get(f"{name}_exact") or _plain(value))
    rounded = Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal(whole)
    shown = short(float(rounded))
    if Decimal(whole) == rounded:
        return escape(shown)
    return Markup('<span class="number" title="{}">{}</span>').format(whole, shown)


def percent(share: float | None, digits: int = 2) -> str:
    """A share as percent: 0.853 is 85 %, and 0.0012 is 0.12 %."""
    if share is None:
        return NOTHING
    number = 100 * share
    if number in (0, 100):
        return f"{number:.0f} %"
    if number > 99:  # never "100 %" for a budget that is not used up
        return f"{min(number, 99.9):.1f} %"
    return f"{short(number, digits)} %"


def count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def moment(text: str | None) -> Markup:
    """A time of the interface, to the minute; the whole of it on hover."""
    if text is None:
        return escape(NOTHING)
    shown = text[:16].replace("T", " ")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(text, shown)


def day(text: str | None) -> str:
    return NOTHING if text is None else text[:10]
