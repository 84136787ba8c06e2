"""The flows of a question: ask, preview and rehearse."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from bursar.errors import BursarError, QuestionForfeited, QuestionVoided
from bursar.http.flow import Call, Flow, Pause, Progress, Reply, send
from bursar.http.rollback_check import SeenCharges
from bursar.results.answers import Answer, read_answer

WAIT_SECONDS = 2  # a longer question is followed, with its progress
POLL_SECONDS = 0.5
Body = Mapping[str, Any]


def ask(
    seen: SeenCharges, body: Body, text: str, key: str | None, *, fresh: bool = False
) -> Flow[Answer]:
    """Ask a question once: the same idempotency key is kept over every retry."""
    dataset = str(body.get("dataset") or text)
    yield from seen.check(dataset)
    before = seen.entry(dataset)
    headers = {"idempotency-key": key or f"py-{uuid.uuid4()}"}
    first = {**headers, "prefer": f"wait={WAIT_SECONDS}"}
    reply = yield from send(Call("POST", "/v1/queries", body, first))
    if reply.status == 202:
        yield from _follow(reply.json()["id"], text)
        reply = yield from send(Call("POST", "/v1/queries", body, headers))
    members = reply.json()
    new = not {"idempotent-replayed", "bursar-reused"} & set(reply.headers)
    seen.note(dataset, members, before=before, new=new)
    return read_answer(members, text, reply.headers)


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
        if not isinstance(error, BursarError):  # Ctrl-C, or a cancelled task
            yield from send(Call("DELETE", path))
        raise
    finally:
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
    return (yield from send(Call("POST", "/v1/queries/preview", body, free=True)))
