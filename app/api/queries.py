"""Questions: ask."""

import asyncio
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

from app.actions.asking.ask_query import Accepted
from app.actions.asking.charge import QueryRequest, Reply
from app.api.accounts.balance_headers import (
    DECIDED,
    NO_HEADERS,
    RawHeaders,
    after_decision,
    at_once,
    refused,
)
from app.api.http.json_body import (
    Parsed,
    StrictAdapter,
    parse,
    read_body,
    request_key,
)
from app.api.http.openapi import documented, problems, with_balance
from app.api.http.parameters import check_parameters
from app.api.http.prefer import Preference, preference
from app.api.http.principal import current_hot, token
from app.api.http.services import services
from app.api.http.wire import AmountResponse, LossResponse
from app.api.sql_questions import translated
from app.caches import owned_by, owned_cache
from app.errors import AccessError, Invalid
from app.fault_points import ARMED, crash_point
from app.names import new_id
from app.planning.request import Question, SqlQuestion
from app.ports.telemetry import note_analyst

router = APIRouter(tags=["queries"])

KEPT_BYTES_MAX = 4096
RETRY_SECONDS = 1
QUESTION: StrictAdapter[Question] = StrictAdapter(Question)

EXAMPLE = {
    "dataset": "census",
    "query": {
        "kind": "count",
        "where": {
            "all": [
                {"column": "age", "op": ">=", "value": 18},
                {"column": "region", "op": "in", "value": ["north", "west"]},
            ]
        },
    },
    "privacy": {"epsilon": 0.1},
}


EXAMPLES = {
    "json": {"summary": "In JSON", "value": EXAMPLE},
    "persons": {
        "summary": "Number of persons, each counted in one region",
        "value": {
            "dataset": "census",
            "query": {"kind": "count_distinct", "group_by": ["region"], "groups_max": 1},
            "privacy": {"epsilon": 0.5},
        },
    },
    "what each has": {
        "summary": "Sum over persons of each person's total, at most 50000",
        "value": {
            "dataset": "census",
            "query": {
                "kind": "sum",
                "column": "income",
                "per_person": {"low": 0, "high": 50000},
            },
            "privacy": {"epsilon": 0.5},
        },
    },
    "sql": {
        "summary": "In SQL",
        "value": {
            "sql": "SELECT region, COUNT(*), AVG(income) FROM census WHERE age >= 18 "
            "GROUP BY region",
            "privacy": {"epsilon": 0.1},
        },
    },
}


class AccountCharged(BaseModel):
    holder: str
    spent: AmountResponse | None
    remaining: AmountResponse | None


class ChargedResponse(LossResponse):
    cells: list[Any] | None
    accounts: list[AccountCharged]


class Receipt(BaseModel):
    """Entry of the charge in the ledger, and the hash of the chain there."""

    entry: int
    hash: str


class AnswerResponse(BaseModel):
    """A noisy answer; the same bytes for every delivery. A `withheld` answer is charged like any
    other; it has no value and the same number of bytes. `bound` is the privately chosen one."""

    id: str
    status: Literal["answered", "withheld"]
    value: Any
    mechanism: dict[str, Any]
    interval: dict[str, Any] | None
    bound: float | None = None
    padding: str | None = None
    charged: ChargedResponse
    theorem: str
    receipt: Receipt


class AcceptedResponse(BaseModel):
    """Charged, and still being answered: `Location` is where the answer will be."""

    id: str
    status: Literal["running"]
    charged: ChargedResponse
    theorem: str
    receipt: Receipt


class StoredResponse(Response):
    """Sends stored bytes, and passes the last fault points.

    Builds its headers itself, because the framework's own way costs more than the rest.
    """

    media_type = "application/json"

    def __init__(
        self,
        text: str,
        headers: dict[str, str],
        status: int = 200,
        balance: RawHeaders = NO_HEADERS,
    ) -> None:
        self.status_code = status
        self.background = None
        self.body = text.encode()
        self.raw_headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self.body)).encode()),
            *((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()),
            *balance,
        ]

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        crash_point("F10")
        if ARMED == "F11":
            await send(self._start())
            half = self.body[: len(self.body) // 2]
            await send({"type": "http.response.body", "body": half, "more_body": True})
            await asyncio.sleep(0.05)
            crash_point("F11")
            rest = self.body[len(half) :]
            await send({"type": "http.response.body", "body": rest, "more_body": False})
            return
        await send(self._start())
        await send({"type": "http.response.body", "body": self.body})
        crash_point("F12")

    def _start(self) -> Message:
        start = {"type": "http.response.start", "status": self.status_code}
        return {**start, "headers": self.raw_headers}


@owned_cache(maxsize=1024)
def _parse_short(raw: bytes) -> Parsed[Question]:
    return parse(raw, QUESTION, None, translated)


def parse_question(analyst_id: str, raw: bytes) -> Parsed[Question]:
    """The question in a body. Equal bytes are the same question, so the latest ones are cached,
    separately for each analyst.
    """
    if len(raw) > KEPT_BYTES_MAX:
        return parse(raw, QUESTION, None, translated)
    with owned_by(analyst_id):
        return _parse_short(raw)


@router.post(
    "/v1/queries",
    **with_balance(
        documented(
            "ask",
            "Plan, charge, answer",
            AnswerResponse,
            request=Question | SqlQuestion,
            examples=EXAMPLES,
            extra_problems=problems(402, 403, 409, 423, 429, 503),
            idempotent=True,
            accepted=AcceptedResponse,
        )
    ),
)
async def ask(request: Request) -> Response:
    """Ask one question. It is priced from public facts, charged to your account and to everybody's
    together, and only then answered. Send an `Idempotency-Key`: the same key with the same body
    gives the same bytes again and costs nothing. The same question again, under any key, returns
    the stored answer free of charge, unless `fresh` is true. `sql` in place of `query` and
    `dataset` is the same question at the same price. With `Prefer: respond-async` the reply comes
    as soon as the question is charged, with `wait=N` after at most N seconds. Without either it
    comes at the latest when the service's own time limit ends. A reply without the answer is a 202,
    and the answer will be at its `Location`."""
    deps = services(request)
    shown = token(request)
    principal = await deps.catalogue.principal(shown)  # before the body is read
    note_analyst(principal.analyst_id)
    try:
        check_parameters(request)
        parsed = await read_body(request, partial(parse_question, principal.analyst_id))
        key = request_key(request) or new_id("auto")
        query_request = QueryRequest(shown, parsed.value, parsed.text, parsed.hash, key)
        wish = preference(request)
        try:
            reply = await deps.answer_query(query_request, wish.wait_seconds)
        except Invalid as error:
            raise parsed.translate_error(error) from None
        except DECIDED as error:
            return await refused(deps, principal, parsed.value.dataset, error)
    except (Invalid, AccessError):
        await current_hot(request)  # errors are described only to a key that is still valid
        raise
    balance = at_once(deps, principal, None if isinstance(reply, Accepted) else reply.book_id)
    balance = balance or await after_decision(deps, principal, parsed.value.dataset)
    if isinstance(reply, Accepted):
        return StoredResponse(reply.text, accepted_headers(reply, key, wish), 202, balance)
    return StoredResponse(reply.text, reply_headers(reply, key), balance=balance)


def accepted_headers(reply: Accepted, key: str, wish: Preference) -> dict[str, str]:
    headers = {
        "location": f"/v1/queries/{reply.id}",
        "retry-after": str(RETRY_SECONDS),
        "idempotency-key": key,
    }
    if wish.applied:
        headers["preference-applied"] = wish.applied
    return headers


def reply_headers(reply: Reply, key: str) -> dict[str, str]:
    headers = {"idempotency-key": key}
    if reply.replayed:
        headers["idempotent-replayed"] = "true"
    if reply.reused:
        headers["bursar-reused"] = "true"
    return headers
