"""The writer's statements, in the two dialects; everything else goes through SQLAlchemy.

Text is put together from constants here and nowhere else; values are always bound.
"""

# ruff: noqa: S608  # constants only, see above

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.ledger.chain import canonical

CHARGE_COLUMNS = (
    "id, analyst_id, request, body_hash, reuse_key, dataset_id, version_id, state, attempt, "
    "lease_until, epsilon, delta, question, charged, answer, reused_from, created_at, settled_at"
)


@dataclass(frozen=True, slots=True)
class Statements:
    """SQL text of one dialect."""

    sqlite: bool
    clock: str
    charges_by_request: str
    charges_by_id: str
    answers_to_reuse: str
    accounts: str
    read_accounts: str
    principal: str
    dataset: str
    books: str
    stored: str
    insert_charge: str
    settle_charge: str
    take_over: str
    update_account: str
    insert_entry: str
    update_book: str

    def many(self, values: Sequence[str]) -> tuple[Any, ...]:
        """A list as one parameter."""
        return (canonical(list(values)),) if self.sqlite else (list(values),)


def statements(*, sqlite: bool) -> Statements:
    mark = "?" if sqlite else "%s"
    among = "IN (SELECT value FROM json_each(?))" if sqlite else "= ANY(%s)"
    lock = "" if sqlite else " FOR UPDATE"
    asked = "json_each(?) AS asked" if sqlite else "unnest(%s::text[]) AS asked(value)"

    def marks(count: int) -> str:
        return ", ".join([mark] * count)

    newest = (
        "(SELECT {column} FROM charges WHERE reuse_key = asked.value AND state = 'answered' "
        "ORDER BY id DESC LIMIT 1)"
    )
    return Statements(
        sqlite=sqlite,
        clock="SELECT catalogue, "
        + ("0" if sqlite else "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        + " FROM installation",
        charges_by_request="SELECT request, id, body_hash, state, attempt, lease_until, "
        f"version_id, charged, answer FROM charges WHERE request {among} ORDER BY id{lock}",
        charges_by_id=f"SELECT id, state, attempt FROM charges WHERE id {among} ORDER BY id{lock}",
        answers_to_reuse=f"SELECT asked.value, {newest.format(column='id')}, "
        f"{newest.format(column='answer')}, {newest.format(column='charged')} FROM {asked}",
        accounts="SELECT book_id, holder, shown, currency, epsilon_limit, delta_limit, "
        "epsilon_spent, "
        f"delta_spent, version FROM accounts WHERE id {among} ORDER BY id{lock}",
        read_accounts="SELECT book_id, holder, shown, currency, epsilon_limit, delta_limit, "
        "epsilon_spent, "
        f"delta_spent, version FROM accounts WHERE id {among}",
        principal="SELECT keys.id, keys.analyst_id, keys.prefix, keys.created_at, keys.expires_at, "
        "keys.revoked_at, analysts.name, analysts.role, analysts.enabled FROM keys "
        f"JOIN analysts ON analysts.id = keys.analyst_id WHERE keys.hash = {mark}",
        dataset="SELECT datasets.id, datasets.name, datasets.description, datasets.book_id, "
        "datasets.card, datasets.source, datasets.version_id, datasets.closed, "
        "datasets.created_at, versions.number, versions.digest, versions.seed FROM datasets "
        f"JOIN versions ON versions.id = datasets.version_id WHERE datasets.folded = {mark}",
        books=f"SELECT id, seq, head, last_at FROM books WHERE id {among} ORDER BY id{lock}",
        stored=f"SELECT id, state, answer FROM charges WHERE id {among}",
        insert_charge=f"INSERT INTO charges ({CHARGE_COLUMNS}) VALUES ({marks(18)})",
        settle_charge=f"UPDATE charges SET state = {mark}, answer = {mark}, settled_at = {mark} "
        f"WHERE id = {mark} AND state = 'charged' AND attempt = {mark}",
        take_over=f"UPDATE charges SET attempt = {mark}, lease_until = {mark} "
        f"WHERE id = {mark} AND state = 'charged'",
        update_account=f"UPDATE accounts SET epsilon_spent = {mark}, delta_spent = {mark}, "
        f"version = {mark}, updated_at = {mark} WHERE id = {mark}",
        insert_entry=f"INSERT INTO entries (book_id, seq, at, kind, text, hash) "
        f"VALUES ({marks(6)})",
        update_book=f"UPDATE books SET seq = {mark}, head = {mark}, last_at = {mark} "
        f"WHERE id = {mark}",
    )
