"""What the pages say and how they look: sign-out, addresses, versions, problems and themes."""

import re

from tests.server import World, made
from tests.web.signed_in import Visitor, text_of


def test_signing_out_says_that_a_copy_of_the_cookie_works_until_the_key_is_revoked(
    live: World,
) -> None:
    person = live.person()
    visitor, thief = Visitor.of(live, person), live.server.client()
    (cookie,) = visitor.client.cookies.jar
    thief.cookies.set(cookie.name, cookie.value or "")
    reply = visitor.post("/sign-out")
    shown = text_of(visitor.page(reply.headers["location"]))
    assert "You are signed out in this browser." in shown
    assert "works until 12 hours after you signed in" in shown
    assert "ask an administrator to revoke your key" in shown
    assert visitor.get("/").status_code == 303
    page = {"Accept": "text/html"}
    assert thief.get("/", headers=page).status_code == 200
    (key,) = made(live.admin.get(f"/v1/analysts/{person.name}"))["keys"]
    assert live.admin.delete(f"/v1/keys/{key['id']}").status_code == 204
    assert thief.get("/", headers=page).status_code == 303


def test_a_dataset_named_new_has_its_own_page(live: World) -> None:
    admin = Visitor.of(live, "admin")
    live.dataset(name="new", description="Rows of the newest survey")
    assert "Rows of the newest survey" in text_of(admin.page("/datasets/new"))
    described = admin.post("/datasets/new", deed="describe", description="Rows of last week")
    assert (described.status_code, described.headers["location"]) == (303, "/datasets/new")
    assert made(live.admin.get("/v1/datasets/new"))["description"] == "Rows of last week"
    form = admin.page("/register")
    assert "Register a dataset" in text_of(form)
    assert '<a href="/datasets" aria-current="page">' in form


def test_a_dataset_page_lists_versions_and_epochs_and_describes_columns(live: World) -> None:
    person = live.person()
    columns = [
        {"name": "age", "type": "integer", "low": 0, "high": 120, "description": "Age in years"},
        {"name": "smoker", "type": "boolean"},
    ]
    header = ["age", "smoker"]
    name = live.dataset(live.write_csv([[i, "true"] for i in range(50)], header), columns=columns)
    more = live.write_csv([[i, "false"] for i in range(60, 90)], header)
    change = {"append": {"path": more}, "reason": "wave two"}
    made(live.admin.patch(f"/v1/datasets/{name}", json=change))
    live.grant(name, "*", 10)
    live.grant(name, person.name, 1)
    shown = text_of(Visitor.of(live, "admin").page(f"/datasets/{name}"))
    assert "Age in years" in shown
    assert re.search(r"Since .* epoch appended \d+ \S+ wave two .* registered – ", shown), shown
    own = text_of(Visitor.of(live, person).page(f"/datasets/{name}"))
    assert "Age in years" in own
    assert "The interface shows analysts no earlier versions" in own
    assert "wave two" not in own


def test_pages_of_problems_have_the_navigation_of_the_person_who_has_signed_in(live: World) -> None:
    ada, stranger = Visitor.of(live, "ada"), live.server.client()
    for path in ("/problems", "/problems/no-grant", "/problems/no-gramt"):
        page = ada.get(path).text
        assert 'aria-label="Pages"' in page, path
        assert "bursar.css" in page
        shown = stranger.get(path, headers={"Accept": "text/html"})
        assert 'aria-label="Pages"' not in shown.text
        assert "bursar.css" in shown.text
    mistyped = ada.get("/problems/no-gramt")
    assert mistyped.status_code == 404
    assert "did you mean no-grant" in text_of(mistyped.text)
    assert 'aria-label="Pages"' in ada.get("/datasets/missing").text
