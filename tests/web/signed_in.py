"""People who use the pages over HTTP, without a browser."""

import html
import re
from dataclasses import dataclass
from typing import Any

import httpx

from tests.server import Person, World

PAGE = {"Accept": "text/html"}


@dataclass
class Visitor:
    """A person with a cookie; sends forms as a browser does, with an Origin."""

    client: httpx.Client

    @classmethod
    def of(cls, world: World, person: Person | str) -> "Visitor":
        key = world.ledger.admin_key if person == "admin" else ""
        if not key:
            key = (world.people[person] if isinstance(person, str) else person).key
        visitor = cls(world.server.client())
        reply = visitor.post("/sign-in", key=key, next="/")
        assert reply.status_code == 303, reply.text
        return visitor

    def get(self, path: str, **parameters: Any) -> httpx.Response:
        return self.client.get(path, headers=PAGE, params=parameters or None)

    def post(self, path: str, **fields: Any) -> httpx.Response:
        origin = str(self.client.base_url).rstrip("/")
        return self.client.post(path, data=fields, headers={**PAGE, "Origin": origin})

    def page(self, path: str, **parameters: Any) -> str:
        reply = self.get(path, **parameters)
        assert reply.status_code == 200, (path, reply.status_code, reply.text[:2000])
        return reply.text


def field_of(page: str, name: str) -> str:
    """The value of the first field of this name in a form."""
    found = re.search(rf'<input type="hidden" name="{re.escape(name)}" value="([^"]*)"', page)
    assert found is not None, f"there is no field {name}"
    return html.unescape(found[1])


def text_of(page: str) -> str:
    """A page as text, with single spaces."""
    body = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
