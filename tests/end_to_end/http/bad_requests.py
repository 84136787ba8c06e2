"""Values that no reply may quote, and the checks of every refusal."""

import json

import httpx

from tests.server import new_key

PLANTED = "planted-value-7c1f"
HUGE_INTEGER = "1" + "0" * 5000


def send(client: httpx.Client, path: str, raw: bytes, method: str = "POST") -> httpx.Response:
    headers = {"Content-Type": "application/json", "Idempotency-Key": new_key()}
    return client.request(method, path, content=raw, headers=headers)


def must_be_a_problem(reply: httpx.Response, pointer: str | None = None) -> None:
    assert 400 <= reply.status_code < 500, (reply.status_code, reply.text)
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert {"type", "title", "status", "detail"} <= set(problem)
    assert problem["status"] == reply.status_code
    assert problem["type"].startswith("/problems/")
    assert PLANTED not in reply.text
    if pointer is not None:
        assert pointer in [error["pointer"] for error in problem["errors"]], problem


def shown(case: object) -> str:
    return json.dumps(case)[:60] if isinstance(case, dict) else ""
