"""Signing in: the cookie, its end, and forms from elsewhere."""

import hashlib
import json
import re
import time
from pathlib import Path

import httpx
import pytest

from app.store.encryption import AesSecretBox
from app.web import static_files
from app.web.session import ABOUT
from tests.server import World, made
from tests.web.signed_in import PAGE, Visitor, text_of


def test_a_key_becomes_an_encrypted_cookie_that_scripts_and_other_sites_cannot_use(
    live: World,
) -> None:
    client = live.server.client()
    key = live.people["ada"].key
    origin = {"Origin": live.server.url}
    reply = client.post("/sign-in", data={"key": key, "next": "/plan"}, headers=origin)
    assert (reply.status_code, reply.headers["location"]) == (303, "/plan")
    cookie = reply.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert key not in cookie
    assert key.split("_")[1] not in cookie
    assert client.get("/", headers=PAGE).status_code == 200


def test_a_wrong_key_is_refused_without_a_cookie(live: World) -> None:
    client = live.server.client()
    for key in ("", "bursar_wrong", "x" * 501, "käse"):
        reply = client.post(
            "/sign-in", data={"key": key}, headers={"Origin": live.server.url, **PAGE}
        )
        assert reply.status_code == 403
        assert "set-cookie" not in reply.headers
        assert "unknown, expired or revoked" in reply.text


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil", "x"])
def test_signing_in_never_leads_to_another_site(live: World, back: str) -> None:
    client = live.server.client()
    sent = {"key": live.people["ada"].key, "next": back}
    reply = client.post("/sign-in", data=sent, headers={"Origin": live.server.url})
    assert reply.headers["location"] == "/"


def test_without_a_sign_in_every_page_leads_to_it_and_back(live: World) -> None:
    client = live.server.client()
    for path in ("/", "/plan?q=1", "/datasets/people/ask", "/people", "/ledger", "/docs"):
        reply = client.get(path, headers=PAGE)
        assert reply.status_code == 303
        assert reply.headers["location"].startswith("/sign-in?next=%2F"), path


def test_a_form_from_another_site_is_ignored(live: World) -> None:
    visitor = Visitor.of(live, "admin")
    before = made(live.admin.get("/v1/analysts"))
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {},
    ):
        reply = visitor.client.post("/people", data={"name": "mallory"}, headers=headers)
        assert reply.status_code == 403
        assert "another site" in reply.text
    assert made(live.admin.get("/v1/analysts")) == before


def test_the_interface_takes_no_cookie(live: World) -> None:
    visitor = Visitor.of(live, "ada")
    assert visitor.client.get("/v1/budgets").status_code == 401


def test_signing_out_ends_the_sign_in(live: World) -> None:
    visitor = Visitor.of(live, "ada")
    assert visitor.post("/sign-out").status_code == 303
    assert visitor.get("/").status_code == 303


def test_a_revoked_key_ends_the_sign_in_at_once(live: World) -> None:
    person = live.person()
    visitor = Visitor.of(live, person)
    assert visitor.get("/").status_code == 200
    (key,) = made(live.admin.get(f"/v1/analysts/{person.name}"))["keys"]
    assert live.admin.delete(f"/v1/keys/{key['id']}").status_code == 204
    reply = visitor.get("/plan")
    assert reply.status_code == 303
    assert "expired=1" in reply.headers["location"]
    assert "Your sign-in has expired" in text_of(visitor.get(reply.headers["location"]).text)


def test_an_expired_or_altered_cookie_is_no_sign_in(live: World) -> None:
    visitor = Visitor.of(live, "ada")
    (cookie,) = visitor.client.cookies.jar
    assert cookie.value is not None
    secret = (live.ledger.home / "secret.key").read_text()
    box = AesSecretBox(secret, None, purpose="sessions", length=600)
    late = _sealed(box, live.people["ada"].key, time.time() - 1)
    for value in (late, cookie.value[:-3] + "AAA", "nonsense", ""):
        client = live.server.client()
        client.cookies.set(cookie.name, value)
        assert client.get("/", headers=PAGE).status_code == 303
    client = live.server.client()
    client.cookies.set(cookie.name, _sealed(box, live.people["ada"].key, time.time() + 60))
    assert client.get("/", headers=PAGE).status_code == 200


def _sealed(box: AesSecretBox, key: str, until: float) -> str:
    text = f'{{"key": "{key}", "until": {until}}}'
    return box.close(text, ABOUT).translate(str.maketrans("+/", "-_")).rstrip("=")


def test_the_sealed_cookie_has_one_length_for_all_keys(live: World) -> None:
    lengths = set()
    for person in ("ada", "bob"):
        (cookie,) = Visitor.of(live, person).client.cookies.jar
        lengths.add(len(cookie.value or ""))
    assert len(lengths) == 1


def test_a_secure_address_makes_a_host_cookie(world: World) -> None:
    world.serve(BURSAR_PUBLIC_URL="https://bursar.example/", BURSAR_SECRET_KEY="s" * 40)
    client = world.server.client()
    sent = {"key": world.people["ada"].key}
    refused = client.post("/sign-in", data=sent, headers={"Origin": world.server.url})
    assert refused.status_code == 403
    reply = client.post("/sign-in", data=sent, headers={"Origin": "https://bursar.example"})
    assert reply.status_code == 303
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith("__Host-bursar=")
    assert re.search(r";\s*Secure", cookie)


def test_a_shared_ledger_without_a_secret_key_says_what_its_operator_must_do(
    world: World,
) -> None:
    world.serve(BURSAR_SECRET_KEY="")
    client = world.server.client()
    sent = {"key": world.people["ada"].key}
    reply = client.post("/sign-in", data=sent, headers={"Origin": world.server.url, **PAGE})
    if world.ledger.kind == "sqlite":
        assert reply.status_code == 303
    else:
        assert reply.status_code == 503
        assert "BURSAR_SECRET_KEY" in reply.text


def test_pages_replace_the_policy_of_the_interface(live: World) -> None:
    visitor = Visitor.of(live, "ada")
    for path in ("/", "/sign-in", "/nothing-here"):
        reply = visitor.get(path)
        (policy,) = reply.headers.get_list("content-security-policy")
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers.get_list("cache-control") == ["no-store"]
        assert reply.headers["x-frame-options"] == "DENY"
    (policy,) = visitor.client.get("/healthz").headers.get_list("content-security-policy")
    assert policy == "default-src 'none'; frame-ancestors 'none'"


def test_no_page_has_anything_inline(live: World) -> None:
    visitor = Visitor.of(live, "ada")
    for path in ("/", "/datasets", "/datasets/people", "/datasets/people/ask", "/plan"):
        page = visitor.page(path)
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|javascript:", page), path
        for script in re.findall(r"<script[^>]*>", page):
            assert "src=" in script or 'type="application/json"' in script, script


def test_static_files_are_kept_for_ever_under_their_hash(live: World) -> None:
    visitor = Visitor.of(live, "ada")
    addresses = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', visitor.page("/")))
    assert len(addresses) >= 4
    for address in addresses:
        reply = httpx.get(live.server.url + address)
        assert reply.status_code == 200
        assert "immutable" in reply.headers["cache-control"]
        folder, name = address.rsplit("/", 1)
        assert httpx.get(f"{live.server.url}{folder[:-1]}0/{name}").status_code == 404
    for path in ("/static/x/../../settings.py", "/static/0/vendor.json", "/static/0/none.js"):
        assert httpx.get(live.server.url + path).status_code == 404


def test_every_file_that_is_not_ours_is_listed_with_its_hash() -> None:
    folder = Path(static_files.__file__).parent / "static"
    packages = json.loads((folder / "vendor.json").read_text())
    listed = {name: digest for one in packages.values() for name, digest in one["files"].items()}
    for name, digest in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    ours = {"api.js", "bursar.css", "bursar.js", "bursar.svg", "charts.js", "vendor.json"}
    others = {path.name for path in folder.iterdir()} - ours
    assert {name for name in others if not name.endswith(".LICENSE.txt")} == set(listed)


def test_unknown_addresses_are_pages_for_people_and_json_for_programs(live: World) -> None:
    client = live.server.client()
    assert "There is no page" in client.get("/nothing", headers=PAGE).text
    assert client.get("/nothing").headers["content-type"] == "application/problem+json"
    assert client.get("/problems").headers["content-type"] == "application/json"
    assert "text/html" in client.get("/problems", headers=PAGE).headers["content-type"]


def test_a_live_page_with_a_wrong_start_is_refused(live: World) -> None:
    assert Visitor.of(live, "vera").get("/live", since="x").status_code == 422
