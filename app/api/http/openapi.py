"""The OpenAPI description: stable operation ids, examples, and the problems of each route.

`api/http/json_body.py` reads bodies, not the framework, so their schemas are added here.
"""

import asyncio
import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from app.api.http.problems import MEDIA_TYPE, TITLES

# By operation id: schema of the body, its examples, and whether a body is required.
REQUESTS: dict[str, tuple[TypeAdapter[Any], dict[str, Any], bool]] = {}

REF = "#/components/schemas/{model}"
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "examples": ["/problems/budget-exhausted"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "rule": {"type": "string"}},
            },
        },
    },
}


ACCEPTED_HEADERS = {
    name: {"description": description, "schema": {"type": "string"}}
    for name, description in {
        "Location": "Where the answer will be.",
        "Retry-After": "Seconds after which to look there.",
        "Idempotency-Key": "The key that was sent, or that was made for this request.",
        "Preference-Applied": "The part of `Prefer` that was honoured.",
    }.items()
}
ACCEPTED = {"description": "Charged, and still being answered", "headers": ACCEPTED_HEADERS}


BALANCE_HEADERS = {
    name: {"description": description, "schema": {"type": "string"}}
    for name, description in {
        "Bursar-Remaining": 'Left of your account now, such as `epsilon="2.9"` (RFC 8941).',
        "Bursar-Used": "Used share of your account now, rounded up to a thousandth.",
    }.items()
}


def problems(*statuses: int) -> tuple[int, ...]:
    return statuses


def _problem(code: int) -> dict[str, Any]:
    schema = {"$ref": REF.format(model="Problem")}
    return {"description": TITLES[code], "content": {MEDIA_TYPE: {"schema": schema}}}


def _header(name: str, description: str, **rules: Any) -> dict[str, Any]:
    schema = {"type": "string", **rules}
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": schema,
    }


REQUEST_KEY = _header(
    "Idempotency-Key", "The same key and body give the same reply.", minLength=1, maxLength=255
)
PREFER = _header("Prefer", "`respond-async`, `wait=N` seconds, or both (RFC 7240).")
KNOWN_TAG = _header("If-None-Match", "The ETag you have.")
CONDITIONS = [
    _header("If-Match", "The ETag that you saw, several ETags, or `*`."),
    _header("If-None-Match", "`*`: only if there is none yet. Or ETags it must not have."),
]


def documented(
    operation_id: str,
    summary: str,
    response: Any,
    *,
    status: int = 200,
    request: Any = None,
    example: Any = None,
    examples: dict[str, Any] | None = None,
    extra_problems: tuple[int, ...] = (),
    also: int | None = None,
    body_needed: bool = True,
    idempotent: bool = False,
    tagged: bool = False,
    conditional: bool = False,
    public: bool = False,
    accepted: Any = None,
) -> dict[str, Any]:
    """Arguments of a route decorator.

    `also`: a second status with the same response. `tagged`: the reply has an ETag. `conditional`:
    the request may name the state that it requires. `idempotent`: it may have an Idempotency-Key.
    `examples`: named examples, instead of one `example`. `accepted`: the response of a 202, for
    callers who come back instead of waiting.
    """
    responses = _problem_responses(extra_problems, public=public, has_body=request is not None)
    if also is not None:
        responses[also] = {"model": response}
    extra: dict[str, Any] = {} if public else {"security": [{"key": []}]}
    if request is not None:
        shown = {"example": example} if examples is None else {"examples": examples}
        REQUESTS[operation_id] = (TypeAdapter(request), shown, body_needed)
    if idempotent:
        extra["parameters"] = [REQUEST_KEY]
    if accepted is not None:
        extra["parameters"].append(PREFER)
        responses[202] = {**ACCEPTED, "model": accepted}
    if conditional:
        extra["parameters"] = CONDITIONS
    if tagged:
        extra["parameters"] = [KNOWN_TAG]
        responses[304] = {"description": "Not modified", "content": {}}
    return {
        "operation_id": operation_id,
        "summary": summary,
        "response_model": response,
        "status_code": status,
        "responses": responses,
        "openapi_extra": extra,
    }


def with_page(route: dict[str, Any]) -> dict[str, Any]:
    """The same route, which may also reply with HTML."""
    page = {"content": {"text/html": {"schema": {"type": "string"}}}}
    return route | {"responses": {**route["responses"], route["status_code"]: page}}


def with_balance(route: dict[str, Any]) -> dict[str, Any]:
    """The same route, with the balance in the headers of its replies."""
    responses = {route["status_code"]: {}, **route["responses"]}
    for code in {route["status_code"], 202, 304, 402, 423} & set(responses):
        headers = responses[code].get("headers", {}) | BALANCE_HEADERS
        responses[code] = {**responses[code], "headers": headers}
    return route | {"responses": responses}


def _problem_responses(
    extra_problems: tuple[int, ...], *, public: bool, has_body: bool
) -> dict[int | str, dict[str, Any]]:
    expected = set(extra_problems) | (set() if public else {401, 403, 422, 503})
    if has_body:
        expected |= {400, 413, 429}
    return {code: _problem(code) for code in sorted(expected)}


class InterfaceDescription:
    """The interface description as bytes, made once, in a thread."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._made: asyncio.Future[bytes] | None = None

    async def text(self) -> bytes:
        if self._made is None:
            self._made = asyncio.ensure_future(asyncio.to_thread(self._write))
        return await asyncio.shield(self._made)

    def _write(self) -> bytes:
        text = json.dumps(self._app.openapi(), ensure_ascii=False, separators=(",", ":"))
        return text.encode()


def install_openapi(app: FastAPI) -> None:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the framework's own way to replace it


def _describe(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = PROBLEM
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path in schema["paths"].values():
        for operation in path.values():
            if operation["operationId"] not in REQUESTS:
                continue
            adapter, shown, needed = REQUESTS[operation["operationId"]]
            described = adapter.json_schema(ref_template=REF, by_alias=True)
            schemas.update(described.pop("$defs", {}))
            operation["requestBody"] = {
                "required": needed,
                "content": {"application/json": {"schema": _named(described, schemas), **shown}},
            }
    return schema


def _named(described: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Put a model that is a whole body among the other schemas, once.

    Otherwise generated clients would make two classes of one name where two operations take it.
    """
    if "properties" not in described:
        return described
    schemas[described["title"]] = described
    return {"$ref": REF.format(model=described["title"])}
