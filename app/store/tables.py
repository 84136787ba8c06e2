"""Tables of the ledger. Rows never leave `store/`; amounts are 64-bit integer units."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

BIG = BigInteger().with_variant(Integer, "sqlite")

# One row. `catalogue` rises with every change of people, keys or datasets. A process may cache them
# and still never charges on an outdated state.
installation = Table(
    "installation",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("secret", Text, nullable=False),
    Column("catalogue", BIG, nullable=False),
    # Rises when charging stops (then odd) and when it resumes (then even): see `charging_state.py`.
    Column("standing", BIG, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
    sqlite_strict=True,
)

analysts = Table(
    "analysts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("enabled", Integer, nullable=False),
    Column("created_at", BIG, nullable=False),
    Column("groups", Text, nullable=False),  # JSON list of names as displayed
    CheckConstraint("role IN ('admin', 'analyst', 'viewer')", name="role"),
    sqlite_strict=True,
)

keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("analyst_id", Text, ForeignKey("analysts.id"), nullable=False, index=True),
    Column("prefix", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("created_at", BIG, nullable=False),
    Column("expires_at", BIG),
    Column("revoked_at", BIG),
    sqlite_strict=True,
)

# A book is one body of data under all its names: its chain of entries and its accounts.
books = Table(
    "books",
    metadata,
    Column("id", Text, primary_key=True),
    Column("seq", BIG, nullable=False),
    Column("head", Text, nullable=False),
    Column("last_at", BIG, nullable=False),
    Column("celled", Integer, nullable=False),  # 1 if one of its datasets declares cells
    sqlite_strict=True,
)

fingerprints = Table(
    "fingerprints",
    metadata,
    Column("fingerprint", Text, primary_key=True),
    Column("book_id", Text, ForeignKey("books.id"), nullable=False),
    sqlite_strict=True,
)

datasets = Table(
    "datasets",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False, unique=True),
    Column("description", Text, nullable=False),
    Column("book_id", Text, ForeignKey("books.id"), nullable=False, index=True),
    Column("card", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("version_id", Text, nullable=False),
    Column("closed", Integer, nullable=False),
    Column("created_at", BIG, nullable=False),
    sqlite_strict=True,
)

versions = Table(
    "versions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset_id", Text, ForeignKey("datasets.id"), nullable=False, index=True),
    Column("number", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("seed", Text, nullable=False),
    Column("created_at", BIG, nullable=False),
    Column("appended", Text, nullable=False),  # JSON list of the later epochs
    sqlite_strict=True,
)

# Versions of withdrawn datasets. Any server may still have prepared rows of them.
withdrawn_versions = Table(
    "withdrawn_versions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("withdrawn_at", BIG, nullable=False),
    sqlite_strict=True,
)

accounts = Table(
    "accounts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("book_id", Text, ForeignKey("books.id"), nullable=False, index=True),
    Column("holder", Text, nullable=False, index=True),
    Column("shown", Text, nullable=False),
    Column("currency", Text, nullable=False),
    Column("epsilon_spent", BIG, nullable=False),
    Column("delta_spent", BIG, nullable=False),
    Column("version", BIG, nullable=False),
    Column("updated_at", BIG, nullable=False),
    Column("terms", Text, nullable=False),  # JSON: the promise and the limits frozen from it
    Column("pairs", Integer, nullable=False),  # 1 if a person may move from one cell to another
    Column("curve_spent", Text, nullable=False),  # JSON list: further totals of the currency
    CheckConstraint("epsilon_spent >= 0 AND delta_spent >= 0", name="spends"),
    sqlite_strict=True,
)

# Loss spent on one declared cell, in addition to the account's loss on all cells.
cells = Table(
    "cells",
    metadata,
    Column("account_id", Text, primary_key=True),
    Column("cell", Integer, primary_key=True, autoincrement=False),
    Column("epsilon_spent", BIG, nullable=False),
    Column("delta_spent", BIG, nullable=False),
    Column("curve_spent", Text, nullable=False),
    CheckConstraint("epsilon_spent >= 0 AND delta_spent >= 0", name="spends"),
    sqlite_strict=True,
)

# Charges and entries have no foreign keys, because each check would cost a charge a query. The
# transaction that writes them has read their references and has locked their books.
charges = Table(
    "charges",
    metadata,
    Column("id", Text, primary_key=True),
    Column("analyst_id", Text, nullable=False),
    Column("request", Text, nullable=False, unique=True),
    Column("body_hash", Text, nullable=False),
    Column("reuse_key", Text, nullable=False),
    Column("dataset_id", Text, nullable=False),
    Column("version_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lease_until", BIG, nullable=False),
    Column("epsilon", BIG, nullable=False),
    Column("delta", BIG, nullable=False),
    Column("question", Text, nullable=False),
    Column("charged", Text, nullable=False),
    Column("answer", Text),
    Column("reused_from", Text),
    Column("created_at", BIG, nullable=False),
    Column("settled_at", BIG),
    Column("progress_step", Integer),  # of a run that reports its progress
    Column("progress_steps", Integer),
    Column("cancel_asked_at", BIG),  # time of the first cancellation request
    Column("stamp", Text),  # of a settled charge: its link in a chain of stamps (ledger/stamp.py)
    CheckConstraint(
        "state IN ('charged', 'answered', 'forfeited', 'voided')",
        name="state",
    ),
    CheckConstraint(
        "(state = 'answered') = (answer IS NOT NULL OR reused_from IS NOT NULL)", name="answered"
    ),
    CheckConstraint("epsilon >= 0 AND delta >= 0", name="loss"),
    Index("ix_charges_history", "analyst_id", "id"),
    # Covers all states, so that storing an answer changes no index.
    Index("ix_charges_reuse", "reuse_key", "id"),
    sqlite_strict=True,
    postgresql_with={"fillfactor": 50},  # leaves room for the answer on the same page
)

entries = Table(
    "entries",
    metadata,
    Column("book_id", Text, primary_key=True),
    Column("seq", BIG, primary_key=True, autoincrement=False),
    Column("at", BIG, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("ix_entries_time", "at", "book_id", "seq"),
    sqlite_strict=True,
)

# A charge opens a stream, which then takes many asks. `version` rises whenever the stream's
# remaining allowance changes; `held_until` is the lease of the ask that holds the stream.
streams = Table(
    "streams",
    metadata,
    Column("id", Text, primary_key=True),
    Column("analyst_id", Text, nullable=False),
    Column("charge_id", Text, nullable=False, unique=True),
    Column("dataset_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("parameters", Text, nullable=False),  # JSON: public parameters that were priced
    Column("secret", Text),  # encrypted with a key that is not in this database
    Column("crossings_left", Integer),
    Column("asks_left", Integer),
    Column("version", BIG, nullable=False),
    Column("held_until", BIG, nullable=False),
    Column("crossed_at", BIG),  # when the last crossing may be revealed
    Column("created_at", BIG, nullable=False),
    Column("closed_at", BIG),
    CheckConstraint("crossings_left >= 0 AND asks_left >= 0", name="left"),
    Index("ix_streams_owner", "analyst_id", "id"),
    sqlite_strict=True,
)

# Asks of a stream; `charged` means that this ask has used one of the stream's asks.
asks = Table(
    "asks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("stream_id", Text, nullable=False, index=True),
    Column("request", Text, nullable=False, unique=True),
    Column("body_hash", Text, nullable=False),
    Column("version_id", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lease_until", BIG, nullable=False),
    Column("fence", BIG, nullable=False),  # the stream version that this attempt may change
    Column("question", Text, nullable=False),
    Column("answer", Text),
    Column("created_at", BIG, nullable=False),
    Column("settled_at", BIG),
    Column("stamp", Text),
    CheckConstraint("state IN ('charged', 'answered', 'forfeited')", name="state"),
    CheckConstraint("(state = 'answered') = (answer IS NOT NULL)", name="answered"),
    sqlite_strict=True,
)

# Noisy counts of epoch ranges. The primary key forbids drawing one twice.
nodes = Table(
    "nodes",
    metadata,
    Column("stream_id", Text, primary_key=True),
    Column("first_epoch", Integer, primary_key=True, autoincrement=False),
    Column("last_epoch", Integer, primary_key=True, autoincrement=False),
    Column("noisy_count", BIG, nullable=False),
    Column("ask_id", Text),  # the ask that drew it; its stamp covers this row
    sqlite_strict=True,
)

# Replies to administrative requests, so that repeating one with the same key changes nothing.
requests = Table(
    "requests",
    metadata,
    Column("request", Text, primary_key=True),
    Column("body_hash", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Column("created_at", BIG, nullable=False),
    sqlite_strict=True,
)
