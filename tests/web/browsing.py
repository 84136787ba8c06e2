"""A person in a browser. Console errors, policy violations and outside requests fail the test."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response

from tests.server import Person, World

# The browser reports every refused page as an error, though a refusal is shown as it should be.
REFUSALS = ("status of 402", "status of 403", "status of 404", "status of 412", "status of 422")


class Watched:
    """Errors, outside requests and failures of a page."""

    def __init__(self, page: Page, address: str, expected: tuple[str, ...] = ()) -> None:
        self.wrong: list[str] = []
        self._address, self._expected = address, (*REFUSALS, *expected)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        refused = any(part in message.text for part in self._expected)
        if message.type in ("error", "warning") and not refused:
            self.wrong.append(f"{message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self.wrong.append(f"outside request: {request.url}")

    def _response(self, response: Response) -> None:
        refused = f"status of {response.status}" in self._expected
        if response.status >= 500 and not refused:
            self.wrong.append(f"{response.status} of {response.url}")


@contextmanager
def browsing(
    browser: Browser,
    world: World,
    person: Person | str,
    *,
    theme: str = "light",
    width: int = 1180,
    expected: tuple[str, ...] = (),
) -> Iterator[Page]:
    """A signed-in page. At its end nothing may have gone wrong on it but what was `expected`."""
    context = browser.new_context(
        base_url=world.server.url,
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": width, "height": 900},
    )
    page = context.new_page()
    watched = Watched(page, world.server.url, expected)
    key = world.ledger.admin_key if person == "admin" else ""
    if not key:
        key = (world.people[person] if isinstance(person, str) else person).key
    page.goto("/sign-in")
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")
    try:
        yield page
    finally:
        context.close()
    assert not watched.wrong, watched.wrong
