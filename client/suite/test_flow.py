"""Retries, idempotency keys, interruptions and the memory of charges, with scripted replies."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bursar import BudgetExhausted, EngineUnavailable, QuestionForfeited, RolledBack, Unreachable
from bursar.ask.question_flows import ask
from bursar.http.flow import ATTEMPTS_MAX, Call, Flow, Pause, Progress, Reply, Step, send
from bursar.http.rollback_check import SeenCharges
from bursar.results.answers import read_remaining

Json = dict[str, Any]
BODY = {"dataset": "census", "query": {"kind": "count"}, "privacy": {"epsilon": 0.1}}
DOWN = Unreachable("The server cannot be reached.")


def reply(status: int, members: Json, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, json.dumps(members).encode())


def problem(status: int, slug: str, **headers: str) -> Reply:
    members = {"type": f"/problems/{slug}", "status": status, "detail": "No."}
    return reply(status, members, **headers)


def answered(entry: int = 4, hashed: str = "aa", query_id: str = "q_1") -> Json:
    return {
        "id": query_id,
        "status": "answered",
        "value": 5,
        "interval": None,
        "mechanism": {"kind": "laplace"},
        "charged": {"epsilon": 0.1, "delta": 0, "cells": None, "accounts": []},
        "theorem": "",
        "receipt": {"entry": entry, "hash": hashed},
    }


def perform(
    flow: Flow[Any], replies: Iterable[Reply | BaseException], log: list[Step] | None = None
) -> tuple[Any, list[Step]]:
    """Run a flow with these replies to its calls; its result and its steps."""
    steps: list[Step] = [] if log is None else log
    waiting = list(replies)
    result, failure = None, None
    while True:
        try:
            step = flow.throw(failure) if failure is not None else flow.send(result)
        except StopIteration as end:
            assert not waiting, "a reply was not asked for"
            return end.value, steps
        steps.append(step)
        result, failure = None, None
        if isinstance(step, Call):
            following = waiting.pop(0)
            if isinstance(following, BaseException):
                failure = following
            else:
                result = following


def calls(steps: list[Step]) -> list[Call]:
    return [step for step in steps if isinstance(step, Call)]


def memory(folder: Path | None = None) -> SeenCharges:
    return SeenCharges("http://127.0.0.1:1", "key", folder)


def test_one_key_is_kept_over_every_retry() -> None:
    down = problem(503, "store-unavailable")
    answer, steps = perform(
        ask(memory(), BODY, "count", None), [DOWN, down, reply(200, answered())]
    )
    assert answer.value == 5
    keys = {call.headers["idempotency-key"] for call in calls(steps)}
    assert len(calls(steps)) == 3
    assert len(keys) == 1


def test_two_asks_have_two_keys() -> None:
    flows = [ask(memory(), BODY, "count", None) for _ in range(2)]
    sent = [calls(perform(flow, [reply(200, answered())])[1])[0] for flow in flows]
    assert sent[0].headers["idempotency-key"] != sent[1].headers["idempotency-key"]


def test_an_exhausted_budget_is_never_tried_again() -> None:
    refusal = problem(402, "budget-exhausted")
    with pytest.raises(BudgetExhausted):
        perform(ask(memory(), BODY, "count", None), [refusal])


@pytest.mark.parametrize("slug", ["question-forfeited", "engine-failed", "source-changed"])
def test_a_charged_failure_is_not_tried_again(slug: str) -> None:
    with pytest.raises(Exception, match="No"):
        perform(ask(memory(), BODY, "count", None), [problem(503, slug)])


def test_pauses_grow_and_end() -> None:
    with pytest.raises(EngineUnavailable):
        perform(send(Call("GET", "/")), [problem(503, "engine-unavailable")] * ATTEMPTS_MAX)
    steps: list[Step] = []
    flow = send(Call("GET", "/"))
    step = next(flow)
    for _ in range(ATTEMPTS_MAX - 1):
        pause = flow.send(problem(503, "engine-unavailable"))
        steps.append(pause)
        step = flow.send(None)
        assert isinstance(step, Call)
    pauses = [step.seconds for step in steps if isinstance(step, Pause)]
    longest = [0.25 * 2**n for n in range(ATTEMPTS_MAX - 1)]
    assert all(most / 2 <= p <= most for p, most in zip(pauses, longest, strict=True))


def test_retry_after_is_obeyed() -> None:
    busy = problem(429, "too-many-running", retry_after="3")
    _, steps = perform(send(Call("GET", "/")), [busy, reply(200, {})])
    assert [step for step in steps if isinstance(step, Pause)] == [Pause(3.0)]


def test_a_post_without_a_key_is_sent_once() -> None:
    with pytest.raises(Unreachable):
        perform(send(Call("POST", "/v1/queries", BODY)), [DOWN])


def test_a_free_post_is_tried_again() -> None:
    _, steps = perform(send(Call("POST", "/", free=True)), [DOWN, reply(200, {})])
    assert len(calls(steps)) == 2


def test_a_long_question_is_followed_with_progress() -> None:
    running = {"status": "running", "progress": {"step": 1, "steps": 4}}
    replies = [
        reply(202, {"id": "q_1", "status": "running"}),
        reply(200, running),
        reply(200, {**running, "progress": None}),
        reply(200, {"status": "answered"}),
        reply(200, answered(), idempotent_replayed="true"),
    ]
    answer, steps = perform(ask(memory(), BODY, "count", None), replies)
    assert answer.value == 5
    shares = [step.share for step in steps if isinstance(step, Progress)]
    assert shares == [0.25, None, 1.0]


def test_an_interruption_cancels_the_question_on_the_server() -> None:
    replies: list[Reply | BaseException] = [
        reply(202, {"id": "q_1"}),
        KeyboardInterrupt(),
        reply(200, {"status": "forfeited"}),
    ]
    sent: list[Step] = []
    with pytest.raises(KeyboardInterrupt):
        perform(ask(memory(), BODY, "count", None), replies, sent)
    last = calls(sent)[-1]
    assert (last.method, last.path) == ("DELETE", "/v1/queries/q_1")


def test_an_interruption_before_the_first_reply_cancels_as_well() -> None:
    replies: list[Reply | BaseException] = [
        KeyboardInterrupt(),
        reply(202, {"id": "q_1"}),
        reply(200, {"status": "voided"}),
    ]
    sent: list[Step] = []
    with pytest.raises(KeyboardInterrupt):
        perform(ask(memory(), BODY, "count", None), replies, sent)
    first, again, last = calls(sent)
    assert again.headers["idempotency-key"] == first.headers["idempotency-key"]
    assert again.headers["prefer"] == "wait=0"
    assert (last.method, last.path) == ("DELETE", "/v1/queries/q_1")


def test_an_interruption_of_a_server_that_is_away_ends_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        perform(ask(memory(), BODY, "count", None), [KeyboardInterrupt(), DOWN])


def test_a_question_that_ended_without_an_answer_is_an_error() -> None:
    replies = [reply(202, {"id": "q_1"}), reply(200, {"status": "forfeited"})]
    with pytest.raises(QuestionForfeited, match="charged"):
        perform(ask(memory(), BODY, "count", None), replies)


def test_a_page_that_is_not_json_is_named() -> None:
    page = Reply(200, {}, b"<html>welcome</html>")
    with pytest.raises(Unreachable, match="not JSON"):
        perform(ask(memory(), BODY, "count", None), [page])


# Ledgers that were rolled back


KNOWN = reply(200, {"receipt": {"entry": 9, "hash": "aa"}})  # the server still has entry 9


def test_a_new_charge_with_an_old_number_is_refused() -> None:
    seen = memory()
    perform(ask(seen, BODY, "count", None), [reply(200, answered(entry=9))])
    with pytest.raises(RolledBack, match="entry 9"):
        perform(ask(seen, BODY, "count", None), [KNOWN, reply(200, answered(8, "bb", "q_2"))])


def test_replays_and_reused_answers_may_be_old() -> None:
    seen = memory()
    perform(ask(seen, BODY, "count", None), [reply(200, answered(entry=9))])
    old = reply(200, answered(3, "cc", "q_0"), bursar_reused="true")
    answer, _ = perform(ask(seen, BODY, "count", None), [KNOWN, old])
    assert answer.reused


def test_the_same_number_with_another_hash_is_refused() -> None:
    seen = memory()
    perform(ask(seen, BODY, "count", None), [reply(200, answered(entry=9))])
    other = reply(200, answered(9, "zz"), idempotent_replayed="true")
    with pytest.raises(RolledBack):
        perform(ask(seen, BODY, "count", None), [KNOWN, other])


def test_the_last_charge_is_checked_before_every_question() -> None:
    seen = memory()
    perform(ask(seen, BODY, "count", None), [reply(200, answered(entry=9))])
    gone = problem(404, "not-found")
    sent: list[Step] = []
    with pytest.raises(RolledBack):
        perform(ask(seen, BODY, "count", None), [gone], sent)
    assert [call.method for call in calls(sent)] == ["GET"]


def test_the_dataset_of_sql_is_learned_before_it_is_asked() -> None:
    seen = memory()
    perform(ask(seen, BODY, "count", None), [reply(200, answered(entry=9))])
    sql = {"sql": "SELECT COUNT(*) FROM census", "privacy": {"epsilon": 0.1}}
    gone = problem(404, "not-found")
    for learned in (reply(200, {"dataset": "census"}), problem(422, "invalid")):
        sent: list[Step] = []
        with pytest.raises(RolledBack):
            perform(ask(seen, sql, "sql", None), [learned, gone], sent)
        assert calls(sent)[0].path == "/v1/queries/preview"


def test_a_new_process_checks_the_last_charge_before_it_asks(tmp_path: Path) -> None:
    perform(ask(memory(tmp_path), BODY, "count", None), [reply(200, answered(entry=9))])
    gone = problem(404, "not-found")
    with pytest.raises(RolledBack):
        perform(ask(memory(tmp_path), BODY, "count", None), [gone])
    other = reply(200, {"receipt": {"entry": 9, "hash": "zz"}})
    with pytest.raises(RolledBack):
        perform(ask(memory(tmp_path), BODY, "count", None), [other])
    same = reply(200, {"receipt": {"entry": 9, "hash": "aa"}})
    replies = [same, reply(200, answered(10, "bb", "q_2"))]
    answer, _ = perform(ask(memory(tmp_path), BODY, "count", None), replies)
    assert answer.receipt.entry == 10


def test_the_balance_in_a_header_is_read() -> None:
    remaining = read_remaining({"bursar-remaining": 'epsilon="2.9", delta="0.000001"'})
    assert remaining is not None
    assert (remaining.epsilon, remaining.delta) == (2.9, 1e-6)
    assert read_remaining({}) is None
