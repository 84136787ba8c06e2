"""axe on every page in both themes, and pages that fit a phone."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.server import World, made, some_rows
from tests.web.browsing import browsing

SERIOUS = ("serious", "critical")
PHONE, WIDE = 390, 1600
ASK = "/datasets/people/ask?kind=mean&f:column=income&by_column=region&amount=0.05&rows=1000"
PLAN = '/plan?q={"dataset":"people","query":{"kind":"count"},"privacy":{"epsilon":0.1}}'
# Swagger UI draws its choice of an example without a label. Everything else on the page counts.
RULES_OF_SWAGGER = ("select-name",)
VERIFIED = "/ledger/verify"  # shown after a click
PAGES = {
    "ada": [
        *("/", "/datasets", "/datasets/people", "/datasets/people/budgets/ada", ASK, PLAN),
        *(f"{ASK}&show=rehearsal", "/datasets/people/ask?tab=sql", "/questions"),
        "/questions/{latest}",
    ],
    "vera": ["/", "/datasets/people", "/datasets/people/budgets/*", "/ledger"],
    "admin": [
        *("/register", "/datasets/people", "/datasets/people/budgets/ada/grant", "/people"),
        *("/people/ada", "/ledger", "/questions", "/nothing"),
        *("/sign-in", "/sign-in?ended=1", "/register?place={file}", VERIFIED),
        *("/problems", "/problems/budget-exhausted", "/problems/unknown", "/docs"),
    ],
}


@pytest.fixture(scope="module")
def names(live: World) -> dict[str, str]:
    """Names in addresses: a question with groups, which ada has asked, and a file of data."""
    query = {"kind": "mean", "column": "income", "group_by": ["region"]}
    body = {"dataset": "people", "query": query, "privacy": {"epsilon": 0.05}}
    latest = str(made(live.client("ada").post("/v1/queries", json=body))["id"])
    return {"latest": latest, "file": live.write_csv(some_rows())}


def go(page: Page, path: str, names: dict[str, str]) -> None:
    """Open a page as a person does."""
    if path == VERIFIED:
        page.goto("/ledger")
        page.get_by_role("button", name="Verify the ledger").click()
        page.get_by_role("heading", name="sound").wait_for()
        return
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    page.goto(path)
    if path == "/docs":
        page.locator(".opblock-tag").first.click()
        preview = page.locator('[data-path="/v1/queries/preview"]')
        page.locator(".opblock-post").filter(has=preview).locator(
            ".opblock-summary-control"
        ).click()
        page.locator(".opblock-body pre").first.wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("person", list(PAGES))
def test_no_page_has_a_serious_finding(
    browser: Browser, live: World, names: dict[str, str], person: str, theme: str
) -> None:
    found = []
    with browsing(browser, live, person, theme=theme) as page:
        for path in PAGES[person]:
            go(page, path, names)
            ignored = RULES_OF_SWAGGER if path == "/docs" else ()
            for violation in Axe().run(page).response["violations"]:
                if violation["impact"] in SERIOUS and violation["id"] not in ignored:
                    nodes = [node["html"][:120] for node in violation["nodes"][:3]]
                    found.append((path, violation["id"], nodes))
    assert not found, found


@pytest.mark.parametrize("width", [PHONE, WIDE])
@pytest.mark.parametrize("person", list(PAGES))
def test_no_page_is_wider_than_the_screen(
    browser: Browser, live: World, names: dict[str, str], person: str, width: int
) -> None:
    too_wide = []
    with browsing(browser, live, person, width=width) as page:
        for path in PAGES[person]:
            go(page, path, names)
            wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            if wide > 0:
                too_wide.append((path, wide))
    assert not too_wide, too_wide


def test_a_page_can_be_used_by_keyboard(browser: Browser, live: World) -> None:
    with browsing(browser, live, "ada") as page:
        page.goto("/datasets/people/ask")
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.textContent")
        assert focused == "To the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent").startswith("Show the price"):
                break
        page.keyboard.press("Enter")
        page.wait_for_url("**show=price**")
