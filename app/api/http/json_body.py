"""Strict reading of request bodies: one meaning for every byte, or a problem response.

Refused: JSON with a duplicate key, NaN or Infinity, a number beyond a float, and text that is not
UTF-8 or contains NUL. Numbers keep their text, so that a loss is read exactly.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from fastapi import Request
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from app.access import Role
from app.api.http.body_limits import KEYS_MAX, LARGE_BODIES, SMALL_BYTES, check_keys, check_shape
from app.api.http.principal import token
from app.api.http.services import services
from app.api.http.validation_errors import FIELDS_MAX, invalid
from app.errors import FieldError, Invalid, Malformed, TooLarge
from app.ledger.chain import canonical

T = TypeVar("T")
REQUEST_KEY_MAX = 255
DIGITS_MAX = 300  # more than a float can hold
LISTS = frozenset({"list", "tuple", "set", "frozenset"})


class ExactFloat(float):
    """A float that keeps its original text."""

    text: str


ErrorTranslator = Callable[[Invalid], Invalid]
Translate = Callable[
    [Any], tuple[Any, ErrorTranslator]
]  # rewrites JSON that has an alternative form, such as SQL


def unchanged(error: Invalid) -> Invalid:
    return error


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """A valid body, its canonical text, the hash of the sent body, and the Idempotency-Key.

    Its error translator maps an error to the terms of the sent body.
    """

    value: T
    text: str
    hash: str
    request_key: str | None
    translate_error: ErrorTranslator = unchanged

    def at(self, request: Request, text: str | None = None) -> "Parsed[T]":
        """The same body with a hash that includes method and path.

        An administrative request is repeated only at its own path. `text`: the sent body, if it was
        translated.
        """
        return replace(self, hash=hash_at(request, text or self.text))


def hash_at(request: Request, text: str) -> str:
    hashed_text = f"{request.method} {request.url.path}\n{text}"
    return hashlib.sha256(hashed_text.encode()).hexdigest()


def body(
    model: Any, *, empty: bool = False, translate: Translate | None = None
) -> Callable[[Request], Coroutine[Any, Any, Parsed[Any]]]:
    """A dependency that reads and validates the body as this model; `empty` allows no body."""
    adapter: StrictAdapter[Any] = StrictAdapter(model)

    async def read(request: Request) -> Parsed[Any]:
        key = request_key(request)

        def parsed(raw: bytes) -> Parsed[Any]:
            return parse(raw or b"null" if empty else raw, adapter, key, translate)

        return (await read_body(request, parsed)).at(request)

    return read


class StrictAdapter(Generic[T]):
    """Validates a model, and stops at the first bad item of each list.

    So a body of a million bad items has one error, not a million.
    """

    def __init__(self, model: Any) -> None:
        self.described: TypeAdapter[Any] = TypeAdapter(model)
        schema = _stopping_early(self.described.core_schema)
        self._validator = SchemaValidator(schema, _use_prebuilt=False)

    def validate_python(self, data: Any) -> T:
        value: T = self._validator.validate_python(data)
        return value


def _stopping_early(schema: Any) -> Any:
    if isinstance(schema, dict):
        stopped = {name: _stopping_early(part) for name, part in schema.items()}
        kind = schema.get("type")  # or a model's fields, one of them named `type`
        if isinstance(kind, str) and kind in LISTS:
            stopped["fail_fast"] = True
        return stopped
    return [_stopping_early(part) for part in schema] if isinstance(schema, list) else schema


def parse(
    raw: bytes, adapter: StrictAdapter[T], key: str | None, translate: Translate | None = None
) -> Parsed[T]:
    sent = strict_json(raw)
    data, translate_error = (sent, unchanged) if translate is None else translate(sent)
    try:
        value = adapter.validate_python(data)
    except ValidationError as error:
        wrong = invalid(
            error.errors(include_input=False, include_url=False), data, adapter.described
        )
        raise translate_error(wrong) from None
    text = canonical(data)
    hashed = text if data is sent else canonical(sent)  # repetitions are compared as sent
    return Parsed(value, text, hashlib.sha256(hashed.encode()).hexdigest(), key, translate_error)


async def read_body(
    request: Request, read: Callable[[bytes], T], *, reads_files: bool = False
) -> T:
    """Receive and parse a body, off the event loop if it is large or may contain SQL.

    SQL takes milliseconds, and a second while its parser is loaded. Large bodies are parsed one at
    a time, which limits the memory. `reads_files`: parsing waits for files, in a thread.
    """
    incoming = _Incoming(request)
    try:
        raw = await incoming.receive()
        if reads_files:
            return await asyncio.to_thread(read, raw)
        if incoming.sender is not None:
            return await LARGE_BODIES.threads.submit(incoming.sender, partial(read, raw))
        return await asyncio.to_thread(read, raw) if b'"sql"' in raw else read(raw)
    finally:
        if incoming.sender is not None:
            LARGE_BODIES.give_back(incoming.sender)


class _Incoming:
    """A body on its way. Only callers who may register or query may send a large one."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._limit: int = request.app.state.body_bytes_max
        self.sender: str | None = None  # of a large body, who holds a place for it

    async def receive(self) -> bytes:
        declared = self._request.headers.get("content-length", "")
        if declared.isdecimal() and len(declared) < 20:
            await self._check(int(declared))
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._request.receive()
            if message["type"] == "http.disconnect":
                raise Malformed("The body is incomplete.")
            part = message.get("body", b"")
            more = message.get("more_body", False)
            parts.append(part)
            size += len(part)
            await self._check(size)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _check(self, size: int) -> None:
        """Raise TooLarge; for a large body also NotAuthenticated and TooManyRunning."""
        if size > SMALL_BYTES and self.sender is None:
            catalogue = services(self._request).catalogue
            principal = await catalogue.principal(token(self._request))
            trusted = principal.role is Role.ADMIN or (
                principal.role is Role.ANALYST and await catalogue.has_grant(principal.holders)
            )
            self._refuse_above(self._limit if trusted else min(SMALL_BYTES, self._limit), size)
            LARGE_BODIES.take(principal.analyst_id)
            self.sender = principal.analyst_id
        self._refuse_above(self._limit, size)

    @staticmethod
    def _refuse_above(limit: int, size: int) -> None:
        if size > limit:
            raise TooLarge(f"A body has at most {limit} bytes.")


def request_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= REQUEST_KEY_MAX or not key.isascii() or not key.isprintable():
        raise Invalid.field("Idempotency-Key", f"1 to {REQUEST_KEY_MAX} printable ASCII characters")
    return key


def strict_json(raw: bytes) -> Any:
    check_shape(raw)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"The body is not UTF-8 at byte {error.start}.") from None
    try:
        has_wide: list[bool] = []
        data = json.loads(
            text,
            object_pairs_hook=partial(_object, has_wide),
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
        if has_wide:
            check_keys(data)
        if "\\u" in text:  # only an escape can produce text that is not valid UTF-8
            canonical(data).encode("utf-8")
            if "\\u0000" in text.lower() and "\x00" in _strings(data):
                raise Malformed("Text must not contain a NUL character.")
        return data
    except (Malformed, TooLarge):
        raise
    except _NotFinite:
        detail = "NaN and Infinity are not JSON numbers."
        raise Malformed(detail, *_not_a_number(text)) from None
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise Malformed(f"The body is not valid JSON: {position}.") from None
    except UnicodeEncodeError:
        raise Malformed("The body is not valid JSON: it escapes a lone surrogate.") from None
    except RecursionError:
        raise Malformed("The body is nested too deeply.") from None
    except ValueError:
        raise Malformed("The body is not valid JSON.") from None


def _object(has_wide: list[bool], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Malformed("An object in the body has the same key twice.")
    if len(pairs) > KEYS_MAX:
        has_wide.append(True)
    return result


def _not_a_number(text: str) -> list[FieldError]:
    """Fields whose values are literals such as NaN, which are no JSON numbers."""
    mark = object()
    fields: list[FieldError] = []

    def look(value: Any, pointer: str) -> None:
        if value is mark:
            fields.append(FieldError(pointer, "a finite number"))
        elif isinstance(value, dict):
            for name, item in value.items():
                look(item, f"{pointer}/{name if name.isidentifier() else '?'}")
        elif isinstance(value, list):
            for index, item in enumerate(value):
                look(item, f"{pointer}/{index}")

    try:
        look(json.loads(text, parse_constant=lambda _: mark), "")
    except (ValueError, RecursionError):
        return []  # the rest is not valid JSON either
    return fields[:FIELDS_MAX]


class _NotFinite(Exception):
    """A literal that Python's parser accepts and JSON does not."""


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
