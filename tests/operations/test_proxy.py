"""The proxy of docs/proxy passes everything that callers need, and the client's address."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.bursard import wait_until
from tests.conftest import Template
from tests.end_to_end.budgets.test_budget_events import Stream
from tests.operations.caddy import needs_caddy
from tests.operations.pair import Pair, served_pair
from tests.server import ask, count, exact, made, new_key

pytestmark = needs_caddy
EACH = 3
LIMIT = 4 << 20  # of a body, by default
# Added or changed on the way; everything else must be equal.
OF_THE_WAY = {
    *("date", "server", "strict-transport-security", "via", "content-length"),
    "bursar-request-id",  # of each request
}


@pytest.fixture(scope="module")
def pair(peopled: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("proxy")
    with served_pair(peopled, folder, BURSAR_CONNECTIONS_EACH=str(EACH)) as pair:
        yield pair


@pytest.fixture
def ada(pair: Pair) -> Iterator[httpx.Client]:
    with pair.proxy.client(pair.world.people["ada"].key) as client:
        yield client


def test_plain_http_leads_to_tls(pair: Pair) -> None:
    reply = httpx.get(f"http://localhost:{pair.proxy.plain_port}/v1/me")
    assert (reply.status_code, reply.headers["Location"]) == (308, "https://localhost/v1/me")
    with pair.proxy.client() as client:
        assert "max-age" in client.get("/healthz").headers["Strict-Transport-Security"]


def test_problems_and_headers_pass_unchanged(pair: Pair, ada: httpx.Client) -> None:
    direct = pair.world.client("ada")
    key = new_key()
    for client in (direct, ada):
        assert ask(client, count("people", 50), key).status_code == 402
    dear = {"Idempotency-Key": new_key()}
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/queries", {"json": count("people", 50), "headers": dear}),
        ("POST", "/v1/queries", {"content": b"{"}),
        ("GET", "/v1/nothing", {}),
        ("GET", "/v1/budgets", {"headers": {"Authorization": "Bearer wrong"}}),
        ("GET", "/v1/datasets/people/budgets/ada", {}),
        ("PUT", "/v1/healthz", {}),
        ("GET", "/openapi.json", {}),
        ("GET", "/v1/budgets?nothing=1", {}),
    ]
    for method, path, options in cases:
        through, straight = (client.request(method, path, **options) for client in (ada, direct))
        assert through.status_code == straight.status_code, path
        assert through.content == straight.content, path
        one, other = (
            {n: v for n, v in r.headers.items() if n not in OF_THE_WAY} for r in (through, straight)
        )
        assert one == other, path


def test_an_answer_repeats_through_either_server(ada: httpx.Client) -> None:
    key = new_key()
    replies = [ask(ada, count("people", 0.01), key) for _ in range(6)]
    assert len({reply.content for reply in replies}) == 1
    assert [reply.headers.get("Idempotent-Replayed") for reply in replies[1:]] == ["true"] * 5
    etag = ada.get("/v1/datasets/people/budgets/ada").headers["ETag"]
    unchanged = ada.get("/v1/budgets", headers={"If-None-Match": etag})
    assert unchanged.status_code in (200, 304)


def test_events_arrive_while_the_stream_is_open(
    pair: Pair, ada: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(pair.proxy.certificate))
    key = pair.world.people["ada"].key
    streams = [Stream(pair.world, key, url=pair.proxy.url) for _ in range(2)]
    try:
        for _ in range(2):
            made(ask(ada, count("people", 0.01, fresh=True), new_key()))
            spent = pair.world.spent("people", "ada")
            for stream in streams:
                assert exact(stream.next()[2]["spent"]) == spent
                assert not stream.ended.is_set()
    finally:
        for stream in streams:
            stream.close()


@pytest.mark.parametrize("chunked", [False, True])
def test_the_service_decides_how_large_a_body_may_be(ada: httpx.Client, chunked: bool) -> None:
    for size, status in ((LIMIT, 400), (LIMIT + 1, 413)):
        body = b" " * (size - 1) + b"{"
        sent = iter([body[:1000], body[1000:]]) if chunked else body
        reply = ada.post("/v1/queries", content=sent)
        assert reply.status_code == status, reply.text
        assert reply.headers["content-type"] == "application/problem+json"


def test_a_long_export_is_whole(pair: Pair) -> None:
    with pair.proxy.client(pair.world.ledger.admin_key) as client:
        straight = pair.world.admin.get("/v1/ledger/export").content
        assert client.get("/v1/ledger/export").content == straight


def test_measurements_are_not_outside(ada: httpx.Client) -> None:
    for path in ("/metrics", "/metrics/", "/metrics/x"):
        reply = ada.get(path)
        assert (reply.status_code, reply.content) == (404, b"")


def test_signing_in_makes_a_secure_cookie(pair: Pair) -> None:
    with pair.proxy.client() as client:
        sent = {"key": pair.world.people["ada"].key}
        foreign = client.post("/sign-in", data=sent, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        reply = client.post("/sign-in", data=sent, headers={"Origin": pair.proxy.url})
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        assert reply.headers["set-cookie"].startswith("__Host-bursar=")
        assert client.get("/", headers={"Accept": "text/html"}).status_code == 200


def test_each_client_has_its_own_limit_although_it_forges_headers(pair: Pair) -> None:
    """One client holds as many streams as both servers allow; a second one is served."""
    one, other = "127.0.0.2", "127.0.0.3"
    key = pair.world.people["bob"].key
    with contextlib.ExitStack() as held:
        refused = threading.Event()
        for number in range(4 * EACH):
            client = held.enter_context(pair.proxy.client(key, source=one))
            forged = {"X-Forwarded-For": f"203.0.113.{number}", "X-Real-IP": other}
            reply = held.enter_context(client.stream("GET", "/v1/budgets/events", headers=forged))
            if reply.status_code == 429:
                refused.set()
        assert refused.is_set()
        with pair.proxy.client(key, source=one) as client:
            assert client.get("/v1/budgets").status_code == 429
        with pair.proxy.client(key, source=other) as client:
            assert client.get("/v1/budgets", headers={"X-Forwarded-For": one}).status_code == 200
    with pair.proxy.client(key, source=one) as client:
        wait_until(lambda: client.get("/v1/budgets").status_code == 200, 60, "it stays refused")


def test_the_log_of_the_proxy_has_no_key(pair: Pair) -> None:
    assert pair.world.people["ada"].key not in pair.proxy.output()
