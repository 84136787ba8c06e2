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
    "answer, created_at, settled_at FROM asks WHERE"
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


def statements(*, sqlite: bool) -> Statements:
    if sqlite:
        one, lock, by_bytes = "?", "", ""
        among = "IN (SELECT value FROM json_each(?))"
        requested = "json_each(?) AS asked"
        now = "0"  # read in Python: all processes share the machine's clock
        shown = "CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 1000"  # milliseconds, rounded up
    else:
        one, lock = "$1", " FOR UPDATE"
        by_bytes = ' COLLATE "C"'  # sorts as Python does: all take their locks in this order
        among = "= ANY (ARRAY(SELECT json_array_elements_text($1::json)))"
        requested = "json_array_elements_text($1::json) AS asked(value)"
        now = shown = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def newest(column: str) -> str:
        """A column of the newest answer that may be shown by now."""
        return (
            f"(SELECT {column} FROM charges WHERE reuse_key = asked.value AND state = 'answered' "
            f"AND reused_from IS NULL AND settled_at <= {shown} ORDER BY id DESC LIMIT 1)"
        )

    def mark(number: int) -> str:
        return "?" if sqlite else f"${number}"

    def insert(table: str, columns: list[str]) -> str:
        values = ", ".join(mark(i) for i in range(1, len(columns) + 1))
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"

    def update(table: str, columns: list[str], keys: list[str], more: str = "") -> str:
        changed = ", ".join(f"{column} = {mark(i)}" for i, column in enumerate(columns, 1))
        matched = " AND ".join(f"{k} = {mark(i)}" for i, k in enumerate(keys, len(columns) + 1))
        return f"UPDATE {table} SET {changed} WHERE {matched}{more}"

    return Statements(
        clock=f"SELECT catalogue, {now}, standing FROM installation",
        identity="SELECT secret FROM installation",
        charges_by_request="SELECT c.request, c.id, c.body_hash, c.state, c.attempt, "
        "c.lease_until, c.version_id, c.charged, coalesce(c.answer, original.answer), "
        "c.created_at, c.settled_at, c.analyst_id, c.cancel_asked_at "
        "FROM charges AS c LEFT JOIN charges AS original ON original.id = c.reused_from "
        f"WHERE c.request {among} ORDER BY c.id{by_bytes}{lock and ' FOR UPDATE OF c'}",
        charges_by_id="SELECT id, state, attempt, lease_until, created_at, settled_at, analyst_id, "
        "cancel_asked_at FROM charges "
        f"WHERE id {among} ORDER BY id{by_bytes}{lock}",
        answers_to_reuse=f"SELECT asked.value, {newest('id')}, "
        f"{newest('answer')}, {newest('charged')} FROM {requested}",
        accounts=f"{ACCOUNT} {among} ORDER BY id{by_bytes}{lock}",
        read_accounts=f"{ACCOUNT} {among}",
        cells="SELECT account_id, cell, epsilon_spent, delta_spent, curve_spent FROM cells "
        f"WHERE account_id {among}",
        principal="SELECT keys.id, keys.analyst_id, keys.prefix, keys.created_at, keys.expires_at, "
        "keys.revoked_at, analysts.name, analysts.role, analysts.enabled, analysts.groups "
        "FROM keys "
        f"JOIN analysts ON analysts.id = keys.analyst_id WHERE keys.hash = {one}",
        dataset="SELECT datasets.id, datasets.name, datasets.description, datasets.book_id, "
        "datasets.card, datasets.source, datasets.version_id, datasets.closed, "
        "datasets.created_at, versions.number, versions.digest, versions.seed, "
        "versions.appended, books.celled "
        "FROM datasets JOIN versions ON versions.id = datasets.version_id "
        f"JOIN books ON books.id = datasets.book_id WHERE datasets.folded = {one}",
        any_account=f"SELECT id FROM accounts WHERE holder = {one} LIMIT 1",
        books="SELECT id, seq, head, last_at FROM books "
        f"WHERE id {among} ORDER BY id{by_bytes}{lock}",
        stored=f"SELECT id, state, answer, settled_at FROM charges WHERE id {among}",
        insert_charge=insert("charges", CHARGE_COLUMNS),
        settle_charge=update(
            "charges",
            ["state", "answer", "settled_at", "stamp"],
            ["id", "attempt"],
            " AND state = 'charged'",
        ),
        take_over=update("charges", ["attempt", "lease_until"], ["id"], " AND state = 'charged'"),
        note_progress=update(
            "charges",
            ["progress_step", "progress_steps", "lease_until"],
            ["id", "attempt"],
            " AND state = 'charged'",
        ),
        mark_cancelled=update("charges", ["cancel_asked_at"], ["id"]),
        update_account=update(
            "accounts",
            ["epsilon_spent", "delta_spent", "curve_spent", "version", "updated_at"],
            ["id"],
        ),
        put_cell=insert("cells", CELL_COLUMNS) + " ON CONFLICT (account_id, cell) "
        "DO UPDATE SET epsilon_spent = excluded.epsilon_spent, "
        "delta_spent = excluded.delta_spent, curve_spent = excluded.curve_spent",
        insert_entry=insert("entries", ENTRY_COLUMNS),
        update_book=update("books", ["seq", "head", "last_at"], ["id"]),
        **_as_known(newest("1"), now, requested, sqlite=sqlite),
        streams="SELECT id, analyst_id, version, held_until, crossings_left, asks_left, "
        f"crossed_at, closed_at FROM streams WHERE id {among} ORDER BY id{by_bytes}{lock}",
        asks_by_request=f"{ASK} request {among} ORDER BY id{by_bytes}{lock}",
        asks_by_id=f"{ASK} id {among} ORDER BY id{by_bytes}{lock}",
        nodes="SELECT stream_id, first_epoch, last_epoch, noisy_count FROM nodes "
        f"WHERE stream_id {among}",
        stored_asks=f"SELECT id, state, answer, settled_at FROM asks WHERE id {among}",
        insert_stream=insert("streams", STREAM_COLUMNS),
        update_stream=update(
            "streams",
            [
                *("version", "held_until", "crossings_left", "asks_left"),
                *("crossed_at", "closed_at"),
            ],
            ["id"],
        ),
        insert_ask=insert("asks", ASK_COLUMNS),
        take_over_ask=update(
            "asks", ["attempt", "lease_until", "fence"], ["id"], " AND state = 'charged'"
        ),
        settle_ask=update(
            "asks",
            ["state", "answer", "settled_at", "stamp"],
            ["id", "attempt"],
            " AND state = 'charged'",
        ),
        forfeit_asks=update(
            "asks", ["state", "settled_at"], ["stream_id"], " AND state = 'charged'"
        ),
        insert_node=insert("nodes", NODE_COLUMNS),
    )


def _as_known(answered: str, now: str, requested: str, *, sqlite: bool) -> dict[str, str]:
    """Statements that write only if the cached snapshot is current.

    In SQLite they return no row if it is outdated. PostgreSQL has received the next statements
    already, so a division by zero undoes the batch; its log message contains no value of a row. A
    row locked by another transaction is checked when that transaction has ended. The estimated
    clock must not be later than the real one.
    """
    if sqlite:
        return {
            "keep_account": "UPDATE accounts SET epsilon_spent = ?, delta_spent = ?, "
            "curve_spent = ?, version = ?, updated_at = ? WHERE id = ? AND version = ? "
            "RETURNING id",
            "keep_book": "UPDATE books SET seq = ?, head = ?, last_at = ? WHERE id = ? "
            "AND head = ? AND (SELECT catalogue FROM installation) = ? AND ? > 0 RETURNING id",
            "nothing_to_reuse": "SELECT 1 WHERE NOT EXISTS "
            f"(SELECT 1 FROM {requested} WHERE {answered} IS NOT NULL)",
        }
    planned = "(SELECT catalogue FROM installation) = $6"
    in_time = f"{now} - $7 BETWEEN 0 AND {CLOCK_LATE_MAX}"
    kept = f"CASE WHEN head = $5 AND {planned} AND {in_time} THEN $2 ELSE (1 / (seq - seq))::text"
    return {
        "keep_account": "UPDATE accounts SET epsilon_spent = $1, delta_spent = $2, "
        "curve_spent = $3, updated_at = $5, version = "
        "CASE WHEN version = $7 THEN $4::bigint ELSE 1 / (version - version) END WHERE id = $6",
        "keep_book": f"UPDATE books SET seq = $1, head = {kept} END, last_at = $3 WHERE id = $4",
        "nothing_to_reuse": f"SELECT 1 / (CASE WHEN {answered} IS NULL THEN 1 ELSE 0 END) "
        f"FROM {requested}",
    }
