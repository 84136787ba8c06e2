"""Errors as RFC 9457 problem responses: one table from error class to status, one handler.

No response repeats a value that a caller sent, and no driver text gets this far.
"""

import json
import logging
import re
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from app import errors
from app.api.http.validation_errors import invalid
from app.errors import AppError, Invalid, NotAuthenticated, StillRunning, TooManyRunning
from app.ports.telemetry import note_problem

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("bursar.api")

STATUSES: dict[type[AppError], int] = {
    errors.NotAuthenticated: 401,
    errors.NotPermitted: 403,
    errors.NoGrant: 403,
    errors.NotFound: 404,
    errors.Invalid: 422,
    errors.Malformed: 400,
    errors.TooLarge: 413,
    errors.Conflict: 409,
    errors.DatasetClosed: 409,
    errors.PreconditionFailed: 412,
    errors.IdempotencyConflict: 422,
    errors.StillRunning: 409,
    errors.StreamEnded: 409,
    errors.TooManyRunning: 429,
    errors.BudgetExhausted: 402,
    errors.AccountFrozen: 423,
    errors.EngineUnavailable: 503,
    errors.SourceChanged: 503,
    errors.EngineFailed: 503,
    errors.QuestionForfeited: 503,
    errors.QuestionVoided: 503,
    errors.LedgerBehind: 503,
    errors.SecretUnavailable: 503,
    errors.StoreUnavailable: 503,
}

TITLES: dict[int, str] = {
    400: "Malformed request",
    401: "Not authenticated",
    402: "Budget exhausted",
    403: "Not permitted",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    412: "Precondition failed",
    413: "Body too large",
    422: "Invalid request",
    423: "Account frozen",
    429: "Too many questions",
    500: "Internal error",
    503: "Unavailable",
}


# Types of problems that have no error class.
OTHER_KINDS = ("method-not-allowed", "error", "internal-error")


def kinds() -> list[str]:
    """Every type of problem that is ever sent."""
    return [*map(slug, STATUSES), *OTHER_KINDS]


def slug(kind: type[AppError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def problem(error: AppError) -> Response:
    status = STATUSES[type(error)]
    members: dict[str, Any] = dict(error.members)
    headers: dict[str, str] = {}
    if isinstance(error, Invalid) and error.fields:
        members["errors"] = [{"pointer": f.pointer, "rule": f.rule} for f in error.fields]
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, StillRunning):
        headers["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, TooManyRunning):
        headers["Retry-After"] = "1"
    return render(status, slug(type(error)), error.detail, members, headers)


def render(
    status: int,
    kind: str,
    detail: str,
    members: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    note_problem(kind)
    content = {
        "type": f"/problems/{kind}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        **(members or {}),
    }
    return Response(
        json.dumps(content, ensure_ascii=False),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def unexpected(error: Exception) -> Response:
    """Problem of an unexpected error; its text may contain a value, so only its type is logged."""
    _log.error("unexpected %s", type(error).__name__)
    return render(500, "internal-error", "Something went wrong on our side.")


def _allowed(app: FastAPI, path: str) -> str:
    """Methods of every operation at this path; the framework names only those of the first."""
    methods: set[str] = set()
    for template, operations in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            methods |= {method.upper() for method in operations}
    return ", ".join(sorted(methods))


def install_problems(app: FastAPI) -> None:
    @app.exception_handler(AppError)
    async def _app_error(_: Request, error: AppError) -> Response:
        return problem(error)

    @app.exception_handler(RequestValidationError)
    async def _parameter_error(_: Request, error: RequestValidationError) -> Response:
        located = [{**each, "loc": each["loc"][1:]} for each in error.errors()]
        named = {str(each["loc"][0]): each.get("input") for each in located if each["loc"]}
        return problem(invalid(located, named))  # type: ignore[arg-type]  # same keys

    @app.exception_handler(HTTPException)
    async def _http_error(request: Request, error: HTTPException) -> Response:
        kinds = {404: "not-found", 405: "method-not-allowed"}
        details = {404: "There is nothing at this path.", 405: "This path takes another method."}
        code = error.status_code
        detail = details.get(code, "The request could not be handled.")
        headers = {"Allow": _allowed(app, request.url.path)} if code == 405 else {}
        return render(code, kinds.get(code, "error"), detail, headers=headers)

    @app.exception_handler(Exception)
    async def _unexpected(_: Request, error: Exception) -> Response:
        return unexpected(error)
