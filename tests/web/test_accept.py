"""Which callers get a page: those whose `Accept` prefers HTML to JSON."""

import pytest

from app.web.accept import prefers_html

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    "accept",
    [
        BROWSER,
        "text/html",
        "TEXT/HTML;Q=0.5",
        "text/html;charset=utf-8;q=0.9, application/json;q=0.8",
        "application/json;q=0.2, text/*;q=0.3",
        "*/*, application/json;q=0",
        "*/*;q=0.1, text/html;q=0.2",
    ],
)
def test_a_page_is_preferred(accept: str) -> None:
    assert prefers_html([accept])
    assert prefers_html(accept.split(","))  # the header may be sent in several lines


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/json",
        "text/html, application/json",
        "text/html;q=0.5, application/json;q=0.6",
        "text/html;q=0",
        "*/*, text/html;q=0",
        "text/html;q=0.5, */*",
        "text/plain",
        "html",
        "text/html;q=0.5, application/*;q=0.5",
    ],
)
def test_json_is_the_default(accept: str) -> None:
    assert not prefers_html([accept])
    assert not prefers_html([])


def test_an_unreadable_part_is_left_out_and_a_long_header_takes_no_time() -> None:
    assert prefers_html(["text/html; q=x y, ///, ,,"])
    assert not prefers_html(["a/" * 50_000 + ";q=" * 50_000])
