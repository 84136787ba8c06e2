"""The header `Prefer`: understood parts, and ignored ones."""

import signal

import pytest

from app.api.http.prefer import NONE, Preference, parse_preference

ASYNCHRONOUS = Preference(0, "respond-async")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("respond-async", ASYNCHRONOUS),
        ("Respond-Async", ASYNCHRONOUS),
        ('respond-async=""', ASYNCHRONOUS),
        ("respond-async; foo=bar", ASYNCHRONOUS),
        (" ,, respond-async ,", ASYNCHRONOUS),
        ("return=minimal, respond-async", ASYNCHRONOUS),
        ('x="a, wait=3; \\" respond-async", respond-async', ASYNCHRONOUS),
        ("respond-async, wait=5", Preference(5, "respond-async, wait=5")),
        ("wait=5,respond-async", Preference(5, "respond-async, wait=5")),
        ("wait=5", Preference(5, "wait=5")),
        ("WAIT = 5", Preference(5, "wait=5")),
        ('wait="5"', Preference(5, "wait=5")),
        ("wait=5; unit=s, wait=9", Preference(5, "wait=5")),
        ("wait=0", Preference(0, "wait=0")),
        ("wait=007", Preference(7, "wait=7")),
        ("wait=999999999", Preference(999_999_999, "wait=999999999")),
        ("respond-async, wait=soon", ASYNCHRONOUS),
        ("respond-async, wait", ASYNCHRONOUS),
    ],
)
def test_a_preference_is_understood(text: str, meant: Preference) -> None:
    assert parse_preference(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ",", "return=minimal", "handling=lenient", "respond-async=no", "respondasync"),
        *("wait=-1", "wait=1.5", "wait=1e3", "wait=", "wait", 'wait="', "wait=9999999999"),
        *('"respond-async"', "\x00", "a b respond-async", ";respond-async", "=respond-async"),
        *("x=respond-async", "x; respond-async", 'x="respond-async"', "wait=\u0665"),
    ],
)
def test_anything_else_is_no_preference(text: str) -> None:
    assert parse_preference(text) == NONE


@pytest.mark.parametrize("piece", ["; ", ";\t;", " , ", 'a=" ', "a;b=", "\t", "\\", "wait=1 "])
def test_no_header_takes_long_to_read(piece: str) -> None:
    """A parser with backtracking would take days instead of a tenth of a second."""

    def give_up(*_: object) -> None:
        raise TimeoutError("parsing takes too long")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        parse_preference("a" + piece * 1_000_000 + "\x00")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
