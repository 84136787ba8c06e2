"""Reading request bodies strictly: one meaning for every byte, or a problem response.

JSON with a key twice, NaN or Infinity, a number beyond a float, text that is no UTF-8 or holds NUL
is refused. Numbers keep their text, so that a loss is read exactly.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from fastapi import Request
from pydantic import TypeAdapter, ValidationError

from app.api.broken_rules import FIELDS_MAX, invalid
from app.errors import FieldError, Invalid, Malformed, TooLarge
from app.ledger.chain import canonical

T = TypeVar("T")
REQUEST_KEY_MAX = 255
DIGITS_MAX = 300  # a float holds no more


class ExactFloat(float):
    """A float that remembers how it was written."""

    text: str


Told = Callable[[Invalid], Invalid]
Translate = Callable[[Any], tuple[Any, Told]]  # of JSON that may be written in another way


def as_it_is(error: Invalid) -> Invalid:
    return error


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A valid body, its canonical text, the hash of what was sent, and the caller's
    Idempotency-Key. `told` says what is wrong with the body in terms of what was sent."""

    value: T
    text: str
    hash: str
    request_key: str | None
    told: Told = as_it_is

    def at(self, request: Request, text: str | None = None) -> "Parsed[T]":
        """An administrative request is repeated only at its own path; `text` is what was sent,
        where that was translated."""
        return replace(self, hash=hash_at(request, text or self.text))


def hash_at(request: Request, text: str) -> str:
    place = f"{request.method} {request.url.path}\n{text}"
    return hashlib.sha256(place.encode()).hexdigest()


def body(
    model: Any, *, empty: bool = False, translate: Translate | None = None
) -> Callable[[Request], Coroutine[Any, Any, Parsed[Any]]]:
    """A dependency that reads and validates the body as this model; `empty` allows none."""
    adapter = TypeAdapter(model)

    async def read(request: Request) -> Parsed[Any]:
        raw = await read_bytes(request)
        given = raw or b"null" if empty else raw
        key = request_key(request)
        parsed = await aside(raw, lambda: parse(given, adapter, key, translate))
        return parsed.at(request)

    return read


def parse(
    raw: bytes, adapter: TypeAdapter[T], key: str | None, translate: Translate | None = None
) -> Parsed[T]:
    sent = strict_json(raw)
    data, told = (sent, as_it_is) if translate is None else translate(sent)
    try:
        value = adapter.validate_python(data)
    except ValidationError as error:
        wrong = invalid(error.errors(include_input=False, include_url=False), data, adapter)
        raise told(wrong) from None
    text = canonical(data)
    hashed = text if data is sent else canonical(sent)  # a request is repeated as it was sent
    return Parsed(value, text, hashlib.sha256(hashed.encode()).hexdigest(), key, told)


async def aside(raw: bytes, read: Callable[[], Parsed[T]]) -> Parsed[T]:
    """Reads a body; in a thread if there may be SQL in it, which takes milliseconds, and a second
    while its parser is loaded."""
    return await asyncio.to_thread(read) if b'"sql"' in raw else read()


async def read_bytes(request: Request) -> bytes:
    limit: int = request.app.state.body_bytes_max
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) < 20 and int(declared) > limit:
        raise TooLarge(f"A body has at most {limit} bytes.")
    body = b""
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Malformed("The body did not arrive whole.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limit:
            raise TooLarge(f"A body has at most {limit} bytes.")
    return body


def request_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= REQUEST_KEY_MAX or not key.isascii() or not key.isprintable():
        raise Invalid.field("Idempotency-Key", f"1 to {REQUEST_KEY_MAX} printable ASCII characters")
    return key


def strict_json(raw: bytes) -> Any:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"The body is not UTF-8 at byte {error.start}.") from None
    try:
        data = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
        if "\\u" in text:  # only an escape can bring in what UTF-8 cannot
            canonical(data).encode("utf-8")
            if "\\u0000" in text.lower() and "\x00" in _strings(data):
                raise Malformed("Text holds no NUL character.")
        return data
    except Malformed:
        raise
    except _NotFinite:
        detail = "NaN and Infinity are not JSON numbers."
        raise Malformed(detail, *_not_a_number(text)) from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Malformed(f"The body is not valid JSON: {place}.") from None
    except UnicodeEncodeError:
        raise Malformed("The body is not valid JSON: it escapes half of a character.") from None
    except RecursionError:
        raise Malformed("The body is nested too deeply.") from None
    except ValueError:
        raise Malformed("The body is not valid JSON.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Malformed("An object in the body has the same key twice.")
    return result


def _not_a_number(text: str) -> list[FieldError]:
    """Where the literals stand that are no JSON numbers."""
    mark = object()
    found: list[FieldError] = []

    def look(value: Any, pointer: str) -> None:
        if value is mark:
            found.append(FieldError(pointer, "a finite number"))
        elif isinstance(value, dict):
            for name, each in value.items():
                look(each, f"{pointer}/{name if name.isidentifier() else '?'}")
        elif isinstance(value, list):
            for index, each in enumerate(value):
                look(each, f"{pointer}/{index}")

    try:
        look(json.loads(text, parse_constant=lambda _: mark), "")
    except (ValueError, RecursionError):
        return []  # what comes after it is no JSON either
    return found[:FIELDS_MAX]


class _NotFinite(Exception):
    """A literal that Python's reader knows and JSON does not."""


def _constant(_: str) -> Any:
    raise _NotFinite


def _int(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise Malformed("A number in the body is too large.")
    return int(text)


def _float(text: str) -> ExactFloat:
    number = ExactFloat(text)
    if number in (float("inf"), float("-inf")):
        raise Malformed("A number in the body is too large.")
    number.text = text
    return number


def _strings(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        return "".join(k + _strings(v) for k, v in data.items())
    return "".join(map(_strings, data)) if isinstance(data, list) else ""
