"""Analysts and their keys."""

import json
import zlib
from dataclasses import replace
from typing import Any

from sqlalchemy import insert, select, update

from app.access import UNKNOWN_ANALYST, Analyst, Key, Principal, Role, holders_of
from app.errors import Conflict, NotFound
from app.ledger.chain import SYSTEM_BOOK, canonical
from app.mechanisms.sampling.system import secret_text
from app.names import folded, new_id
from app.store import tables
from app.store.administration import Administration, Change, key_hash, store_errors
from app.store.connect import Database
from app.store.row_hashes import ledger_key, token_hash
from app.store.writer.connection import now_microseconds

FIRST_ADMIN = "admin"


def new_token() -> tuple[str, str]:
    """A key (`bursar_<id>_<256 random bits>_<checksum>`) and its id, which is also its prefix."""
    key_id = new_id("k")
    body = f"bursar_{key_id.removeprefix('k_')}_{secret_text(32)}"
    return f"{body}_{zlib.crc32(body.encode()):08x}", key_id


class SqlAnalysts:
    def __init__(self, database: Database, administration: Administration) -> None:
        self._database = database
        self._administration = administration

    # Reading

    def find(self, name: str) -> Analyst:
        with store_errors(), self._database.reading() as connection:
            row = connection.execute(
                select(tables.analysts).where(tables.analysts.c.folded == folded(name))
            ).one_or_none()
        if row is None:
            raise NotFound(UNKNOWN_ANALYST)
        return _analyst(row)

    def group(self, name: str) -> str:
        """The name of a group as its members spell it; a group exists while it has a member."""
        name_folded = folded(name)
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(select(tables.analysts.c.groups)).all()
        for row in rows:
            for shown in json.loads(row.groups):
                if folded(shown) == name_folded:
                    return str(shown)
        raise NotFound("There is no analyst in a group of this name.")

    def all(self, *, after: str, limit: int) -> list[Analyst]:
        table = tables.analysts
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(
                select(table).where(table.c.id > after).order_by(table.c.id).limit(limit)
            ).all()
        return [_analyst(row) for row in rows]

    def keys(self, analyst_id: str) -> list[Key]:
        table = tables.keys
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(
                select(table).where(table.c.analyst_id == analyst_id).order_by(table.c.id)
            ).all()
        return [_key(row) for row in rows]

    def principal(self, token: str) -> Principal | None:
        """The principal that a key belongs to, or None if the key is not valid now."""
        keys, analysts = tables.keys, tables.analysts
        with store_errors(), self._database.reading() as connection:
            row = connection.execute(
                select(
                    keys, analysts.c.name, analysts.c.role, analysts.c.enabled, analysts.c.groups
                )
                .join(analysts, analysts.c.id == keys.c.analyst_id)
                .where(keys.c.hash == key_hash(token))
            ).one_or_none()
        if row is None or not row.enabled or not _key(row).valid_at(now_microseconds()):
            return None
        holders = holders_of(row.name, tuple(json.loads(row.groups)))
        return Principal(row.analyst_id, row.name, Role(row.role), row.id, holders)

    # Changing

    def create(
        self,
        actor: str,
        name: str,
        role: Role,
        reason: str | None,
        request: str | None,
        body: str,
        groups: tuple[str, ...] = (),
    ) -> Analyst:
        with self._administration.change() as change:
            if (earlier := change.remembered(request, body)) is not None:
                return self._by_id(change, earlier)
            analyst = self._insert(change, actor, name, role, reason, groups)
            change.remember(request, body, analyst.id)
            return analyst

    def _insert(
        self,
        change: Change,
        actor: str,
        name: str,
        role: Role,
        reason: str | None,
        groups: tuple[str, ...] = (),
    ) -> Analyst:
        table = tables.analysts
        taken = change.connection.execute(
            select(table.c.id).where(table.c.folded == folded(name))
        ).first()
        if taken is not None:
            raise Conflict("An analyst of this name is registered.")
        analyst = Analyst(new_id("a"), name, role, True, change.now, groups)
        change.connection.execute(
            insert(table).values(
                id=analyst.id,
                name=name,
                folded=folded(name),
                role=role.value,
                groups=canonical(list(groups)),
                enabled=1,
                created_at=change.now,
            )
        )
        change.append(
            SYSTEM_BOOK,
            kind="analyst_created",
            actor=actor,
            body={
                "analyst": name,
                "before": None,
                "after": {"role": role.value, "groups": list(groups)},
                "reason": reason,
            },
        )
        return analyst

    def alter(
        self,
        actor: str,
        name: str,
        *,
        role: Role | None,
        enabled: bool | None,
        groups: tuple[str, ...] | None,
        reason: str | None,
    ) -> Analyst:
        table = tables.analysts
        with self._administration.change() as change:
            row = change.connection.execute(
                select(table).where(table.c.folded == folded(name)).with_for_update()
            ).one_or_none()
            if row is None:
                raise NotFound(UNKNOWN_ANALYST)
            before = _analyst(row)
            after = replace(
                before,
                role=before.role if role is None else role,
                enabled=before.enabled if enabled is None else enabled,
                groups=before.groups if groups is None else groups,
            )
            was_admin = before.role is Role.ADMIN and before.enabled
            if was_admin and not (after.role is Role.ADMIN and after.enabled):
                self._must_not_be_last_admin(change, before.id)
            change.connection.execute(
                update(table)
                .where(table.c.id == before.id)
                .values(
                    role=after.role.value,
                    enabled=int(after.enabled),
                    groups=canonical(list(after.groups)),
                )
            )
            change.append(
                SYSTEM_BOOK,
                kind="analyst_changed",
                actor=actor,
                body={
                    "analyst": before.name,
                    "before": _state(before),
                    "after": _state(after),
                    "reason": reason,
                },
            )
            return after

    def _must_not_be_last_admin(self, change: Change, analyst_id: str) -> None:
        table = tables.analysts
        other = change.connection.execute(
            select(table.c.id).where(
                table.c.role == "admin", table.c.enabled == 1, table.c.id != analyst_id
            )
        ).first()
        if other is None:
            raise Conflict("This is the last administrator; name another one first.")

    def issue_key(
        self,
        actor: str,
        name: str,
        *,
        expires_at: int | None,
        reason: str | None,
        request: str | None,
        body: str,
        token: str | None = None,
    ) -> tuple[Key, str | None]:
        """A new key and its secret; the secret is None if the request is a repetition."""
        with self._administration.change() as change:
            if (earlier := change.remembered(request, body)) is not None:
                row = change.connection.execute(
                    select(tables.keys).where(tables.keys.c.id == earlier)
                ).one()
                return _key(row), None
            analyst_row = change.connection.execute(
                select(tables.analysts).where(tables.analysts.c.folded == folded(name))
            ).one_or_none()
            if analyst_row is None:
                raise NotFound(UNKNOWN_ANALYST)
            analyst = _analyst(analyst_row)
            key, secret = self._insert_key(change, actor, analyst, expires_at, reason, token)
            change.remember(request, body, key.id)
            return key, secret

    def _insert_key(
        self,
        change: Change,
        actor: str,
        analyst: Analyst,
        expires_at: int | None,
        reason: str | None,
        operator_token: str | None,
    ) -> tuple[Key, str]:
        token, key_id = (operator_token, new_id("k")) if operator_token is not None else new_token()
        prefix = "given by the operator" if operator_token is not None else token[:39]
        key = Key(key_id, prefix, change.now, expires_at, None)
        stored_hash = key_hash(token)
        change.connection.execute(
            insert(tables.keys).values(
                id=key.id,
                analyst_id=analyst.id,
                prefix=prefix,
                hash=stored_hash,
                created_at=change.now,
                expires_at=expires_at,
                revoked_at=None,
            )
        )
        change.append(
            SYSTEM_BOOK,
            kind="key_issued",
            actor=actor,
            body={
                "analyst": analyst.name,
                "before": None,
                "after": {
                    "key": key.id,
                    "expires_at": expires_at,
                    "token_hash": token_hash(ledger_key(change.connection), stored_hash),
                },
                "reason": reason,
            },
        )
        return key, token

    def revoke_key(self, actor: str, key_id: str, reason: str | None) -> None:
        """Revoke a key. It stays listed, and revoking it again changes nothing."""
        table = tables.keys
        with self._administration.change() as change:
            row = change.connection.execute(
                select(table, tables.analysts.c.name)
                .join(tables.analysts, tables.analysts.c.id == table.c.analyst_id)
                .where(table.c.id == key_id)
            ).one_or_none()
            if row is None:
                raise NotFound("There is no key of this id.")
            if row.revoked_at is not None:
                return
            change.connection.execute(
                update(table).where(table.c.id == key_id).values(revoked_at=change.now)
            )
            change.append(
                SYSTEM_BOOK,
                kind="key_revoked",
                actor=actor,
                body={
                    "analyst": row.name,
                    "before": {"key": key_id},
                    "after": None,
                    "reason": reason,
                },
            )

    def first_admin(self, operator_token: str | None) -> str | None:
        """Create the first administrator if there is none.

        Returns the administrator's key, or None if an administrator exists.
        """
        with self._administration.change(catalogue=True) as change:
            table = tables.analysts
            if change.connection.execute(select(table.c.id).where(table.c.role == "admin")).first():
                return None
            analyst = self._insert(change, "bursar", FIRST_ADMIN, Role.ADMIN, "first start")
            _, token = self._insert_key(
                change, "bursar", analyst, None, "first start", operator_token
            )
            return token

    def _by_id(self, change: Change, analyst_id: str) -> Analyst:
        row = change.connection.execute(
            select(tables.analysts).where(tables.analysts.c.id == analyst_id)
        ).one()
        return _analyst(row)


def _analyst(row: Any) -> Analyst:
    return Analyst(
        row.id,
        row.name,
        Role(row.role),
        bool(row.enabled),
        row.created_at,
        tuple(json.loads(row.groups)),
    )


def _state(analyst: Analyst) -> dict[str, Any]:
    return {
        "role": analyst.role.value,
        "enabled": analyst.enabled,
        "groups": list(analyst.groups),
    }


def _key(row: Any) -> Key:
    return Key(row.id, row.prefix, row.created_at, row.expires_at, row.revoked_at)
