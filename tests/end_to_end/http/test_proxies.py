"""Headers of proxies count from trusted addresses only, over real sockets.

The tests speak from two addresses of this machine: 127.0.0.1 is a trusted proxy, and 127.0.0.2 is
not. The service shows a client's address to nobody, so its limit of open requests reveals it.
"""

import contextlib
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.bursard import wait_until
from tests.conftest import Template
from tests.server import World

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has 127.0.0.2 without being configured"
)
PROXY, STRANGER = "127.0.0.1", "127.0.0.2"
CLIENT, OTHER = "203.0.113.7", "198.51.100.9"
EACH = 2


@pytest.fixture(scope="module")
def behind(peopled: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = peopled("sqlite", tmp_path_factory.mktemp("proxies") / "ledger")
    world.serve(BURSAR_TRUSTED_PROXIES=f"{PROXY},10.0.0.0/8", BURSAR_CONNECTIONS_EACH=str(EACH))
    yield world
    world.ledger.stop()


Lines = list[tuple[str, str]]


@contextlib.contextmanager
def sent(world: World, path: str, lines: Lines, source: str = PROXY) -> Iterator[str]:
    """Send a request; its status line while the connection stays open, empty if it was closed."""
    url = urlsplit(world.server.url)
    address = url.hostname, url.port
    with socket.create_connection(address, timeout=60, source_address=(source, 0)) as connection:
        key = ("Authorization", f"Bearer {world.people['ada'].key}")
        head = "".join(f"{name}: {value}\r\n" for name, value in [("Host", "x"), key, *lines])
        with contextlib.suppress(ConnectionError):
            connection.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1"))
            yield connection.recv(4096).decode().partition("\r\n")[0]
            return
        yield ""


def forwarded_for(*values: str) -> Lines:
    return [("X-Forwarded-For", value) for value in values]


@contextlib.contextmanager
def crowded(world: World, client: str = CLIENT) -> Iterator[None]:
    """While this client has as many open requests as it may have."""
    with contextlib.ExitStack() as held:
        lines = forwarded_for(client)

        def opened() -> bool:
            with contextlib.ExitStack() as tried:
                status = tried.enter_context(sent(world, "/v1/budgets/events", lines))
                if "200" in status:
                    held.push(tried.pop_all())
                return "200" in status

        for _ in range(EACH):  # streams of an earlier test may be about to end
            wait_until(opened, 60, "no stream opens")
        yield


def status_of(world: World, lines: Lines, source: str = PROXY) -> str:
    with sent(world, "/healthz", lines, source) as line:
        return line.partition(" ")[2]


CROWDED, SERVED = "429 Too Many Requests", "200 OK"


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ([CLIENT], CROWDED),
        ([OTHER], SERVED),
        ([f"{OTHER}, {CLIENT}"], CROWDED),
        ([f"{CLIENT}, {OTHER}"], SERVED),
        ([OTHER, CLIENT], CROWDED),
        ([CLIENT, OTHER], SERVED),
        ([f"{CLIENT}, 10.1.2.3", PROXY], CROWDED),
        ([f"{CLIENT}, junk"], SERVED),
        ([f"junk, {CLIENT}:4711"], CROWDED),
        ([", ".join([OTHER] * 500 + [CLIENT])], CROWDED),
        ([", ".join([CLIENT] * 500 + [OTHER])], SERVED),
        ([*[OTHER] * 300, CLIENT], CROWDED),
        (["x" * 60_000 + "," + CLIENT], CROWDED),
        ([CLIENT + "," + "\xff" * 60_000], SERVED),
        ([], SERVED),
        ([""], SERVED),
    ],
    ids=range(16),
)
def test_the_limit_of_a_client_counts_its_own_address(
    behind: World, values: list[str], status: str
) -> None:
    with crowded(behind):
        assert status_of(behind, forwarded_for(*values)) == status


@pytest.mark.parametrize("name", ["Forwarded", "X-Real-IP", "X-Client-IP", "X-Forwarded-Host"])
def test_other_headers_name_no_client(behind: World, name: str) -> None:
    with crowded(behind):
        for value in (CLIENT, f"for={CLIENT};proto=https"):
            assert status_of(behind, [(name, value)]) == SERVED


def test_a_refusal_is_a_problem_with_the_safe_headers_and_ends_with_the_crowd(
    behind: World,
) -> None:
    client = behind.server.client(behind.people["ada"].key)
    with crowded(behind):
        reply = client.get("/v1/budgets", headers={"X-Forwarded-For": CLIENT})
        assert (reply.status_code, reply.json()["type"]) == (429, "/problems/too-many-running")
        assert reply.headers["Retry-After"] == "1"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
    wait_until(
        lambda: client.get("/v1/me", headers={"X-Forwarded-For": CLIENT}).status_code == 200,
        60,
        "the client stays crowded out",
    )


def test_a_proxy_may_have_more_connections_than_a_client(behind: World) -> None:
    with contextlib.ExitStack() as held:
        for number in range(4 * EACH):
            lines = forwarded_for(f"203.0.113.{100 + number}")
            line = held.enter_context(sent(behind, "/v1/budgets/events", lines))
            assert "200" in line


def test_a_stranger_cannot_pass_for_others(behind: World) -> None:
    """Each of its connections names another client, and still only a few are open."""
    lines: list[str] = []
    with contextlib.ExitStack() as held:
        for number in range(EACH + 1):
            forged = forwarded_for(f"203.0.113.{200 + number}")
            lines.append(
                held.enter_context(sent(behind, "/v1/budgets/events", forged, source=STRANGER))
            )
    assert [("200" in line) for line in lines] == [True] * EACH + [False]


def test_a_stranger_cannot_crowd_out_others(behind: World) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(EACH):
            forged = forwarded_for(OTHER)
            held.enter_context(sent(behind, "/v1/budgets/events", forged, source=STRANGER))
        assert status_of(behind, forwarded_for(OTHER)) == SERVED


def sign_in(world: World, source: str, origin: str, headers: Lines) -> httpx.Response:
    with httpx.Client(
        base_url=world.server.url, transport=httpx.HTTPTransport(local_address=source), timeout=60
    ) as client:
        sent_headers = [("Origin", origin), ("Host", "bursar.example"), *headers]
        return client.post("/sign-in", data={"key": world.people["ada"].key}, headers=sent_headers)


SECURE = "https://bursar.example"
PLAIN = "http://bursar.example"


@pytest.mark.parametrize(
    ("source", "values", "secure"),
    [
        (PROXY, ["https"], True),
        (PROXY, ["http", "https"], True),
        (PROXY, ["https, http"], False),
        (PROXY, ["https", "gopher"], False),
        (PROXY, ["https" * 10_000], False),
        (PROXY, [], False),
        (STRANGER, ["https"], False),
    ],
    ids=range(7),
)
def test_a_trusted_proxy_decides_whether_the_cookie_is_secure(
    behind: World, source: str, values: list[str], secure: bool
) -> None:
    lines = [*forwarded_for(OTHER), *(("X-Forwarded-Proto", value) for value in values)]
    own, foreign = (SECURE, PLAIN) if secure else (PLAIN, SECURE)
    reply = sign_in(behind, source, own, lines)
    assert reply.status_code == 303, reply.text
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("__Host-bursar=") is secure
    assert bool(re.search(r";\s*Secure", cookie)) is secure
    assert sign_in(behind, source, foreign, lines).status_code == 403


def test_the_configured_address_wins_over_the_proxy(peopled: Template, tmp_path: Path) -> None:
    world = peopled("sqlite", tmp_path / "ledger")
    try:
        world.serve(BURSAR_TRUSTED_PROXIES=PROXY, BURSAR_PUBLIC_URL=SECURE)
        reply = sign_in(world, PROXY, SECURE, [("X-Forwarded-Proto", "http")])
        assert reply.headers["set-cookie"].startswith("__Host-bursar=")
        refused = sign_in(world, PROXY, PLAIN, [("X-Forwarded-Proto", "http")])
        assert refused.status_code == 403
    finally:
        world.ledger.stop()


def test_the_description_of_the_interface_stays_the_same(behind: World, live: World) -> None:
    forged = {"X-Forwarded-For": OTHER, "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil"}
    plain = live.server.client().get("/openapi.json")
    assert behind.server.client().get("/openapi.json", headers=forged).content == plain.content
    assert "evil" not in plain.text
