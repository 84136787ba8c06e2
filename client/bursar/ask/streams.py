"""Requests of streams, which live over many requests and are paid for when they are opened."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bursar.ask.amounts import Amount, Loss, privacy_of
from bursar.ask.filters import Condition
from bursar.ask.question_flows import idempotency_key
from bursar.http.flow import Call, Flow, send
from bursar.http.rollback_check import SeenCharges
from bursar.results.show import stream as shown
from bursar.results.streams import StreamAnswer, StreamPreview, StreamState


@dataclass(frozen=True, repr=False)
class StreamRequest(shown.Shown):
    """A stream that is not open yet."""

    dataset: str
    stream: Mapping[str, Any]

    def body(
        self,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        confidence: float | None = None,
    ) -> dict[str, Any]:
        privacy = privacy_of(epsilon=epsilon, delta=delta, rho=rho)
        body = {"dataset": self.dataset, "stream": self.stream, "privacy": privacy}
        return body if confidence is None else {**body, "confidence": confidence}

    def __repr__(self) -> str:
        return shown.request_text(self)


def above_threshold(dataset: str, threshold: int, crossings: int, asks_max: int) -> StreamRequest:
    fields = {"threshold": threshold, "crossings": crossings, "asks_max": asks_max}
    return StreamRequest(dataset, {"kind": "above_threshold", **fields})


def running_count(dataset: str, epochs_max: int, where: Condition | None) -> StreamRequest:
    fields: dict[str, Any] = {"kind": "running_count", "epochs_max": epochs_max}
    return StreamRequest(dataset, fields if where is None else {**fields, "where": where.body})


# Flows


def preview_flow(body: Mapping[str, Any]) -> Flow[StreamPreview]:
    reply = yield from send(Call("POST", "/v1/streams/preview", body, free=True))
    members = reply.json()
    price = Loss.read(members["price"])
    assert price is not None
    return StreamPreview(price, members["fits"], members["mechanism"], members)


def open_flow(seen: SeenCharges, body: Mapping[str, Any], key: str | None) -> Flow[StreamState]:
    """Pay for a stream, on a server that still has the last charge that this client saw."""
    dataset = str(body["dataset"])
    yield from seen.check(dataset)
    before = seen.entry(dataset)
    headers = {"idempotency-key": idempotency_key(key)}
    reply = yield from send(Call("POST", "/v1/streams", body, headers))
    members = reply.json()
    charge = {"id": members.get("query"), "receipt": members.get("receipt")}
    seen.note(dataset, charge, before=before, new="idempotent-replayed" not in reply.headers)
    return StreamState.read(members)


def ask_flow(seen: SeenCharges, state: StreamState, where: Condition | None) -> Flow[StreamAnswer]:
    """The next answer. An older copy of the ledger would answer from a stream of then."""
    yield from seen.check(state.dataset)
    body: dict[str, Any] = {}
    if state.kind == "above_threshold":
        body["query"] = {"kind": "count", **({} if where is None else {"where": where.body})}
    headers = {"idempotency-key": f"py-{uuid.uuid4()}"}
    reply = yield from send(Call("POST", f"/v1/streams/{state.id}/ask", body, headers))
    return StreamAnswer.read(reply.json())


def state_flow(stream_id: str) -> Flow[StreamState]:
    reply = yield from send(Call("GET", f"/v1/streams/{stream_id}"))
    return StreamState.read(reply.json())


def close_flow(stream_id: str) -> Flow[None]:
    yield from send(Call("DELETE", f"/v1/streams/{stream_id}"))
