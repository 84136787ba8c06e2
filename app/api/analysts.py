"""People and their keys, for administrators; and who sent this request, for everybody."""

import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field

from app.access import GROUP, Analyst, Key, Role
from app.api.http.json_body import Parsed, body
from app.api.http.openapi import documented, problems
from app.api.http.principal import Admin, Anyone, ServicesDep
from app.api.http.wire import (
    CursorIn,
    Limit,
    Reason,
    WireRequest,
    cursor_place,
    cursor_text,
    iso,
    json_response,
)
from app.errors import Invalid
from app.names import check_name, folded

router = APIRouter(tags=["people"])

KEY_DAYS_MAX = 3660
RoleIn = Annotated[Role, Field(strict=False)]
Groups = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=20)]


class AnalystRequest(WireRequest):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    role: RoleIn = Role.ANALYST
    groups: Groups | None = None
    reason: Reason = None


class AnalystChange(WireRequest):
    role: RoleIn | None = None
    enabled: bool | None = None
    groups: Groups | None = None
    reason: Reason = None


class KeyRequest(WireRequest):
    """Expiry of a new key; without one the key works until it is revoked."""

    expires_at: Annotated[str, Field(max_length=40)] | None = None
    expires_in_days: Annotated[int, Field(ge=1, le=KEY_DAYS_MAX)] | None = None
    reason: Reason = None


class KeyResponse(BaseModel):
    id: str
    prefix: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class KeyIssuedResponse(KeyResponse):
    """`key` is shown only once; it is null if this request is a repetition."""

    key: str | None


class AnalystResponse(BaseModel):
    name: str
    role: Role
    groups: list[str]
    enabled: bool
    created_at: str
    keys: list[KeyResponse]


class AnalystsResponse(BaseModel):
    items: list[AnalystResponse]
    next_cursor: str | None


class MeResponse(BaseModel):
    """The owner of a key. `holders` have your own budgets: you, and your groups."""

    name: str
    role: Role
    groups: list[str]
    holders: list[str]
    key: KeyResponse


@router.get("/v1/me", **documented("who_am_i", "The owner of this key", MeResponse))
def who_am_i(deps: ServicesDep, principal: Anyone) -> Response:
    analyst = deps.people.find(principal.name)
    key = next(key for key in deps.people.keys(analyst.id) if key.id == principal.key_id)
    groups = list(analyst.groups)
    holders = [analyst.name, *(GROUP + group for group in groups)]
    shown = {"name": analyst.name, "role": analyst.role.value, "groups": groups}
    return json_response({**shown, "holders": holders, "key": _key(key)})


@router.post(
    "/v1/analysts",
    **documented(
        "create_analyst",
        "Register a person or program",
        AnalystResponse,
        status=201,
        request=AnalystRequest,
        example={"name": "analyst-1", "role": "analyst"},
        extra_problems=problems(409),
        idempotent=True,
    ),
)
def create(
    deps: ServicesDep,
    principal: Admin,
    parsed: Annotated[Parsed[AnalystRequest], Depends(body(AnalystRequest))],
) -> Response:
    """Names are compared after NFKC normalisation and case folding; a name is never used again."""
    new_analyst = parsed.value
    name = check_name(new_analyst.name, "/name", forbidden="/*:")
    analyst = deps.people.create(
        principal.name,
        name,
        new_analyst.role,
        new_analyst.reason,
        parsed.request_key and f"{principal.analyst_id}/{parsed.request_key}",
        parsed.hash,
        group_names(new_analyst.groups) or (),
    )
    return json_response(_shown(analyst, deps.people.keys(analyst.id)), status=201)


@router.get("/v1/analysts", **documented("list_analysts", "People", AnalystsResponse))
def list_analysts(
    deps: ServicesDep, principal: Admin, limit: Limit = 50, cursor: CursorIn = None
) -> Response:
    (after,) = cursor_place(cursor, str) or ("",)
    found = deps.people.all(after=after, limit=limit)
    following = cursor_text(found[-1].id) if len(found) == limit else None
    items = [_shown(analyst, deps.people.keys(analyst.id)) for analyst in found]
    return json_response({"items": items, "next_cursor": following})


@router.get(
    "/v1/analysts/{name}",
    **documented("get_analyst", "One person", AnalystResponse, extra_problems=problems(404)),
)
def get_analyst(deps: ServicesDep, principal: Admin, name: str) -> Response:
    analyst = deps.people.find(name)
    return json_response(_shown(analyst, deps.people.keys(analyst.id)))


@router.patch(
    "/v1/analysts/{name}",
    **documented(
        "change_analyst",
        "Change role or groups, enable or disable",
        AnalystResponse,
        request=AnalystChange,
        example={"enabled": False, "reason": "left the project"},
        extra_problems=problems(404, 409),
    ),
)
def change(
    deps: ServicesDep,
    principal: Admin,
    name: str,
    parsed: Annotated[Parsed[AnalystChange], Depends(body(AnalystChange))],
) -> Response:
    changes = parsed.value
    analyst = deps.people.alter(
        principal.name,
        name,
        role=changes.role,
        enabled=changes.enabled,
        groups=group_names(changes.groups),
        reason=changes.reason,
    )
    return json_response(_shown(analyst, deps.people.keys(analyst.id)))


@router.post(
    "/v1/analysts/{name}/keys",
    **documented(
        "issue_key",
        "Issue a key, shown once",
        KeyIssuedResponse,
        status=201,
        request=KeyRequest | None,
        example={"expires_in_days": 90},
        body_needed=False,
        idempotent=True,
        extra_problems=problems(404),
    ),
)
def issue_key(
    deps: ServicesDep,
    principal: Admin,
    name: str,
    parsed: Annotated[Parsed[KeyRequest | None], Depends(body(KeyRequest | None, empty=True))],
) -> Response:
    """Issue a key of 256 random bits; only its hash is stored. The body may be left out."""
    key_request = parsed.value or KeyRequest()
    key, secret = deps.people.issue_key(
        principal.name,
        name,
        expires_at=_expiry(key_request),
        reason=key_request.reason,
        request=parsed.request_key and f"{principal.analyst_id}/{parsed.request_key}",
        body=parsed.hash,
    )
    return json_response({**_key(key), "key": secret}, status=201)


@router.delete(
    "/v1/keys/{id}",
    **documented("revoke_key", "Revoke a key", None, status=204, extra_problems=problems(404)),
)
def revoke_key(
    deps: ServicesDep,
    principal: Admin,
    id: str,  # noqa: A002  # in the path
    reason: Annotated[str | None, Query(max_length=1000, pattern=r"^[^\x00]*$")] = None,
) -> Response:
    """Every process refuses the next request with this key. Revoking again changes nothing."""
    deps.people.revoke_key(principal.name, id, reason)
    return Response(status_code=204)


def _expiry(key_request: KeyRequest) -> int | None:
    now = datetime.datetime.now(datetime.UTC)
    if key_request.expires_at is not None and key_request.expires_in_days is not None:
        raise Invalid.field("/expires_at", "give expires_at or expires_in_days, not both")
    if key_request.expires_in_days is not None:
        moment = now + datetime.timedelta(days=key_request.expires_in_days)
    elif key_request.expires_at is not None:
        try:
            moment = datetime.datetime.fromisoformat(key_request.expires_at)
            if moment.tzinfo is None:
                raise ValueError
            moment = moment.astimezone(datetime.UTC)
        except (ValueError, OverflowError):
            raise Invalid.field(
                "/expires_at", "a time with its zone, such as 2027-01-31T12:00:00Z"
            ) from None
        if not now < moment <= now + datetime.timedelta(days=KEY_DAYS_MAX):
            raise Invalid.field("/expires_at", f"a time within the next {KEY_DAYS_MAX} days")
    else:
        return None
    return int(moment.timestamp() * 1_000_000)


def group_names(names: list[str] | None) -> tuple[str, ...] | None:
    """Names of groups, each once; a group exists while an analyst is in it."""
    if names is None:
        return None
    groups: dict[str, str] = {}
    for index, name in enumerate(names):
        shown = check_name(name, f"/groups/{index}", forbidden="/*:")
        groups.setdefault(folded(shown), shown)
    return tuple(groups.values())


def _key(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "prefix": key.prefix,
        "created_at": iso(key.created_at),
        "expires_at": iso(key.expires_at),
        "revoked_at": iso(key.revoked_at),
    }


def _shown(analyst: Analyst, keys: list[Key]) -> dict[str, Any]:
    return {
        "name": analyst.name,
        "role": analyst.role.value,
        "groups": list(analyst.groups),
        "enabled": analyst.enabled,
        "created_at": iso(analyst.created_at),
        "keys": [_key(key) for key in keys],
    }
