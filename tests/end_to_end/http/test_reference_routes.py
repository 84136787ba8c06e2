"""The reference documents every route of the application, and no other."""

import re
from pathlib import Path

from tests.server import World

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "http.md"
ROW = re.compile(r"^\| `(GET|POST|PUT|PATCH|DELETE) (/[^`? ]*)` \|", re.MULTILINE)


def routes_of(description: dict[str, dict[str, dict[str, object]]]) -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, operations in description["paths"].items()
        for method in operations
    }


def test_the_reference_documents_every_route_and_no_other(live: World) -> None:
    served = routes_of(live.admin.get("/openapi.json").json()) | {("GET", "/openapi.json")}
    section = REFERENCE.read_text().split("\n## Routes\n")[1].split("\n## ")[0]
    named = ROW.findall(section)
    assert len(named) == len(set(named))
    assert set(named) == served


def test_every_parameter_of_a_route_is_documented_beside_it(live: World) -> None:
    section = REFERENCE.read_text().split("\n## Routes\n")[1].split("\n## ")[0]
    rows = {key: line for line in section.splitlines() for key in ROW.findall(line)}
    paths = live.admin.get("/openapi.json").json()["paths"]
    silent = [
        (method, path, parameter["name"])
        for path, operations in paths.items()
        for method, operation in operations.items()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and f"`{parameter['name']}`" not in rows[method.upper(), path]
    ]
    assert silent == []
