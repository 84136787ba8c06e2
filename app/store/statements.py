"""The writer's statements, in the two dialects; everything else goes through SQLAlchemy.

Text is put together from constants here and nowhere else; values are always parameters. Statements
that read take one parameter: a JSON list, or one text. Statements that write are run once for each
row, but for PostgreSQL's inserts and settlements, which take all rows as one JSON list of lists.
"""

# ruff: noqa: S608  # constants only, see above

from dataclasses import dataclass, fields

CHARGE_COLUMNS = [
    *("id", "analyst_id", "request", "body_hash", "reuse_key", "dataset_id", "version_id"),
    *("state", "attempt", "lease_until", "epsilon", "delta", "question", "charged", "answer"),
    *("reused_from", "created_at", "settled_at"),
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
NODE_COLUMNS = ["stream_id", "first_epoch", "last_epoch", "noisy_count"]
CELL_COLUMNS = ["account_id", "cell", "epsilon_spent", "delta_spent", "curve_spent"]
ENTRY_COLUMNS = ["book_id", "seq", "at", "kind", "text", "hash"]
BIG = {"lease_until", "epsilon", "delta", "created_at", "settled_at", "seq", "at", "version"}
BIG |= {"epsilon_spent", "delta_spent", "updated_at", "last_at"}
BIG |= {"held_until", "crossed_at", "closed_at", "fence", "noisy_count", "cancel_asked_at"}
SMALL = {"attempt", "cell", "progress_step", "progress_steps"}
SMALL |= {"crossings_left", "asks_left", "first_epoch", "last_epoch"}
ASK = (
    "SELECT request, id, stream_id, body_hash, state, attempt, lease_until, fence, version_id, "
    "answer, created_at, settled_at FROM asks WHERE"
)
ACCOUNT = (
    "SELECT book_id, holder, shown, currency, terms, pairs, epsilon_spent, delta_spent, "
    "curve_spent, version FROM accounts WHERE id"
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
    cells: str
    principal: str
    dataset: str
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
        one, lock = "?", ""
        among = "IN (SELECT value FROM json_each(?))"
        asked = "json_each(?) AS asked"
        now = "0"  # the machine's own clock, which all its processes share
        shown = "CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 1000"  # it counts milliseconds
    else:
        one, lock = "$1", " FOR UPDATE"
        among = "= ANY (ARRAY(SELECT json_array_elements_text($1::json)))"
        asked = "json_array_elements_text($1::json) AS asked(value)"
        now = shown = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def newest(column: str) -> str:
        """Of the last answer that may be told by now."""
        return (
            f"(SELECT {column} FROM charges WHERE reuse_key = asked.value AND state = 'answered' "
            f"AND reused_from IS NULL AND settled_at <= {shown} ORDER BY id DESC LIMIT 1)"
        )

    insert = _sqlite_insert if sqlite else _postgres_insert
    update = _sqlite_update if sqlite else _postgres_update
    return Statements(
        clock=f"SELECT catalogue, {now} FROM installation",
        charges_by_request="SELECT c.request, c.id, c.body_hash, c.state, c.attempt, "
        "c.lease_until, c.version_id, c.charged, coalesce(c.answer, original.answer), "
        "c.created_at, c.settled_at, c.analyst_id, c.cancel_asked_at "
        "FROM charges AS c LEFT JOIN charges AS original ON original.id = c.reused_from "
        f"WHERE c.request {among} ORDER BY c.id{lock and ' FOR UPDATE OF c'}",
        charges_by_id="SELECT id, state, attempt, lease_until, created_at, settled_at, analyst_id, "
        "cancel_asked_at FROM charges "
        f"WHERE id {among} ORDER BY id{lock}",
        answers_to_reuse=f"SELECT asked.value, {newest('id')}, "
        f"{newest('answer')}, {newest('charged')} FROM {asked}",
        accounts=f"{ACCOUNT} {among} ORDER BY id{lock}",
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
        books=f"SELECT id, seq, head, last_at FROM books WHERE id {among} ORDER BY id{lock}",
        stored=f"SELECT id, state, answer, settled_at FROM charges WHERE id {among}",
        insert_charge=insert("charges", CHARGE_COLUMNS),
        settle_charge=update(
            "charges",
            ["state", "answer", "settled_at"],
            ["id", "attempt"],
            " AND state = 'charged'",
        )
        if sqlite
        else POSTGRES_SETTLE,
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
        streams="SELECT id, analyst_id, version, held_until, crossings_left, asks_left, "
        f"crossed_at, closed_at FROM streams WHERE id {among} ORDER BY id{lock}",
        asks_by_request=f"{ASK} request {among} ORDER BY id{lock}",
        asks_by_id=f"{ASK} id {among} ORDER BY id{lock}",
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
            ["state", "answer", "settled_at"],
            ["id", "attempt"],
            " AND state = 'charged'",
        ),
        forfeit_asks=update(
            "asks", ["state", "settled_at"], ["stream_id"], " AND state = 'charged'"
        ),
        insert_node=insert("nodes", NODE_COLUMNS),
    )


def _sqlite_insert(table: str, columns: list[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def _postgres_insert(table: str, columns: list[str]) -> str:
    values = ", ".join(f"(r->>{i}){_kind(column)}" for i, column in enumerate(columns))
    rows = "jsonb_array_elements($1::jsonb) AS r"
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {rows}"


def _sqlite_update(table: str, columns: list[str], keys: list[str], more: str = "") -> str:
    changed = ", ".join(f"{column} = ?" for column in columns)
    return f"UPDATE {table} SET {changed} WHERE {' AND '.join(f'{k} = ?' for k in keys)}{more}"


def _postgres_update(table: str, columns: list[str], keys: list[str], more: str = "") -> str:
    marks = {name: f"${i}{_kind(name)}" for i, name in enumerate([*columns, *keys], 1)}
    changed = ", ".join(f"{column} = {marks[column]}" for column in columns)
    found = " AND ".join(f"{key} = {marks[key]}" for key in keys)
    return f"UPDATE {table} SET {changed} WHERE {found}{more}"


# All rows at once: each is looked up by its key, whatever the planner believes of the table (OFFSET
# 0 keeps the look-up apart), and updated where it was found; the transaction locked it before.
POSTGRES_SETTLE = (
    "UPDATE charges SET state = found.state, answer = found.answer, settled_at = found.settled_at "
    "FROM (SELECT r->>0 AS state, r->>1 AS answer, (r->>2)::bigint AS settled_at, own.place "
    "FROM jsonb_array_elements($1::jsonb) AS r CROSS JOIN LATERAL (SELECT ctid AS place "
    "FROM charges WHERE id = r->>3 AND attempt = (r->>4)::integer AND state = 'charged' OFFSET 0) "
    "AS own) AS found WHERE charges.ctid = found.place"
)


def _kind(column: str) -> str:
    return "::bigint" if column in BIG else "::integer" if column in SMALL else ""
