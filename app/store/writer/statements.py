"""The writer's SQL in two dialects; all other SQL goes through SQLAlchemy.

The text is built only from constants in this module; values are always parameters. Statements that
read take one parameter: a JSON list, or one text. Statements that write run once for each row.
"""

# ruff: noqa: S608  # constants only, see above

from dataclasses import dataclass, fields

from app.ledger.chain import Entry

CHARGE_COLUMNS = [
    *("id", "analyst_id", "request", "body_hash", "reuse_key", "dataset_id", "version_id"),
    *("state", "attempt", "lease_until", "epsilon", "delta", "question", "charged", "answer"),
    *("reused_from", "created_at", "settled_at", "stamp"),
]
STREAM_COLUMNS = [
    *("id", "analyst_id", "charge_id", "dataset_id", "kind", "parameters", "secret"),
    *("crossings_left", "asks_left", "version", "held_until", "crossed_at", "created_at"),
    "closed_at",
]
ASK_COLUMNS = [
    *("id", "stream_id", "request", "body_hash", "version_id", "state", "attempt", "lease_until"),
    *("fence", "question", "answer", "created_at", "settled_at"),
]
NODE_COLUMNS = ["stream_id", "first_epoch", "last_epoch", "noisy_count", "ask_id"]
CELL_COLUMNS = ["account_id", "cell", "epsilon_spent", "delta_spent", "curve_spent"]
ENTRY_COLUMNS = list(Entry._fields)
CLOCK_LATE_MAX = 1_000_000  # microseconds by which the estimated clock may be late
ASK = (
    "SELECT request, id, stream_id, body_hash, state, attempt, lease_until, fence, version_id, "
    "answer, created_at, settled_at, question FROM asks WHERE"
)
ACCOUNT = (
    "SELECT book_id, holder, shown, currency, terms, pairs, epsilon_spent, delta_spent, "
    "curve_spent, version FROM accounts WHERE id"
)


def is_stopped(standing: int) -> bool:
    """True if charging is stopped; `standing` counts how often it was stopped or resumed."""
    return standing % 2 == 1


@dataclass(frozen=True, slots=True)
class Statements:
    """SQL text of one dialect, by name."""

    clock: str
    identity: str
    charges_by_request: str
    charges_by_id: str
    answers_to_reuse: str
    accounts: str
    read_accounts: str
    cells: str
    principal: str
    dataset: str
    any_account: str
    books: str
    stored: str
    insert_charge: str
    settle_charge: str
    take_over: str
    note_progress: str
    mark_cancelled: str
    update_account: str
    put_cell: str
    insert_entry: str
    update_book: str
    keep_account: str
    keep_book: str
    nothing_to_reuse: str
    streams: str
    asks_by_request: str
    asks_by_id: str
    nodes: str
    stored_asks: str
    insert_stream: str
    update_stream: str
    insert_ask: str
    take_over_ask: str
    settle_ask: str
    forfeit_asks: str
    insert_node: str

    def named(self) -> dict[str, str]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The parts of a statement that differ between the two databases."""

    sqlite: bool
    one: str  # the only parameter
    lock: str
    by_bytes: str  # sorts as Python does: all take their locks in this order
    among: str  # in the list that is the parameter
    requested: str  # that list as a table
    now: str
    shown: str  # answers settled by this time may be shown

    def newest(self, column: str) -> str:
        """A column of the newest answer that may be shown by now."""
        return (
            f"(SELECT {column} FROM charges WHERE reuse_key = asked.value AND state = 'answered' "
            f"AND reused_from IS NULL AND settled_at <= {self.shown} ORDER BY id DESC LIMIT 1)"
        )

    def locked(self, key: str = "id") -> str:
        """The rows with one of these keys, locked in order of their id."""
        return f"{key} {self.among} ORDER BY id{self.by_bytes}{self.lock}"

    def mark(self, number: int) -> str:
        return "?" if self.sqlite else f"${number}"

    def insert(self, table: str, columns: list[str]) -> str:
        values = ", ".join(self.mark(i) for i in range(1, len(columns) + 1))
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"

    def update(self, table: str, columns: list[str], keys: list[str], more: str = "") -> str:
        changed = ", ".join(f"{name} = {self.mark(i)}" for i, name in enumerate(columns, 1))
        numbered = enumerate(keys, len(columns) + 1)
        matched = " AND ".join(f"{key} = {self.mark(i)}" for i, key in numbered)
        return f"UPDATE {table} SET {changed} WHERE {matched}{more}"


_SQLITE = _Dialect(
    sqlite=True,
    one="?",
    lock="",
    by_bytes="",
    among="IN (SELECT value FROM json_each(?))",
    requested="json_each(?) AS asked",
    now="0",  # read in Python: all processes share the machine's clock
    shown="CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 1000",  # milliseconds, rounded up
)
_POSTGRESQL = _Dialect(
    sqlite=False,
    one="$1",
    lock=" FOR UPDATE",
    by_bytes=' COLLATE "C"',
    among="= ANY (ARRAY(SELECT json_array_elements_text($1::json)))",
    requested="json_array_elements_text($1::json) AS asked(value)",
    now="(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    shown="(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
)


def statements(*, sqlite: bool) -> Statements:
    dialect = _SQLITE if sqlite else _POSTGRESQL
    return Statements(
        **_reads(dialect),
        **_charge_reads(dialect),
        **_charge_writes(dialect),
        **_as_known(dialect),
        **_stream_statements(dialect),
    )


def _reads(sql: _Dialect) -> dict[str, str]:
    """Reads before a request is decided: clock, people, datasets and accounts."""
    return {
        "clock": f"SELECT catalogue, {sql.now}, standing FROM installation",
        "identity": "SELECT secret FROM installation",
        "accounts": f"{ACCOUNT}{sql.locked('')}",
        "read_accounts": f"{ACCOUNT} {sql.among}",
        "cells": "SELECT account_id, cell, epsilon_spent, delta_spent, curve_spent FROM cells "
        f"WHERE account_id {sql.among}",
        "principal": "SELECT keys.id, keys.analyst_id, keys.prefix, keys.created_at, "
        "keys.expires_at, keys.revoked_at, analysts.name, analysts.role, analysts.enabled, "
        "analysts.groups FROM keys "
        f"JOIN analysts ON analysts.id = keys.analyst_id WHERE keys.hash = {sql.one}",
        "dataset": "SELECT datasets.id, datasets.name, datasets.description, datasets.book_id, "
        "datasets.card, datasets.source, datasets.version_id, datasets.closed, "
        "datasets.created_at, versions.number, versions.digest, versions.seed, "
        "versions.appended, books.celled "
        "FROM datasets JOIN versions ON versions.id = datasets.version_id "
        f"JOIN books ON books.id = datasets.book_id WHERE datasets.folded = {sql.one}",
        "any_account": f"SELECT id FROM accounts WHERE holder = {sql.one} LIMIT 1",
        "books": f"SELECT id, seq, head, last_at FROM books WHERE {sql.locked()}",
    }


def _charge_reads(sql: _Dialect) -> dict[str, str]:
    return {
        "charges_by_request": "SELECT c.request, c.id, c.body_hash, c.state, c.attempt, "
        "c.lease_until, c.version_id, c.charged, coalesce(c.answer, original.answer), "
        "c.created_at, c.settled_at, c.analyst_id, c.cancel_asked_at "
        "FROM charges AS c LEFT JOIN charges AS original ON original.id = c.reused_from "
        f"WHERE c.request {sql.among} ORDER BY c.id{sql.by_bytes}{sql.lock and ' FOR UPDATE OF c'}",
        "charges_by_id": "SELECT id, state, attempt, lease_until, created_at, settled_at, "
        f"analyst_id, cancel_asked_at FROM charges WHERE {sql.locked()}",
        "answers_to_reuse": f"SELECT asked.value, {sql.newest('id')}, "
        f"{sql.newest('answer')}, {sql.newest('charged')} FROM {sql.requested}",
        "stored": f"SELECT id, state, answer, settled_at FROM charges WHERE id {sql.among}",
    }


def _charge_writes(sql: _Dialect) -> dict[str, str]:
    attempt, open_charge = ["id", "attempt"], " AND state = 'charged'"
    settled = ["state", "answer", "settled_at", "stamp"]
    progress = ["progress_step", "progress_steps", "lease_until"]
    spent = ["epsilon_spent", "delta_spent", "curve_spent", "version", "updated_at"]
    return {
        "insert_charge": sql.insert("charges", CHARGE_COLUMNS),
        "settle_charge": sql.update("charges", settled, attempt, open_charge),
        "take_over": sql.update("charges", ["attempt", "lease_until"], ["id"], open_charge),
        "note_progress": sql.update("charges", progress, attempt, open_charge),
        "mark_cancelled": sql.update("charges", ["cancel_asked_at"], ["id"]),
        "update_account": sql.update("accounts", spent, ["id"]),
        "put_cell": sql.insert("cells", CELL_COLUMNS) + " ON CONFLICT (account_id, cell) "
        "DO UPDATE SET epsilon_spent = excluded.epsilon_spent, "
        "delta_spent = excluded.delta_spent, curve_spent = excluded.curve_spent",
        "insert_entry": sql.insert("entries", ENTRY_COLUMNS),
        "update_book": sql.update("books", ["seq", "head", "last_at"], ["id"]),
    }


def _stream_statements(sql: _Dialect) -> dict[str, str]:
    open_ask = " AND state = 'charged'"
    left = ["crossings_left", "asks_left"]
    changed = ["version", "held_until", *left, "crossed_at", "closed_at"]
    settled = ["state", "answer", "settled_at", "stamp"]
    return {
        "streams": "SELECT id, analyst_id, version, held_until, crossings_left, asks_left, "
        f"crossed_at, closed_at FROM streams WHERE {sql.locked()}",
        "asks_by_request": f"{ASK} {sql.locked('request')}",
        "asks_by_id": f"{ASK} {sql.locked()}",
        "nodes": "SELECT stream_id, first_epoch, last_epoch, noisy_count FROM nodes "
        f"WHERE stream_id {sql.among}",
        "stored_asks": f"SELECT id, state, answer, settled_at FROM asks WHERE id {sql.among}",
        "insert_stream": sql.insert("streams", STREAM_COLUMNS),
        "update_stream": sql.update("streams", changed, ["id"]),
        "insert_ask": sql.insert("asks", ASK_COLUMNS),
        "take_over_ask": sql.update("asks", ["attempt", "lease_until", "fence"], ["id"], open_ask),
        "settle_ask": sql.update("asks", settled, ["id", "attempt"], open_ask),
        "forfeit_asks": sql.update("asks", ["state", "settled_at"], ["stream_id"], open_ask),
        "insert_node": sql.insert("nodes", NODE_COLUMNS),
    }


def _as_known(sql: _Dialect) -> dict[str, str]:
    """Statements that write only if the cached snapshot is current.

    In SQLite they return no row if it is outdated. PostgreSQL has received the next statements
    already, so a division by zero undoes the batch; its log message contains no value of a row. A
    row locked by another transaction is checked when that transaction has ended. The estimated
    clock must not be later than the real one.
    """
    answered = sql.newest("1")
    if sql.sqlite:
        return {
            "keep_account": "UPDATE accounts SET epsilon_spent = ?, delta_spent = ?, "
            "curve_spent = ?, version = ?, updated_at = ? WHERE id = ? AND version = ? "
            "RETURNING id",
            "keep_book": "UPDATE books SET seq = ?, head = ?, last_at = ? WHERE id = ? "
            "AND head = ? AND (SELECT catalogue FROM installation) = ? AND ? > 0 RETURNING id",
            "nothing_to_reuse": "SELECT 1 WHERE NOT EXISTS "
            f"(SELECT 1 FROM {sql.requested} WHERE {answered} IS NOT NULL)",
        }
    planned = "(SELECT catalogue FROM installation) = $6"
    in_time = f"{sql.now} - $7 BETWEEN 0 AND {CLOCK_LATE_MAX}"
    kept = f"CASE WHEN head = $5 AND {planned} AND {in_time} THEN $2 ELSE (1 / (seq - seq))::text"
    return {
        "keep_account": "UPDATE accounts SET epsilon_spent = $1, delta_spent = $2, "
        "curve_spent = $3, updated_at = $5, version = "
        "CASE WHEN version = $7 THEN $4::bigint ELSE 1 / (version - version) END WHERE id = $6",
        "keep_book": f"UPDATE books SET seq = $1, head = {kept} END, last_at = $3 WHERE id = $4",
        "nothing_to_reuse": f"SELECT 1 / (CASE WHEN {answered} IS NULL THEN 1 ELSE 0 END) "
        f"FROM {sql.requested}",
    }
