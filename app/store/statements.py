"""The writer's statements, in the two dialects; everything else goes through SQLAlchemy.

Text is put together from constants here and nowhere else; values are always parameters. Statements
that read take one parameter: a JSON list, or one text. Statements that write take rows: SQLite
binds them one by one, PostgreSQL takes them all as one JSON list of lists.
"""

# ruff: noqa: S608  # constants only, see above

from dataclasses import dataclass, fields

CHARGE_COLUMNS = [
    *("id", "analyst_id", "request", "body_hash", "reuse_key", "dataset_id", "version_id"),
    *("state", "attempt", "lease_until", "epsilon", "delta", "question", "charged", "answer"),
    *("reused_from", "created_at", "settled_at"),
]
ENTRY_COLUMNS = ["book_id", "seq", "at", "kind", "text", "hash"]
BIG = {"lease_until", "epsilon", "delta", "created_at", "settled_at", "seq", "at", "version"}
BIG |= {"epsilon_spent", "delta_spent", "updated_at", "last_at"}
ACCOUNT = (
    "SELECT book_id, holder, shown, currency, epsilon_limit, delta_limit, epsilon_spent, "
    "delta_spent, version FROM accounts WHERE id"
)


@dataclass(frozen=True, slots=True)
class Statements:
    """SQL text of one dialect, by name."""

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

    def named(self) -> dict[str, str]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def statements(*, sqlite: bool) -> Statements:
    if sqlite:
        one, lock = "?", ""
        among = "IN (SELECT value FROM json_each(?))"
        asked = "json_each(?) AS asked"
        now = "0"  # the machine's own clock, which all its processes share
    else:
        one, lock = "$1", " FOR UPDATE"
        among = "= ANY (ARRAY(SELECT json_array_elements_text($1::json)))"
        asked = "json_array_elements_text($1::json) AS asked(value)"
        now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    newest = (
        "(SELECT {column} FROM charges WHERE reuse_key = asked.value AND state = 'answered' "
        "ORDER BY id DESC LIMIT 1)"
    )
    insert = _sqlite_insert if sqlite else _postgres_insert
    update = _sqlite_update if sqlite else _postgres_update
    return Statements(
        clock=f"SELECT catalogue, {now} FROM installation",
        charges_by_request="SELECT request, id, body_hash, state, attempt, lease_until, "
        f"version_id, charged, answer FROM charges WHERE request {among} ORDER BY id{lock}",
        charges_by_id=f"SELECT id, state, attempt FROM charges WHERE id {among} ORDER BY id{lock}",
        answers_to_reuse=f"SELECT asked.value, {newest.format(column='id')}, "
        f"{newest.format(column='answer')}, {newest.format(column='charged')} FROM {asked}",
        accounts=f"{ACCOUNT} {among} ORDER BY id{lock}",
        read_accounts=f"{ACCOUNT} {among}",
        principal="SELECT keys.id, keys.analyst_id, keys.prefix, keys.created_at, keys.expires_at, "
        "keys.revoked_at, analysts.name, analysts.role, analysts.enabled FROM keys "
        f"JOIN analysts ON analysts.id = keys.analyst_id WHERE keys.hash = {one}",
        dataset="SELECT datasets.id, datasets.name, datasets.description, datasets.book_id, "
        "datasets.card, datasets.source, datasets.version_id, datasets.closed, "
        "datasets.created_at, versions.number, versions.digest, versions.seed FROM datasets "
        f"JOIN versions ON versions.id = datasets.version_id WHERE datasets.folded = {one}",
        books=f"SELECT id, seq, head, last_at FROM books WHERE id {among} ORDER BY id{lock}",
        stored=f"SELECT id, state, answer FROM charges WHERE id {among}",
        insert_charge=insert("charges", CHARGE_COLUMNS),
        settle_charge=update(
            "charges", ["state", "answer", "settled_at"], "id", " AND state = 'charged'", "attempt"
        ),
        take_over=update("charges", ["attempt", "lease_until"], "id", " AND state = 'charged'"),
        update_account=update(
            "accounts", ["epsilon_spent", "delta_spent", "version", "updated_at"], "id"
        ),
        insert_entry=insert("entries", ENTRY_COLUMNS),
        update_book=update("books", ["seq", "head", "last_at"], "id"),
    )


def _sqlite_insert(table: str, columns: list[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def _sqlite_update(table: str, columns: list[str], key: str, more: str = "", also: str = "") -> str:
    changed = ", ".join(f"{column} = ?" for column in columns)
    fence = f" AND {also} = ?" if also else ""
    return f"UPDATE {table} SET {changed} WHERE {key} = ?{more}{fence}"


def _postgres_insert(table: str, columns: list[str]) -> str:
    values = ", ".join(_item(column, place) for place, column in enumerate(columns))
    listed = ", ".join(columns)
    rows = "json_array_elements($1::json) AS r"
    return f"INSERT INTO {table} ({listed}) SELECT {values} FROM {rows}"


def _postgres_update(
    table: str, columns: list[str], key: str, more: str = "", also: str = ""
) -> str:
    changed = ", ".join(f"{column} = {_item(column, i)}" for i, column in enumerate(columns))
    match = f"{table}.{key} = {_item(key, len(columns))}"
    fence = f" AND {table}.{also} = {_item(also, len(columns) + 1)}" if also else ""
    rows = "json_array_elements($1::json) AS r"
    return f"UPDATE {table} SET {changed} FROM {rows} WHERE {match}{more}{fence}"


def _item(column: str, place: int) -> str:
    kind = "::bigint" if column in BIG else "::integer" if column == "attempt" else ""
    return f"(r->>{place}){kind}"
