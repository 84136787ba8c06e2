"""`GET /metrics`: who may read it, what it shows, and that all workers show the same."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.bursard import wait_until
from tests.conftest import Template
from tests.end_to_end.telemetry.exposition import TOKEN, samples, scrape, total, value
from tests.server import World, above_threshold, ask, ask_stream, count, made, new_key, open_stream

PAGE = Path(__file__).resolve().parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `((?:bursar|process)_\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)
# Labels whose values are fixed words or names of the catalogue.
LABELS = {
    *("dataset", "holder", "currency", "type", "kind", "lane", "worker", "le"),
    *("route", "method", "status", "version", "python", "store"),
}
PLANTED = "planted-value-7c1f"


@pytest.fixture
def open_world(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made_world = peopled("sqlite", tmp_path / "ledger")
    made_world.serve(BURSAR_SCRAPE_TOKEN=TOKEN)
    yield made_world
    made_world.ledger.stop()


@pytest.fixture
def two_workers(peopled: Template, tmp_path: Path) -> Iterator[World]:
    made_world = peopled("sqlite", tmp_path / "ledger")
    server = made_world.serve(BURSAR_SCRAPE_TOKEN=TOKEN, BURSAR_WORKERS="2")
    wait_until(lambda: value(scrape(server), "bursar_workers") == 2, 60, "there are no two workers")
    yield made_world
    made_world.ledger.stop()


# Access


def test_administrators_viewers_and_the_token_may_scrape_and_nobody_else(open_world: World) -> None:
    server = open_world.server
    for key, status in (
        (open_world.ledger.admin_key, 200),
        (open_world.people["vera"].key, 200),
        (TOKEN, 200),
        (open_world.people["ada"].key, 403),
        (TOKEN[:-1], 401),
        (f"{TOKEN}x", 401),
        ("schlüssel", 401),
        (None, 401),
    ):
        headers = [] if key is None else [(b"Authorization", f"Bearer {key}".encode())]
        reply = server.client().get("/metrics", headers=headers)
        assert reply.status_code == status, (key, reply.text)
        kind = "text/plain" if status == 200 else "application/problem+json"
        assert reply.headers["content-type"].startswith(kind)


def test_the_scrape_token_opens_nothing_else(open_world: World) -> None:
    client = open_world.server.client(TOKEN)
    for path in ("/v1/budgets", "/v1/ledger", "/v1/me"):
        assert client.get(path).status_code == 401


def test_without_a_token_in_the_settings_no_token_opens(live: World) -> None:
    for shown in ("None", "x" * 40):
        assert live.server.client(shown).get("/metrics").status_code == 401
    assert live.admin.get("/metrics").status_code == 200


# Figures


def test_budgets_have_the_figures_that_their_route_shows(world: World) -> None:
    made(ask(world.client("ada"), count("people", 0.25), new_key()))
    world.grant("people", "bob", 0.5, currency="zcdp", delta=1e-6)
    text = world.admin.get("/metrics").text
    budgets = world.pages("/v1/budgets")
    assert len(budgets) == 3
    for budget in budgets:
        labels = {"dataset": budget["dataset"], "holder": budget["holder"]}
        for metric, number in (
            ("limit_epsilon", budget["limit"]["epsilon"]),
            ("remaining_epsilon", budget["remaining"]["epsilon"]),
            ("used_ratio", budget["used"]),
            ("remaining_ratio", 1 - budget["used"]),
            ("frozen", budget["frozen"]),
            ("info", 1),
        ):
            more = {"currency": budget["currency"]} if metric == "info" else {}
            assert value(text, f"bursar_budget_{metric}", **labels, **more) == number
    assert value(text, "bursar_budget_changes_total", dataset="people", holder="ada") == 2
    lines = world.admin.get("/v1/ledger/export").text.splitlines()
    entries = sum('"type":"entry"' in line for line in lines)
    assert value(text, "bursar_ledger_entries_total") == entries
    assert value(text, "bursar_charging_stopped") == 0
    assert value(text, "bursar_ledger_up") == 1


def test_questions_are_counted_by_their_outcome(open_world: World) -> None:
    client, key = open_world.client("ada"), new_key()
    made(ask(client, count("people", 0.25), key))
    made(ask(client, count("people", 0.25), key))  # repeated
    made(ask(client, count("people", 0.25), new_key()))  # reused
    assert ask(client, count("people", 9), new_key()).status_code == 402
    assert ask(client, count("nothing", 0.1), new_key()).status_code == 403
    stream = made(open_stream(client, above_threshold("people", 0.25), new_key()))["id"]
    made(ask_stream(client, stream, request_key=new_key()))
    text = scrape(open_world.server)
    for name, number in (
        ("charges", 2),
        ("answers", 3),  # of the question, the opening and the ask
        ("repeats", 2),
        ("forfeits", 0),
        ("voids", 0),
        ("stream_asks", 1),
    ):
        assert value(text, f"bursar_{name}_total") == number, name
    assert value(text, "bursar_refusals_total", type="budget-exhausted") == 1
    assert value(text, "bursar_refusals_total", type="no-grant") == 1
    asked = {"route": "/v1/queries", "method": "POST"}
    assert value(text, "bursar_requests_total", status="2xx", **asked) == 3
    assert value(text, "bursar_requests_total", status="4xx", **asked) == 2
    assert value(text, "bursar_writer_batch_orders_count") > 0


def test_a_forfeited_question_is_counted(open_world: World) -> None:
    for version in (open_world.ledger.home / "versions").glob("*.duckdb"):
        version.unlink()
        version.write_bytes(b"garbage" * 1000)
    assert ask(open_world.client("ada"), count("people", 0.25), new_key()).status_code == 503
    text = scrape(open_world.server)
    assert value(text, "bursar_forfeits_total") == 1
    assert value(text, "bursar_charges_total") == 1
    assert value(text, "bursar_refusals_total", type="question-forfeited") == 1


def test_slots_are_counted_by_their_public_length(peopled: Template, tmp_path: Path) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        server = world.serve(BURSAR_SCRAPE_TOKEN=TOKEN, BURSAR_RELEASE_GRID_MS="100")
        made(ask(world.client("ada"), count("people", 0.25), new_key()))
        text = scrape(server)
        assert value(text, "bursar_slots_total", lane="quick") == 1
        assert value(text, "bursar_slot_seconds_total", lane="quick") == 0.1
    finally:
        world.ledger.stop()


# Labels


def test_no_label_has_a_text_that_somebody_typed(open_world: World) -> None:
    client = open_world.server.client(open_world.people["ada"].key)
    before = len(list(samples(scrape(open_world.server))))
    for number in range(20):
        typed = f"{PLANTED}-{number}"
        client.get(f"/{typed}")
        client.get(f"/v1/datasets/{typed}")
        client.get("/v1/budgets", params={typed: typed})
        client.request(typed, "/v1/me")
        ask(client, count(typed), typed)
        client.get("/v1/me", headers={"Bursar-Request-Id": typed, "User-Agent": typed})
    text = scrape(open_world.server)
    assert PLANTED not in text
    found = list(samples(text))
    assert len(found) - before <= 12
    assert {label for _, labels, _ in found for label in labels} <= LABELS


def test_a_name_of_the_catalogue_may_have_any_letter(open_world: World) -> None:
    name = 'straße "1"\\ 数据'
    open_world.dataset(name=name)
    open_world.grant(name.replace("\\", "%5C").replace('"', "%22"), "*", 1)
    assert (
        value(scrape(open_world.server), "bursar_budget_used_ratio", dataset=name, holder="*") == 0
    )


# The page


def test_the_page_lists_every_metric_with_its_type_and_labels(open_world: World) -> None:
    made(ask(open_world.client("ada"), count("people", 0.25), new_key()))
    text = scrape(open_world.server)
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    labels: dict[str, set[str]] = {name: set() for name in types}
    for name, its, _ in samples(text):
        base = re.sub(r"_(bucket|sum|count)$", "", name) if name not in types else name
        labels[base] |= set(its) - {"le"}
    documented = {name: (kind, cell) for name, kind, cell in ROW.findall(PAGE.read_text())}
    assert {name: kind for name, (kind, _) in documented.items()} == types
    assert {
        name: set(re.findall(r"`(\w+)`", cell)) for name, (_, cell) in documented.items()
    } == labels


# Several workers


def each_worker(server_url: str, read: Callable[[httpx.Client], str]) -> list[str]:
    """Replies over many connections, which the workers share."""

    def one(_: int) -> str:
        headers = {"Authorization": f"Bearer {TOKEN}", "Connection": "close"}
        with httpx.Client(base_url=server_url, headers=headers) as client:
            return read(client)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(24)))


def test_every_worker_shows_the_counts_of_all(two_workers: World) -> None:
    server = two_workers.server
    key = two_workers.people["ada"].key
    for _ in range(10):
        with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {key}"}) as one:
            made(ask(one, count("people", 0.01, fresh=True), new_key()))
    asked = {"route": "/v1/queries", "method": "POST", "status": "2xx"}
    # A request is counted right after its reply.
    wait_until(
        lambda: total(scrape(server), "bursar_requests_total", **asked) == 10, 30, "not all counted"
    )
    texts = each_worker(server.url, lambda client: client.get("/metrics").text)
    assert {value(text, "bursar_charges_total") for text in texts} == {10}
    assert {value(text, "bursar_requests_total", **asked) for text in texts} == {10}
    assert {total(text, "bursar_budget_changes_total", holder="ada") for text in texts} == {11}
    assert all(value(text, "bursar_workers") == 2 for text in texts)


def test_a_worker_that_dies_loses_no_count_and_shows_no_state(two_workers: World) -> None:
    server = two_workers.server
    for _ in range(10):
        made(ask(two_workers.server.client(two_workers.people["ada"].key), count("people", 0.25)))
    before = value(scrape(server), "bursar_charges_total")
    starts = {its["worker"]: start for name, its, start in samples(scrape(server)) if name == START}
    workers = [
        child.pid
        for child in psutil.Process(server.process.pid).children()
        if "resource_tracker" not in " ".join(child.cmdline())
    ]
    os.kill(workers[0], signal.SIGKILL)

    def replaced() -> bool:
        text = scrape(server)
        assert value(text, "bursar_charges_total") == before
        now = {its["worker"]: start for name, its, start in samples(text) if name == START}
        return len(now) == 2 and now != starts

    wait_until(replaced, 60, "the worker was not replaced")


START = "process_start_time_seconds"


def test_the_text_passes_promtool(two_workers: World) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: the format of the metrics was not checked")
    made(ask(two_workers.client("ada"), count("people", 0.25), new_key()))
    text = scrape(two_workers.server)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_folder_of_the_workers_is_private_and_goes_with_the_server(two_workers: World) -> None:
    home = two_workers.ledger.home / "telemetry"
    (folder,) = home.glob("server-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    two_workers.server.stop()
    assert not folder.exists()
