"""Templates, and the headers of every page. Values are escaped wherever they stand."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from app.web import charts, numbers, static_files

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("app.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "short": numbers.short,
        "exact": numbers.exact,
        "amount": numbers.amount,
        "price": numbers.price,
        "percent": numbers.percent,
        "count": numbers.count,
        "moment": numbers.moment,
        "day": numbers.day,
    }
    made.globals |= {
        "static": static_files.address,
        "zip": zip,
        "bar": charts.bar,
        "sparkline": charts.sparkline,
        "stacked": charts.stacked,
    }
    return made


def page(template: str, values: Mapping[str, Any], status: int = 200) -> Response:
    text = environment().get_template(template).render(values)
    return HTMLResponse(text, status_code=status)
