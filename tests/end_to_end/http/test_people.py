"""People, roles and keys over HTTP, in one process and in two."""

import datetime
import time

import pytest

from tests.bursard import wait_until
from tests.server import World, ask, count, made, new_key

ADMINISTRATION = [
    ("POST", "/v1/datasets"),
    ("PATCH", "/v1/datasets/people"),
    ("DELETE", "/v1/datasets/people"),
    ("DELETE", "/v1/datasets/nothing"),
    ("POST", "/v1/analysts"),
    ("GET", "/v1/analysts"),
    ("GET", "/v1/analysts/ada"),
    ("PATCH", "/v1/analysts/ada"),
    ("POST", "/v1/analysts/ada/keys"),
    ("DELETE", "/v1/keys/k_none"),
    ("PUT", "/v1/datasets/people/budgets/ada"),
    ("GET", "/v1/ledger/verify"),
]
AUDIT = [("GET", "/v1/ledger"), ("GET", "/v1/ledger/export")]
ASKING = [("POST", "/v1/queries"), ("POST", "/v1/queries/preview")]
LOOKING = [
    ("GET", "/v1/datasets"),
    ("GET", "/v1/datasets/people"),
    ("GET", "/v1/datasets/people/sample"),
    ("GET", "/v1/budgets"),
    ("GET", "/v1/datasets/people/budgets/ada"),
]
OPEN = ["/healthz", "/readyz", "/openapi.json"]


@pytest.mark.parametrize(("method", "path"), [*ADMINISTRATION, *AUDIT, *ASKING, *LOOKING])
def test_without_a_valid_key_every_reply_is_the_same_refusal(
    live: World, method: str, path: str
) -> None:
    client = live.server.client()
    for header in (
        {},
        {"Authorization": "Bearer bursar_wrong"},
        {"Authorization": f"Basic {live.people['ada'].key}"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer " + "x" * 5000},
    ):
        reply = client.request(method, path, headers=header, json={})
        assert reply.status_code == 401
        assert reply.headers["WWW-Authenticate"] == "Bearer"
        assert reply.json()["type"] == "/problems/not-authenticated"
    in_url = client.request(method, path, params={"key": live.people["ada"].key}, json={})
    assert in_url.status_code == 401


def test_each_role_has_its_own_permissions(live: World) -> None:
    ada, vera = live.client("ada"), live.client("vera")
    for method, path in ADMINISTRATION:
        for client in (ada, vera):
            assert client.request(method, path, json={}).status_code == 403, path
    for method, path in AUDIT:
        assert ada.request(method, path).status_code == 403
        assert vera.request(method, path).status_code == 200
    question = count("people", 0.01)
    for client in (live.admin, vera):
        assert client.post("/v1/queries", json=question).status_code == 403
        needs_an_account = client.post("/v1/queries/preview", json=question)
        assert needs_an_account.status_code == 422
        assert client.post("/v1/queries/preview", json=question | {"as": "ada"}).status_code == 200
    for method, path in ASKING:
        assert ada.request(method, path, json=question).status_code == 200
    for _, path in LOOKING:
        for client in (ada, vera, live.admin):
            assert client.get(path).status_code == 200
    for path in OPEN:
        assert live.server.client().get(path).status_code == 200


def test_every_reply_carries_the_security_headers(live: World) -> None:
    for path in ("/healthz", "/v1/datasets", "/nowhere"):
        headers = live.client("ada").get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_names_equal_after_folding_are_one_name(live_on_each: World) -> None:
    world = live_on_each
    made(world.admin.post("/v1/analysts", json={"name": "Zo\u00eb Stra\u00dfe"}))
    for alike in ("zo\u00eb strasse", "Zoe\u0308 Stra\u00dfe", "\uff3ao\u00eb STRASSE"):
        taken = world.admin.post("/v1/analysts", json={"name": alike})
        assert taken.status_code == 409, alike
        found = made(world.admin.get(f"/v1/analysts/{alike}"))
        assert found["name"] == "Zo\u00eb Stra\u00dfe"


INVISIBLE = ["a\u200bb", "a\u202eb", "a\ufeffb", "a\nb", "a\u2028b", "\u00ad", " a", "a ", ""]
MEANINGFUL = ["a/b", "*", "a:b"]


@pytest.mark.parametrize("name", INVISIBLE + MEANINGFUL)
def test_names_with_invisible_or_meaningful_characters_are_refused(live: World, name: str) -> None:
    before = live.entries("system")
    reply = live.admin.post("/v1/analysts", json={"name": name})
    assert reply.status_code == 422
    assert reply.json()["errors"][0]["pointer"] == "/name"
    assert live.entries("system") == before


def test_a_key_is_shown_once_and_never_again(live: World) -> None:
    person = live.person()
    assert person.key.startswith("bursar_")
    texts = [
        live.admin.get(f"/v1/analysts/{person.name}").text,
        live.admin.get("/v1/analysts", params={"limit": 200}).text,
        live.admin.get("/v1/ledger/export").text,
        live.server.output(),
    ]
    secret = person.key.split("_", 2)[2].rpartition("_")[0]  # the secret may contain "_" itself
    assert len(secret) > 40
    assert all(secret not in text for text in texts)
    stored = live.ledger.rows("SELECT prefix, hash FROM keys")
    assert all(secret not in column for row in stored for column in row)
    prefix = made(live.admin.get(f"/v1/analysts/{person.name}"))["keys"][0]["prefix"]
    assert person.key.startswith(prefix)


def test_a_revoked_key_stops_at_once_in_every_process(world: World) -> None:
    first, second = world.serve(), world.serve(elsewhere=True)
    person = world.person()
    world.grant("people", person.name, 1)
    clients = [server.client(person.key) for server in (first, second)]
    question = count("people", 0.01, fresh=True)
    for client in clients:
        assert ask(client, question, new_key()).status_code == 200
    (key,) = made(world.admin.get(f"/v1/analysts/{person.name}"))["keys"]
    for _ in range(2):  # a second revocation changes nothing
        assert world.admin.delete(f"/v1/keys/{key['id']}").status_code == 204
    spent = world.spent("people", person.name)
    for client in clients:
        assert ask(client, question, new_key()).status_code == 401
        assert client.get("/v1/budgets").status_code == 401
        assert client.get(f"/v1/datasets/people/budgets/{person.name}").status_code == 401
        assert client.post("/v1/queries/preview", json=question).status_code == 401
    assert world.spent("people", person.name) == spent
    assert len(world.entries("system", "key_revoked")) == 1

    another = made(world.admin.post(f"/v1/analysts/{person.name}/keys"))["key"]
    back = [server.client(another) for server in (first, second)]
    for client in back:
        assert ask(client, question, new_key()).status_code == 200
    made(world.admin.patch(f"/v1/analysts/{person.name}", json={"enabled": False}))
    for client in back:
        assert ask(client, question, new_key()).status_code == 401
    made(world.admin.patch(f"/v1/analysts/{person.name}", json={"enabled": True}))
    for client in back:
        assert ask(client, question, new_key()).status_code == 200
    world.must_be_sound()


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_an_expired_key_stops_working(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    seconds = 1.5
    while True:  # until a key lasts long enough to be used
        soon = now() + datetime.timedelta(seconds=seconds)
        lasting = {"expires_at": soon.isoformat()}
        issued = live.admin.post(f"/v1/analysts/{person.name}/keys", json=lasting)
        client = live.server.client(issued.json().get("key"))
        used = ask(client, count(dataset, 0.1), new_key())
        if now() < soon:
            break
        seconds *= 4
    assert used.status_code == 200
    wait_until(lambda: now() > soon, 2 * seconds, "the clock does not advance")
    time.sleep(0.05)
    assert ask(client, count(dataset, 0.1), new_key()).status_code == 401
    assert client.get("/v1/datasets").status_code == 401
    assert ask(live.client(person), count(dataset, 0.1), new_key()).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "2099-01-01T00:00:00"},
        {"expires_at": "soon"},
        {"expires_in_days": 0},
        {"expires_in_days": 99999},
        {"expires_in_days": True},
        {"expires_at": "2099-01-01T00:00:00Z", "expires_in_days": 3},
        {"until": "2099-01-01T00:00:00Z"},
    ],
)
def test_a_key_with_an_invalid_expiry_is_not_issued(live: World, body: dict[str, object]) -> None:
    before = live.entries("system")
    assert live.admin.post("/v1/analysts/ada/keys", json=body).status_code == 422
    assert live.entries("system") == before


def test_a_changed_role_takes_effect_at_once(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    assert ask(client, count(dataset, 0.1), new_key()).status_code == 200
    made(live.admin.patch(f"/v1/analysts/{person.name}", json={"role": "viewer"}))
    assert ask(client, count(dataset, 0.2), new_key()).status_code == 403
    assert client.get("/v1/ledger").status_code == 200
    changed = live.entries("system", "analyst_changed")[-1]
    assert changed["body"]["before"]["role"] == "analyst"
    assert changed["body"]["after"]["role"] == "viewer"
    assert changed["actor"] == "admin"


def test_the_last_administrator_cannot_be_removed(store_kind: str, world: World) -> None:
    for change in ({"enabled": False}, {"role": "viewer"}):
        reply = world.admin.patch("/v1/analysts/admin", json=change)
        assert reply.status_code == 409
    world.person("second", role="admin")
    made(world.admin.patch("/v1/analysts/admin", json={"enabled": False}))
    assert world.admin.get("/v1/analysts").status_code == 401
    assert world.client("second").get("/v1/analysts").status_code == 200


def test_the_operator_issues_lists_and_revokes_keys_beside_the_server(world: World) -> None:
    client_before = world.client("ada")
    assert client_before.get("/v1/datasets").status_code == 200
    key = world.ledger.bursard("keys", "issue", "ada").stdout.strip()
    client = world.server.client(key)
    assert ask(client, count("people", 0.01), new_key()).status_code == 200
    listed = world.ledger.bursard("keys", "list", "ada").stdout
    (line,) = [line for line in listed.splitlines() if key[:33] in line]
    key_id = line.split(",")[0]
    world.ledger.bursard("keys", "revoke", key_id)
    assert ask(client, count("people", 0.01), new_key()).status_code == 401
    nobody = world.ledger.bursard("keys", "issue", "nobody-at-all", check=False)
    assert nobody.returncode == 2
    assert "Traceback" not in nobody.stderr


def test_unknown_people_and_keys_are_not_found(live: World) -> None:
    admin = live.admin
    assert admin.get("/v1/analysts/nobody").status_code == 404
    assert admin.patch("/v1/analysts/nobody", json={"enabled": True}).status_code == 404
    assert admin.post("/v1/analysts/nobody/keys").status_code == 404
    assert admin.delete("/v1/keys/k_none").status_code == 404


def test_people_are_listed_in_pages_without_a_gap(live: World) -> None:
    for _ in range(3):
        live.person()
    names = [item["name"] for item in live.pages("/v1/analysts", limit=2)]
    assert len(names) == len(set(names))
    assert set(live.people) <= set(names)
