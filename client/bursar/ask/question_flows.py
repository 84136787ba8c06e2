"""The flows of a question: ask, preview and rehearse."""

import contextlib
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from bursar.ask.nearest import did_you_mean
from bursar.errors import (
    BadQuestion,
    BursarError,
    NoGrant,
    NotFound,
    Problem,
    QuestionForfeited,
    QuestionVoided,
)
from bursar.http.flow import Call, Flow, Pause, Progress, Reply, send
from bursar.http.rollback_check import SeenCharges
from bursar.results.answers import Answer, read_answer
from bursar.results.budgets import pages

WAIT_SECONDS = 2  # a longer question is followed, with its progress
POLL_SECONDS = 0.5
Body = Mapping[str, Any]


def ask(
    seen: SeenCharges, body: Body, text: str, key: str | None, *, fresh: bool = False
) -> Flow[Answer]:
    """Ask a question once: the same idempotency key is kept over every retry."""
    dataset = yield from _dataset_of(seen, body)
    yield from seen.check(dataset)
    before = seen.entry(dataset)
    headers = {"idempotency-key": idempotency_key(key)}
    first = {**headers, "prefer": f"wait={WAIT_SECONDS}"}
    try:
        reply = yield from send(Call("POST", "/v1/queries", body, first))
    except BaseException as error:
        if _is_interruption(error):
            yield from _cancel(body, headers)
        raise
    if reply.status == 202:
        yield from _follow(reply.json()["id"], text)
        reply = yield from send(Call("POST", "/v1/queries", body, headers))
    members = reply.json()
    new = not {"idempotent-replayed", "bursar-reused"} & set(reply.headers)
    seen.note(dataset, members, before=before, new=new)
    return read_answer(members, text, reply.headers)


def idempotency_key(key: object) -> str:
    """The key that was given, or a new one."""
    if key is None:
        return f"py-{uuid.uuid4()}"
    if not isinstance(key, str) or not re.fullmatch(r"[!-~]{1,255}", key):
        raise BadQuestion("key is 1 to 255 letters, digits or signs of ASCII, without spaces.")
    return key


def _dataset_of(seen: SeenCharges, body: Body) -> Flow[str]:
    """The dataset of a question. A free preview names that of SQL."""
    if body.get("dataset"):
        return str(body["dataset"])
    try:
        return str((yield from preview(body)).json()["dataset"])
    except (NoGrant, NotFound):
        raise
    except Problem:  # the question itself will have the same problem, and says so better
        yield from seen.check_all()
        return ""


def _is_interruption(error: BaseException) -> bool:
    """True for Ctrl-C and a cancelled task."""
    return not isinstance(error, (BursarError, GeneratorExit))


def _cancel(body: Body, headers: Mapping[str, str]) -> Flow[None]:
    """Cancel a question whose reply never came: the same key names it, and nothing waits."""
    with contextlib.suppress(BursarError):
        found = yield Call("POST", "/v1/queries", body, {**headers, "prefer": "wait=0"})
        if found is not None and found.status == 202:
            yield Call("DELETE", f"/v1/queries/{found.json()['id']}")


def _follow(query_id: str, text: str) -> Flow[None]:
    """Wait for the end of a long question. An interruption cancels it on the server."""
    path = f"/v1/queries/{query_id}"
    try:
        while True:
            reply = yield from send(Call("GET", path))
            item = reply.json()
            if item["status"] != "running":
                break
            yield Progress(text, _share(item.get("progress")))
            yield Pause(POLL_SECONDS)
    except BaseException as error:
        cancelled = None
        if _is_interruption(error):
            cancelled = yield from send(Call("DELETE", path))
        if not isinstance(error, GeneratorExit):
            yield Progress(text, 1.0)
        if cancelled is not None and isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(cancelled.json().get("detail", "")) from None
        raise
    yield Progress(text, 1.0)
    if item["status"] in ("forfeited", "voided"):
        raise _ended(item["status"])


def _share(progress: Mapping[str, Any] | None) -> float | None:
    return None if not progress else progress["step"] / max(1, progress["steps"])


def _ended(status: str) -> BursarError:
    if status == "voided":
        members = {"detail": "The question was cancelled before any data were read."}
        return QuestionVoided(503, {**members, "type": "/problems/question-voided"})
    members = {"detail": "The question was charged and could not be answered."}
    return QuestionForfeited(503, {**members, "type": "/problems/question-forfeited"})


def rehearse(body: Body, text: str) -> Flow[Answer]:
    """The whole way on made-up rows. Nothing is charged."""
    reply = yield from send(Call("POST", "/v1/queries/rehearse", body, free=True))
    return read_answer(reply.json(), text, reply.headers)


def preview(body: Body | Sequence[Body]) -> Flow[Reply]:
    """The price and the expected error of one question, or of a list in order."""
    try:
        return (yield from send(Call("POST", "/v1/queries/preview", body, free=True)))
    except (NoGrant, NotFound) as error:
        if not isinstance(body, Mapping) or "sql" not in body or body.get("dataset"):
            raise
        raise (yield from _with_nearest_dataset(error, str(body["sql"]))) from None


def _with_nearest_dataset(error: Problem, sql: str) -> Flow[Problem]:
    """The same error, with the nearest name of a dataset after FROM."""
    named = re.search(r"\bfrom\s+[\"`]?([\w-]+)", sql, re.IGNORECASE)
    if named is None:
        return error
    names = [item["name"] for item in (yield from pages("/v1/datasets", {}))]
    near = did_you_mean(named[1], names)
    text = f"You have no dataset '{named[1]}'{near or '.'}"
    listed = "" if near else f"You may ask about {', '.join(names) or 'nothing yet'}."
    return type(error)(error.status, {**error.members, "detail": text}, hint=listed)
