"""Whole journeys in a real browser, on both stores. `browsing` fails if anything goes wrong."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, expect
from typing_extensions import override

from tests.bursard import wait_until
from tests.server import World, made
from tests.web.browsing import browsing


def choice(page: Page, name: str) -> Locator:
    return page.get_by_role("combobox", name=name, exact=True)


def compose(page: Page, amount: str) -> None:
    choice(page, "What").select_option("mean")
    choice(page, "Column").select_option("income")
    choice(page, "Column of condition 1").select_option("age")
    choice(page, "Comparison of condition 1").select_option(">=")
    page.get_by_label("Value of condition 1").fill("18")
    page.get_by_label("region").check()
    page.get_by_label("Rows that you expect").fill("1000")
    page.get_by_label("Amount").fill(amount)


def test_an_analyst_asks_and_reads_the_answer(browser: Browser, world: World) -> None:
    with browsing(browser, world, "ada") as page:
        page.get_by_role("link", name="ada").click()
        expect(page.get_by_role("heading", name="ada on people")).to_be_visible()
        page.get_by_role("link", name="Ask a question").click()
        compose(page, "0.25")
        result = page.locator("#result")
        expect(result).to_contain_text("mean of income where age ≥ 18 by region")
        expect(result).to_contain_text("Estimate for 1,000 rows")
        expect(page.locator("figure[data-chart] canvas")).to_have_count(1)
        page.get_by_role("button", name="Rehearse on made-up rows").click()
        expect(page.locator("#rehearsal")).to_contain_text("made-up rows")
        assert world.spent("people", "ada") == 0
        page.get_by_role("button", name="Ask for ε 0.25").click()
        expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
        expect(page.locator("svg.dots circle")).to_have_count(4)
        page.get_by_text("Python", exact=True).click()
        expect(page.locator("pre").filter(has_text="import bursar")).to_contain_text(
            ".mean('income').by('region').ask(epsilon=0.25)"
        )
        page.get_by_role("link", name="Budgets").first.click()
        expect(page.locator("#live")).to_contain_text("25 %")
    assert str(world.spent("people", "ada")) == "0.25"


def test_an_owner_brings_in_data_and_lets_somebody_ask(browser: Browser, world: World) -> None:
    path = world.write_csv(
        [[20 + i % 60, ("north", "south")[i % 2]] for i in range(50)], ["age", "side"]
    )
    with browsing(browser, world, "admin") as page:
        page.get_by_role("link", name="Register a dataset").click()
        page.get_by_label("File, folder or table").fill(path)
        page.get_by_role("button", name="Draft a card").click()
        page.get_by_label("Name", exact=True).fill("visits")
        choice(page, "Type of age").select_option("integer")
        page.get_by_label("Lowest age").fill("0")
        page.get_by_label("Highest age").fill("120")
        choice(page, "Type of side").select_option("category")
        page.get_by_label("Categories of side").fill("north, south")
        choice(page, "Column of the cells").select_option("side")
        page.get_by_role("button", name="Register", exact=True).click()
        expect(page.get_by_role("heading", name="visits")).to_be_visible()
        for holder, epsilon in (("*", "5"), ("ada", "1")):
            page.goto("/datasets/visits")
            page.get_by_label("Grant to").fill(holder)
            page.get_by_role("button", name="Go on").click()
            page.get_by_role("textbox", name="Epsilon").fill(epsilon)
            page.get_by_role("button", name="Show what it buys").click()
            expect(page.get_by_role("heading", name="Purchasing power")).to_be_visible()
            page.get_by_role("button", name="Grant the budget").click()
            expect(page.locator("#live")).to_contain_text(f"of ε {epsilon}")
        page.goto("/ledger")
        page.get_by_role("button", name="Verify the ledger").click()
        expect(page.get_by_role("heading", name="The ledger is sound")).to_be_visible()
    question = {"dataset": "visits", "query": {"kind": "count"}, "privacy": {"epsilon": 1}}
    made(world.client("ada").post("/v1/queries", json=question))


def test_a_viewer_watches_a_budget_move(browser: Browser, world: World) -> None:
    with browsing(browser, world, "vera") as page:
        page.goto("/datasets/people/budgets/ada")
        left = page.locator(".figure .value").first
        expect(left).to_have_text("ε 1")
        question = {"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 0.25}}
        made(world.client("ada").post("/v1/queries", json=question))
        expect(left).to_have_text("ε 0.75")  # without a reload
        expect(page.locator("figure[data-chart] canvas")).to_have_count(2)
        page.goto("/")
        expect(page.locator("svg.spark").first).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_url(re.compile("/sign-in"))


def test_an_open_page_follows_again_after_its_server_was_away(
    browser: Browser, world: World
) -> None:
    """The first server dies under the page. Then a stand-in answers 502, as a proxy does."""
    away = ("ERR_CONNECTION", "ERR_INCOMPLETE", "ERR_EMPTY", "ERR_SOCKET", "status of 502", "MIME")
    with browsing(browser, world, "vera", expected=away) as page:
        page.goto("/datasets/people/budgets/ada")
        left = page.locator(".figure .value").first
        expect(left).to_have_text("ε 1")
        port = urlsplit(world.server.url).port
        assert port is not None
        world.server.kill()
        with answering_502(port) as requests:
            wait_until(lambda: "/live" in requests, 60, "the page did not ask again")
        world.serve(BURSAR_PORT=str(port))
        question = {"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 0.25}}
        made(world.client("ada").post("/v1/queries", json=question))
        expect(left).to_have_text("ε 0.75", timeout=60_000)  # without a reload


@contextmanager
def answering_502(port: int) -> Iterator[list[str]]:
    """A server that refuses everything, and the paths that it was asked for."""
    paths: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(urlsplit(self.path).path)
            self.send_error(502)

        @override
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", port), Refusing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield paths
        server.shutdown()
        thread.join()


def test_every_form_works_without_scripts(browser: Browser, live: World) -> None:
    context = browser.new_context(base_url=live.server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/sign-in")
    page.get_by_label("Your key").fill(live.people["ada"].key)
    page.get_by_role("button", name="Sign in").click()
    page.goto("/datasets/people/ask")
    choice(page, "What").select_option("mean")
    page.get_by_role("button", name="Show the fields of this kind").click()
    choice(page, "Column").select_option("income")
    page.get_by_label("Amount").fill("0.05")
    page.get_by_role("button", name="Show the price").click()
    expect(page.locator("#result")).to_contain_text("mean of income")
    page.get_by_role("button", name="Ask for ε 0.05").click()
    expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
    context.close()


def test_the_sign_in_link_of_the_demo_signs_in_and_hides_the_key(
    browser: Browser, live: World
) -> None:
    context = browser.new_context(base_url=live.server.url)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    key = live.people["ada"].key
    page.goto(f"/sign-in#key={key}")
    page.wait_for_url("**/")
    assert not [url for url in requests if key in url]
    page.go_back()
    assert key not in page.url
    context.close()
