"""Looks and words of pages: sign-out, addresses, versions, problems and themes."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.server import World, made
from tests.web.browsing import browsing
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
    assert re.search(r"Since .* epoch appended \d+ \S+ wave two .* registered ", shown), shown
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


def test_an_open_page_says_that_its_sign_in_has_ended(browser: Browser, live: World) -> None:
    person = live.person()
    name = live.open_dataset(person)
    with browsing(browser, live, person) as page:
        expect(page.locator("#live")).to_contain_text(name)
        expect(page.locator("#live [hx-get]")).to_have_count(0)  # its parts have come
        (key,) = made(live.admin.get(f"/v1/analysts/{person.name}"))["keys"]
        assert live.admin.delete(f"/v1/keys/{key['id']}").status_code == 204
        live.grant(name, person.name, 5)  # a change, which would have moved the page
        notice = page.get_by_role("alert")
        expect(notice).to_contain_text("Your sign-in has ended.", timeout=60_000)
        notice.get_by_role("link", name="Sign in again").click()
        page.wait_for_url("**/sign-in?expired=1&next=%2F")


def test_the_ledger_on_a_phone_has_short_rows_and_whole_entries(
    browser: Browser, live: World
) -> None:
    name = live.dataset()
    for limit in range(1, 41):
        live.grant(name, "*", limit)
    with browsing(browser, live, "admin", width=390) as page:
        page.goto(f"/ledger?dataset={name}")
        rows = page.locator("tbody tr")
        assert rows.count() > 40
        heights = [row.bounding_box() for row in rows.all()]
        assert max(box["height"] for box in heights if box is not None) < 110
        page.locator("summary").first.click()
        expect(page.locator("details[open]")).to_contain_text("Hash:")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_short_word_in_a_table_stays_whole(browser: Browser, live: World) -> None:
    with browsing(browser, live, "admin") as page:
        for path in ("/", "/datasets", "/people"):
            page.goto(path)
            wraps = "getComputedStyle(document.body).overflowWrap"
            assert page.evaluate(wraps) == "break-word"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_api_page_sends_what_is_free_and_nothing_that_changes(
    browser: Browser, live: World, theme: str
) -> None:
    with browsing(browser, live, "ada", theme=theme) as page:
        page.goto("/docs")
        page.locator(".opblock-tag", has_text="queries").first.click()
        for path, count in (("/v1/queries/preview", 1), ("/v1/queries", 0)):
            block = page.locator(".opblock-post").filter(has=page.locator(f'[data-path="{path}"]'))
            block.locator(".opblock-summary-control").click()
            expect(block.get_by_text("Request body").first).to_be_visible()
            expect(block.get_by_role("button", name="Try it out")).to_have_count(count)
