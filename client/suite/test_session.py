"""Sessions of an analyst against a real server, word for word as the guide has them."""

import asyncio
import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bursar
from bursar import Client, col
from bursar.http.flow import Call, Progress, send
from bursar.login import Login, login_file, store_login


def test_the_whole_session_of_an_analyst(b: Client, capsys: pytest.CaptureFixture[str]) -> None:
    census = b["census"]
    assert "budget of analyst-1 on census" in repr(census)
    assert "Budget of analyst-1" in census._repr_html_()
    assert len(census.sample(5).to_pandas()) == 5
    adults = census.where(col.age >= 18)
    q = adults.mean("income").by("region")
    preview = q.preview(epsilon=0.05, rows=7000)
    assert preview.price.epsilon == 0.05
    assert preview.expected_error.half_width is not None
    assert not preview.expected_error.promise
    assert "7,000" in preview.expected_error.text or "7000" in preview.expected_error.text
    a = q.ask(epsilon=0.05)
    frame = a.to_pandas()
    assert list(frame.columns) == ["region", "value", "low", "high"]
    assert list(frame["region"]) == ["north", "south", "east", "west"]
    assert (a.value[0]["value"], a.interval) == (frame["value"][0], None)
    assert a.charged.loss.epsilon == 0.05
    assert a.receipt is not None
    assert not a.reused
    again = q.ask(epsilon=0.05)
    assert again.reused
    assert again.value == a.value
    assert a.remaining is not None
    assert again.remaining == a.remaining
    within = adults.count().ask(within=200)
    assert within.interval is not None
    assert within.interval.high - within.interval.low <= 400
    assert within.charged.loss.epsilon == pytest.approx(0.0149, abs=0.0002)
    before = census.budget
    medians = adults.median("income").by("region").ask(epsilon=0.1)
    assert len(medians.rows()) == 4
    assert medians.charged.loss.epsilon == 0.1  # four cells, one price
    after = census.budget
    assert before.remaining.epsilon is not None
    assert after.remaining.epsilon is not None
    assert after.remaining.epsilon == pytest.approx(before.remaining.epsilon - 0.1)
    sql = census.sql("SELECT region, AVG(hours) FROM census GROUP BY region").ask(epsilon=0.1)
    assert len(sql.to_pandas()) == 4
    plan = b.plan(q, adults.count(), census.histogram("age", range(0, 121, 20)))
    shown = plan.preview(epsilon=1)
    assert len(shown.items) == 3
    assert shown.stops_at == 2
    with pytest.raises(bursar.BudgetExhausted) as caught:
        plan.ask(epsilon=1)
    assert b.history().rows()[0]["kind"] != "histogram"  # none of them was asked
    with pytest.raises(bursar.BudgetExhausted) as caught:
        adults.count().ask(epsilon=9)
    assert caught.value.largest_epsilon == pytest.approx(after.remaining.epsilon - 0.1)
    assert "epsilon=" in str(caught.value)
    assert "burn" not in capsys.readouterr().err


def test_budgets_have_history_forecast_and_an_attackers_sentence(b: Client) -> None:
    census = b["census"]
    census.where(col.age >= 91).count().ask(epsilon=0.01)
    budget = census.budget
    history = budget.history()
    frame = history.to_pandas()
    assert frame["used"].iloc[-1] == budget.used
    assert frame["entry"].iloc[0] == "grant"
    assert "used up around" in budget.forecast().text
    assert "<svg" in budget._repr_html_()
    sentence = str(budget.tradeoff())
    assert "wrongly accuses 5 %" in sentence
    assert "<svg" in budget.tradeoff()._repr_html_()


def test_a_forecast_from_the_newest_entries_counts_what_they_spent(b: Client) -> None:
    """Entries that are not listed have spent something, but nobody knows when."""
    census = b["census"]
    for age in (92, 93):
        census.where(col.age >= age).count().ask(epsilon=0.01)
    history = census.budget.history()
    assert history.complete
    last = replace(history, items=history.items[-1:])
    assert "used up around" in last.forecast().text
    assert replace(last, complete=False).forecast().text.startswith("Nothing was spent")


def test_a_rehearsal_is_free_and_marked(b: Client) -> None:
    census = b["census"]
    before = census.budget.used
    answer = census.mean("income").by("region").rehearse(epsilon=0.5)
    assert answer.made_up
    assert answer.status == "rehearsed"
    assert answer.receipt is None
    assert len(answer.rows()) == 4
    assert list(answer.to_pandas()["made_up"]) == [True] * 4
    assert answer.to_csv().startswith("region,value,low,high,made_up\n")
    assert answer.charged.loss.epsilon == 0
    assert answer.charged.price.epsilon == 0.5
    assert "the real question would cost ε 0.5" in repr(answer)
    assert census.budget.used == before
    medians = census.median("income").by("region").rehearse(epsilon=0.5, rows=200)
    assert medians.made_up
    assert len(medians.rows()) == 4


def test_a_preview_has_a_curve_of_error_against_price(b: Client) -> None:
    preview = b["census"].count().preview(epsilons=[0.01, 0.1, 1])
    errors = [point["expected_error"]["half_width"] for point in preview.curve]
    assert errors == sorted(errors, reverse=True)
    assert "<svg" in preview._repr_html_()


def test_an_administrator_sees_what_a_budget_would_buy(keys: dict[str, str]) -> None:
    count = bursar.connect(key=keys["admin"])["census"].count()
    account = {"currency": "zcdp", "epsilon": 3, "delta": 1e-6}
    made_up = count.preview(epsilon=0.1, account=account)
    assert made_up.fits
    assert made_up.questions_left == 37
    assert count.preview(epsilon=0.1, holder="analyst-1").questions_left is not None
    with pytest.raises(bursar.BursarError):
        count.preview(epsilon=0.1)


def test_an_administrator_sees_the_budget_of_everybody(keys: dict[str, str]) -> None:
    for name in ("admin", "viewer"):
        census = bursar.connect(key=keys[name])["census"]
        assert census.budget.holder == "*"
        assert "budget of everybody together (*) on census" in repr(census)
        assert "analyst-" not in repr(census)


def test_streams_and_the_calculator(b: Client) -> None:
    opener = b["census"].above_threshold(1000, crossings=1, asks_max=5)
    assert opener.preview(epsilon=0.2).fits
    assert "nothing paid yet" in repr(opener)
    assert "costs ε 0.2" in repr(opener.preview(epsilon=0.2))
    stream = opener.open(epsilon=0.2)
    assert repr(stream) == (
        "stream above threshold of census: open; 5 asks left; 1 crossings left; charged ε 0.2"
    )
    assert "stream above threshold" in stream._repr_html_()
    assert stream.ask(col.age > 119).above is False
    last = stream.ask(col.age >= 0)
    assert last.above is True
    assert repr(last) == "at or above the threshold; 3 asks left; 0 crossings left"
    assert "at or above" in last._repr_html_()
    assert stream.refresh().state.status == "ended"
    with pytest.raises(bursar.StreamEnded):
        stream.ask(col.age > 3)
    events = [bursar.calculator.laplace(0.1, count=10), bursar.calculator.gaussian(2)]
    composed = b.compose(events, delta=1e-6)
    assert composed.best in composed.results
    assert len(composed.to_pandas()) == len(composed.results)
    target = bursar.calculator.target("gaussian", epsilon=1, delta=1e-6, count=10)
    assert b.compose(target=target, accountants=["zcdp"]).results


def test_the_asynchronous_client_does_the_same(keys: dict[str, str]) -> None:
    async def session() -> tuple[Any, Any]:
        async with bursar.connect_async(key=keys["analyst-2"]) as b:
            census = await b["census"]
            counts = [census.where(col.age >= age).count() for age in (20, 40, 60)]
            answers = await asyncio.gather(*(count.ask(epsilon=0.01) for count in counts))
            budget = await census.budget
            return [answer.value for answer in answers], (await budget.history()).rows()[-1]

    values, last = asyncio.run(session())
    assert values[0] > values[1] > values[2]
    assert last["epsilon"] == 0.01


def test_a_long_question_shows_progress_and_can_be_interrupted(keys: dict[str, str]) -> None:
    grant_zcdp(keys["admin"], "rand-hie", "analyst-2")
    b = bursar.connect(key=keys["analyst-2"])
    table = b["rand-hie"]
    shown: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        shown.append(progress)
        if progress.share != 1.0:
            raise KeyboardInterrupt

    table.transport._show = interrupt
    question = table.logistic_regression("individual_deductible", ["year", "age"])
    long = bursar.mechanisms.noisy_gradient_descent(steps=2000)
    with pytest.raises(KeyboardInterrupt, match=r"cancelled|charged|settled"):
        question.ask(rho=1e-4, mechanism=long)
    assert [progress.share for progress in shown][-1] == 1.0
    last = b.history().rows()[0]
    assert last["kind"] == "logistic_regression"
    assert last["status"] in ("forfeited", "voided")


def test_an_interruption_in_the_first_second_cancels_as_well(keys: dict[str, str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    grant_zcdp(keys["admin"], "rand-hie", "analyst-2")
    b = bursar.connect(key=keys["analyst-2"])
    question = b["rand-hie"].logistic_regression("individual_deductible", ["year", "age"])
    long = bursar.mechanisms.noisy_gradient_descent(steps=1999)
    threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        question.ask(rho=1e-4, mechanism=long)
    deadline = time.monotonic() + 30
    while (last := b.history().rows()[0])["status"] == "running" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert last["kind"] == "logistic_regression"
    assert last["status"] in ("forfeited", "voided")


def grant_zcdp(key: str, dataset: str, holder: str) -> None:
    """Budgets that can pay for learning; the client itself grants nothing."""
    admin = bursar.connect(key=key)
    body = {"currency": "zcdp", "epsilon": 3, "delta": 1e-6}
    for name in ("*", holder):
        path = f"/v1/datasets/{dataset}/budgets/{name}"
        admin._transport.run(send(Call("PUT", path, body)))


# Bad input, each in one or two lines


def lines_of(error: bursar.BursarError) -> str:
    text = str(error)
    assert len(text.splitlines()) <= 2
    assert error._render_traceback_()[0].startswith(type(error).__name__)
    return text


def test_a_wrong_key_says_what_to_do() -> None:
    with pytest.raises(bursar.NotAuthenticated) as caught:
        bursar.connect(key="wrong").datasets()
    assert "bursar login" in lines_of(caught.value)


def test_a_server_that_is_away_says_so() -> None:
    with pytest.raises(bursar.Unreachable) as caught:
        bursar.connect("http://127.0.0.1:9", "key").datasets()
    assert "Is the server running?" in lines_of(caught.value)


def test_no_login_says_how_to_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BURSAR_URL")
    monkeypatch.delenv("BURSAR_KEY", raising=False)
    with pytest.raises(bursar.NoLogin) as caught:
        bursar.connect()
    assert "bursar login" in lines_of(caught.value)
    monkeypatch.setenv("BURSAR_URL", "127.0.0.1")
    monkeypatch.setenv("BURSAR_KEY", "key")
    with pytest.raises(bursar.NoLogin, match="is not an address"):
        bursar.connect()


def test_a_stored_login_is_private_and_for_its_address_only(
    keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = os.environ["BURSAR_URL"]
    path = store_login(Login(url, keys["analyst-1"]))
    assert path == login_file()
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.delenv("BURSAR_KEY", raising=False)
    assert len(bursar.connect().datasets()) == 2
    with pytest.raises(bursar.NoLogin, match="no key"):
        bursar.connect("http://127.0.0.1:9")
    path.write_text("{")
    with pytest.raises(bursar.NoLogin, match="cannot be read"):
        bursar.connect()


def test_typos_get_the_nearest_name(b: Client) -> None:
    with pytest.raises(bursar.NotFound) as caught:
        b["cenus"]
    assert "did you mean 'census'" in lines_of(caught.value)
    with pytest.raises(bursar.NoGrant, match="no dataset 'cenus'; did you mean 'census'"):
        b.sql("SELECT COUNT(*) FROM cenus").ask(epsilon=0.01)
    census = b["census"]
    with pytest.raises(bursar.BadQuestion, match="did you mean 'income'"):
        census.mean("incme")
    with pytest.raises(bursar.Invalid, match="did you mean 'north'"):
        census.where(col.region == "nrth").count().ask(epsilon=0.01)
    with pytest.raises(bursar.Invalid, match="greater than zero"):
        census.count().ask(epsilon=-1)


def test_a_rolled_back_server_is_refused(b: Client, keys: dict[str, str], own_home: Path) -> None:
    census = b["census"]
    answer = census.where(col.age >= 92).count().ask(epsilon=0.01)
    (file,) = (own_home / ".local" / "state" / "bursar").glob("seen-*.json")
    marks = json.loads(file.read_text())
    assert marks["census"]["id"] == answer.id
    marks["census"] |= {"id": "q_01a1efc0336446361c4d9700228311dd", "entry": 10**6}
    file.write_text(json.dumps(marks))
    later = bursar.connect(key=keys["analyst-1"])
    with pytest.raises(bursar.RolledBack, match="older copy"):
        later["census"].where(col.age >= 93).count().ask(epsilon=0.01)
