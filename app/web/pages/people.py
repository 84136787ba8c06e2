"""People: roles, groups, keys with their end, and revoking them; for administrators."""

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from app.names import new_id
from app.web.compose.question_from_form import plain, split
from app.web.interface import Json, Refused
from app.web.site import Visit, segment, signed_in

ROLES = {
    "analyst": "asks questions",
    "viewer": "sees budgets and the ledger",
    "admin": "registers, grants, and manages people",
}
KEY_DAYS = 90


async def show_list(visit: Visit) -> Response:
    return await _list_page(visit)


async def _list_page(visit: Visit, refused: Refused | None = None) -> Response:
    people = await visit.api.items("/v1/analysts")
    for one in people:
        one["path"] = _path(one["name"])
        one["live"] = [key for key in one["keys"] if key["revoked_at"] is None]
    return visit.page(
        "people.html",
        status=200 if refused is None else refused.status,
        people=people,
        roles=ROLES,
        refused=refused,
        form=visit.form,
        request_key=visit.form.text("request_key") or new_id("page"),
    )


async def create(visit: Visit) -> Response:
    form = visit.form
    body: Json = {
        "name": form.text("name"),
        "role": form.text("role", "analyst"),
        "groups": split(form.text("groups")),
        "reason": form.text("reason") or None,
    }
    try:
        made = await visit.api.post("/v1/analysts", body, key=form.text("request_key"))
    except Refused as refused:
        if refused.status == 401:
            raise
        return await _list_page(visit, refused)
    return visit.go(_path(made["name"]))


async def show(visit: Visit) -> Response:
    return await _page(visit)


async def _page(
    visit: Visit, refused: Refused | None = None, issued: Json | None = None
) -> Response:
    one = await visit.api.get(_twin(visit))
    return visit.page(
        "person.html",
        status=200 if refused is None else refused.status,
        one=one,
        path=_path(one["name"]),
        budgets_path=f"/?{urlencode({'holder': one['name']})}",
        questions_path=f"/questions?{urlencode({'holder': one['name']})}",
        roles=ROLES,
        days=KEY_DAYS,
        refused=refused,
        issued=issued,
        request_key=new_id("page"),
    )


async def change(visit: Visit) -> Response:
    """Change role and groups, or enable and disable."""
    form = visit.form
    body: dict[str, Any] = {"reason": form.text("reason") or None}
    if form.text("deed") in ("enable", "disable"):
        body["enabled"] = form.text("deed") == "enable"
    else:
        body |= {"role": form.text("role"), "groups": split(form.text("groups"))}
    return await _changed(visit, "PATCH", _twin(visit), body)


async def issue_key(visit: Visit) -> Response:
    """Issue a key. It is shown on this page once, and never again."""
    form = visit.form
    body: Json = {"reason": form.text("reason") or None}
    if form.text("days"):
        body["expires_in_days"] = plain(form.text("days"))
    try:
        issued = await visit.api.post(f"{_twin(visit)}/keys", body, key=form.text("request_key"))
    except Refused as refused:
        if refused.status == 401:
            raise
        return await _page(visit, refused)
    return await _page(visit, issued=issued)


async def revoke_key(visit: Visit) -> Response:
    twin = f"/v1/keys/{segment(visit.path['key'])}"
    reason = {"reason": visit.form.text("reason") or None}
    try:
        await visit.api.call("DELETE", twin, parameters=reason)
    except Refused as refused:
        if refused.status == 401:
            raise
        return await _page(visit, refused)
    return visit.go(_path(visit.path["name"]))


async def _changed(visit: Visit, method: str, twin: str, body: Json) -> Response:
    try:
        await visit.api.call(method, twin, body)
    except Refused as refused:
        if refused.status == 401:
            raise
        return await _page(visit, refused)
    return visit.go(_path(visit.path["name"]))


def _path(name: str) -> str:
    return f"/people/{segment(name)}"


def _twin(visit: Visit) -> str:
    return f"/v1/analysts/{segment(visit.path['name'])}"


ROUTES = [
    Route("/people", signed_in(show_list, "admin"), methods=["GET"]),
    Route("/people", signed_in(create, "admin"), methods=["POST"]),
    Route("/people/{name}", signed_in(show, "admin"), methods=["GET"]),
    Route("/people/{name}", signed_in(change, "admin"), methods=["POST"]),
    Route("/people/{name}/keys", signed_in(issue_key, "admin"), methods=["POST"]),
    Route("/people/{name}/keys/{key}/revoke", signed_in(revoke_key, "admin"), methods=["POST"]),
]
