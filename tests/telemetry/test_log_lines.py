"""Log lines: a fixed list of fields, and no message that may quote a value."""

import json
import logging
import sys
from typing import Any

import pytest

from app.ports.telemetry import REQUEST, RequestNotes
from app.telemetry.logs import FIELDS, JsonLines, NewEvents, TextLines

SECRET = "SECRET-4711"


def record(name: str, message: str, *values: Any, level: int = logging.ERROR) -> logging.LogRecord:
    try:
        raise ValueError(SECRET)
    except ValueError:
        info = sys.exc_info()
    return logging.LogRecord(name, level, __file__, 1, message, values, info)


@pytest.mark.parametrize("name", ["asyncio", "sqlalchemy.pool", "duckdb", "py.warnings", "root"])
@pytest.mark.parametrize("formatter", [JsonLines(), TextLines()])
def test_messages_of_other_packages_are_withheld(name: str, formatter: logging.Formatter) -> None:
    line = formatter.format(record(name, "exception=ValueError('%s')", SECRET))
    assert SECRET not in line
    assert f"a message of {name.partition('.')[0]} was withheld" in line


@pytest.mark.parametrize(
    "message", ["Exception in ASGI application\n", "Invalid HTTP request received.", "%s", SECRET]
)
def test_messages_of_the_server_have_no_arguments_and_no_traceback(message: str) -> None:
    line = JsonLines().format(record("uvicorn.error", message, *([SECRET] * ("%s" in message))))
    assert SECRET not in line
    assert "Traceback" not in line


def test_a_line_has_no_field_beside_the_fixed_ones() -> None:
    token = REQUEST.set(RequestNotes("r_1", "a_1", "not-found"))
    try:
        made = record("bursar.requests", "request")
        made.route, made.path, made.body = "/v1/me", f"/{SECRET}", SECRET
        line = json.loads(JsonLines().format(made))
    finally:
        REQUEST.reset(token)
    assert set(line) <= {"time", "level", "event", *FIELDS}
    assert (line["request_id"], line["analyst"], line["route"]) == ("r_1", "a_1", "/v1/me")
    assert SECRET not in str(line)


def test_a_text_with_a_line_break_makes_one_line() -> None:
    line = TextLines().format(record("bursar.api", "one\n2026 INFO forged\x1b[31m"))
    assert "\n" not in line
    assert "\x1b" not in line


def test_lines_that_say_nothing_new_are_left_out() -> None:
    silent = record("uvicorn.error", "Started server process [%d]", 7, level=logging.INFO)
    unknown = record("uvicorn.error", f"hello {SECRET}", level=logging.INFO)
    assert not any(NewEvents().filter(each) for each in (silent, unknown))
    assert NewEvents().filter(record("uvicorn.error", SECRET))
