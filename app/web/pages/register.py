"""Register a dataset: name the source, complete the card that its names and types suggest.

The address is not below /datasets: a dataset may have any name there, `new` too.
"""

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from app.names import new_id
from app.web.compose.question_from_form import plain, split
from app.web.interface import Json, Refused
from app.web.site import Form, Visit, segment, signed_in

TYPES = ("integer", "number", "category", "boolean", "date", "text")
ENGINES = {"duckdb": "a file or folder", "postgresql": "PostgreSQL", "spark": "Spark"}
BOUNDED = ("integer", "number", "date")


async def show(visit: Visit) -> Response:
    """The first step asks for the source; with one, the second shows the drafted card."""
    form = visit.query
    if not form.text("place"):
        return _page(visit, form)
    try:
        drafted = await visit.api.post("/v1/drafts", {"source": source_of(form)})
    except Refused as refused:
        if refused.status == 401:
            raise
        return _page(visit, form, refused=refused)
    return _page(visit, form, columns=drafted["card"]["columns"], left_out=drafted["left_out"])


async def register(visit: Visit) -> Response:
    """Register with the completed card. The same form sent again registers nothing twice."""
    form = visit.form
    try:
        body = dataset_of(form)
        made = await visit.api.post("/v1/datasets", body, key=form.text("request_key"))
    except Refused as refused:
        if refused.status == 401:
            raise
        return _page(visit, form, columns=columns_of(form), refused=refused)
    return visit.go(f"/datasets/{segment(made['name'])}")


def _page(
    visit: Visit,
    form: Form,
    *,
    columns: list[Json] | None = None,
    left_out: list[str] | None = None,
    refused: Refused | None = None,
) -> Response:
    return visit.page(
        "register.html",
        status=200 if refused is None else refused.status,
        form=form,
        columns=columns,
        left_out=left_out or [],
        refused=refused,
        engines=ENGINES,
        types=TYPES,
        request_key=form.text("request_key") or new_id("page"),
        suggested=form.text("name") or _stem(form.text("place")),
    )


def source_of(form: Form) -> Json:
    engine, place = form.text("engine", "duckdb"), form.text("place")
    member = "path" if engine == "duckdb" or (engine == "spark" and "/" in place) else "table"
    connection = form.text("connection")
    return {"engine": engine, member: place, **({"connection": connection} if connection else {})}


def dataset_of(form: Form) -> Json:
    """The body of a registration."""
    body: Json = {
        "name": form.text("name"),
        "description": form.text("description"),
        "source": source_of(form),
        "person": _person(form),
        "neighbours": form.text("neighbours", "add_remove"),
        "columns": columns_of(form),
    }
    if form.text("rows"):
        body["rows"] = plain(form.text("rows"))
    if form.text("size"):
        body["size"] = plain(form.text("size"))
    if form.text("cells"):
        edges = [plain(edge) for edge in split(form.text("cell_edges"))]
        body["cells"] = {"column": form.text("cells"), **({"edges": edges} if edges else {})}
    if form.text("reason"):
        body["reason"] = form.text("reason")
    return body


def _person(form: Form) -> Json:
    if form.text("person") != "column":
        return {"kind": "row"}
    rows_max = plain(form.text("rows_max")) if form.text("rows_max") else None
    return {"kind": "column", "column": form.text("person_column"), "rows_max": rows_max}


def columns_of(form: Form) -> list[Json]:
    """The columns that the form keeps, each with the members of its type."""
    columns = []
    for index, name in enumerate(form.texts("column")):
        kind = form.text(f"type:{index}")
        if kind:
            columns.append({"name": name, "type": kind, **_members(form, index, kind)})
    return columns


def _members(form: Form, index: int, kind: str) -> dict[str, Any]:
    if kind in BOUNDED:
        low, high = form.text(f"low:{index}"), form.text(f"high:{index}")
        read = str if kind == "date" else plain
        return {"low": read(low) if low else None, "high": read(high) if high else None}
    if kind == "category":
        return {"values": split(form.text(f"values:{index}"))}
    if kind == "text":
        return {"length_max": plain(form.text(f"length:{index}", "100"))}
    return {}


def _stem(place: str) -> str:
    return place.rstrip("/").rsplit("/", 1)[-1].split(".")[0]


ROUTES = [
    Route("/register", signed_in(show, "admin"), methods=["GET"]),
    Route("/register", signed_in(register, "admin"), methods=["POST"]),
]
