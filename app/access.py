"""Principals, roles, and what each role may do."""

from dataclasses import dataclass
from enum import StrEnum

from app.errors import NotPermitted
from app.names import folded

UNKNOWN_ANALYST = "There is no analyst of this name."
GROUP = "group:"  # prefix of a group's name where it is the holder of a budget


class Role(StrEnum):
    ADMIN = "admin"  # registers, grants, reads the ledger; never queries data
    ANALYST = "analyst"  # queries data, and sees only what is their own
    VIEWER = "viewer"  # reads budgets and ledger only, for dashboards


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or program that sent a valid key."""

    analyst_id: str
    name: str
    role: Role
    key_id: str
    holders: tuple[str, ...] = ()  # holders of their own budgets: themselves and their groups

    def must_be(self, *roles: Role) -> None:
        if self.role not in roles:
            allowed = " or ".join(roles)
            raise NotPermitted(f"This needs the role {allowed}; this key has {self.role}.")


@dataclass(frozen=True, slots=True)
class Analyst:
    """A registered person or program of any role; never deleted, so a name is never used again."""

    id: str
    name: str
    role: Role
    enabled: bool
    created_at: int
    groups: tuple[str, ...] = ()  # names as displayed


def holder_of(shown: str) -> str:
    """Holder of an account: an analyst's name, `group:` and a group's name, or * for everybody."""
    if shown.startswith(GROUP):
        return GROUP + folded(shown.removeprefix(GROUP))
    return folded(shown)


def holders_of(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    return folded(name), *(GROUP + folded(group) for group in groups)


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret. Only a hash of the secret is stored."""

    id: str
    prefix: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def valid_at(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
