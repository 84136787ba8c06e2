"""Who is asking, and what each role may do."""

from dataclasses import dataclass
from enum import StrEnum

from app.errors import NotPermitted
from app.names import folded

UNKNOWN_ANALYST = "There is no analyst of this name."
GROUP = "group:"  # before the name of a group, where a holder of a budget is meant


class Role(StrEnum):
    ADMIN = "admin"  # registers, grants, reads the ledger; never asks
    ANALYST = "analyst"  # asks, and sees what is their own
    VIEWER = "viewer"  # only looks: budgets and ledger, for dashboards


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or program that showed a valid key."""

    analyst_id: str
    name: str
    role: Role
    key_id: str
    holders: tuple[str, ...] = ()  # whose budgets are their own: theirs, and their groups'

    def must_be(self, *roles: Role) -> None:
        if self.role not in roles:
            allowed = " or ".join(roles)
            raise NotPermitted(f"This needs the role {allowed}; this key has {self.role}.")


@dataclass(frozen=True, slots=True)
class Analyst:
    """A registered person or program, of any role; never deleted, so a name never comes back."""

    id: str
    name: str
    role: Role
    enabled: bool
    created_at: int
    groups: tuple[str, ...] = ()  # names, as they are shown


def holder_of(shown: str) -> str:
    """Whose account: the name of an analyst, of a group after `group:`, or * for everybody."""
    if shown.startswith(GROUP):
        return GROUP + folded(shown.removeprefix(GROUP))
    return folded(shown)


def holders_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    return folded(name), *(GROUP + folded(group) for group in groups)


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as it may be shown again: never the secret, of which only a hash is kept."""

    id: str
    prefix: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def valid_at(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
