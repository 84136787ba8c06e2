"""The ledger: people, datasets, accounts, charges, streams, and append-only, chained entries."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Each table stands before those that it refers to.
TABLES = (
    "versions",
    "keys",
    "fingerprints",
    "datasets",
    "accounts",
    "withdrawn_versions",
    "streams",
    "requests",
    "nodes",
    "installation",
    "entries",
    "charges",
    "cells",
    "books",
    "asks",
    "analysts",
)


def upgrade() -> None:
    op.create_table(
        "analysts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Integer(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("groups", sa.Text(), nullable=False),
        sa.CheckConstraint("role IN ('admin', 'analyst', 'viewer')", name=op.f("ck_analysts_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_analysts")),
        sa.UniqueConstraint("folded", name=op.f("uq_analysts_folded")),
        sqlite_strict=True,
    )
    op.create_table(
        "asks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("stream_id", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("version_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_until", BIG, nullable=False),
        sa.Column("fence", BIG, nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("settled_at", BIG, nullable=True),
        sa.Column("stamp", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(state = 'answered') = (answer IS NOT NULL)", name=op.f("ck_asks_answered")
        ),
        sa.CheckConstraint(
            "state IN ('charged', 'answered', 'forfeited')", name=op.f("ck_asks_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_asks")),
        sa.UniqueConstraint("request", name=op.f("uq_asks_request")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_asks_stream_id"), "asks", ["stream_id"], unique=False)
    op.create_table(
        "books",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("head", sa.Text(), nullable=False),
        sa.Column("last_at", BIG, nullable=False),
        sa.Column("celled", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_books")),
        sqlite_strict=True,
    )
    op.create_table(
        "cells",
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("cell", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epsilon_spent", BIG, nullable=False),
        sa.Column("delta_spent", BIG, nullable=False),
        sa.Column("curve_spent", sa.Text(), nullable=False),
        sa.CheckConstraint("epsilon_spent >= 0 AND delta_spent >= 0", name=op.f("ck_cells_spends")),
        sa.PrimaryKeyConstraint("account_id", "cell", name=op.f("pk_cells")),
        sqlite_strict=True,
    )
    op.create_table(
        "charges",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("analyst_id", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("reuse_key", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("version_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_until", BIG, nullable=False),
        sa.Column("epsilon", BIG, nullable=False),
        sa.Column("delta", BIG, nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("charged", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("reused_from", sa.Text(), nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("settled_at", BIG, nullable=True),
        sa.Column("progress_step", sa.Integer(), nullable=True),
        sa.Column("progress_steps", sa.Integer(), nullable=True),
        sa.Column("cancel_asked_at", BIG, nullable=True),
        sa.Column("stamp", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(state = 'answered') = (answer IS NOT NULL OR reused_from IS NOT NULL)",
            name=op.f("ck_charges_answered"),
        ),
        sa.CheckConstraint(
            "state IN ('charged', 'answered', 'forfeited', 'voided')", name=op.f("ck_charges_state")
        ),
        sa.CheckConstraint("epsilon >= 0 AND delta >= 0", name=op.f("ck_charges_loss")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_charges")),
        sa.UniqueConstraint("request", name=op.f("uq_charges_request")),
        postgresql_with={"fillfactor": 50},
        sqlite_strict=True,
    )
    op.create_index("ix_charges_history", "charges", ["analyst_id", "id"], unique=False)
    op.create_index("ix_charges_reuse", "charges", ["reuse_key", "id"], unique=False)
    op.create_table(
        "entries",
        sa.Column("book_id", sa.Text(), nullable=False),
        sa.Column("seq", BIG, autoincrement=False, nullable=False),
        sa.Column("at", BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("book_id", "seq", name=op.f("pk_entries")),
        sqlite_strict=True,
    )
    op.create_index("ix_entries_time", "entries", ["at", "book_id", "seq"], unique=False)
    op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("catalogue", BIG, nullable=False),
        sa.Column("standing", BIG, nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_installation_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_installation")),
        sqlite_strict=True,
    )
    op.create_table(
        "nodes",
        sa.Column("stream_id", sa.Text(), nullable=False),
        sa.Column("first_epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("noisy_count", BIG, nullable=False),
        sa.Column("ask_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("stream_id", "first_epoch", "last_epoch", name=op.f("pk_nodes")),
        sqlite_strict=True,
    )
    op.create_table(
        "requests",
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("request", name=op.f("pk_requests")),
        sqlite_strict=True,
    )
    op.create_table(
        "streams",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("analyst_id", sa.Text(), nullable=False),
        sa.Column("charge_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("crossings_left", sa.Integer(), nullable=True),
        sa.Column("asks_left", sa.Integer(), nullable=True),
        sa.Column("version", BIG, nullable=False),
        sa.Column("held_until", BIG, nullable=False),
        sa.Column("crossed_at", BIG, nullable=True),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("closed_at", BIG, nullable=True),
        sa.CheckConstraint("crossings_left >= 0 AND asks_left >= 0", name=op.f("ck_streams_left")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_streams")),
        sa.UniqueConstraint("charge_id", name=op.f("uq_streams_charge_id")),
        sqlite_strict=True,
    )
    op.create_index("ix_streams_owner", "streams", ["analyst_id", "id"], unique=False)
    op.create_table(
        "withdrawn_versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("withdrawn_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_withdrawn_versions")),
        sqlite_strict=True,
    )
    op.create_table(
        "accounts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("book_id", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("epsilon_spent", BIG, nullable=False),
        sa.Column("delta_spent", BIG, nullable=False),
        sa.Column("version", BIG, nullable=False),
        sa.Column("updated_at", BIG, nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("pairs", sa.Integer(), nullable=False),
        sa.Column("curve_spent", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "epsilon_spent >= 0 AND delta_spent >= 0", name=op.f("ck_accounts_spends")
        ),
        sa.ForeignKeyConstraint(["book_id"], ["books.id"], name=op.f("fk_accounts_book_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_accounts_book_id"), "accounts", ["book_id"], unique=False)
    op.create_index(op.f("ix_accounts_holder"), "accounts", ["holder"], unique=False)
    op.create_table(
        "datasets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("book_id", sa.Text(), nullable=False),
        sa.Column("card", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("version_id", sa.Text(), nullable=False),
        sa.Column("closed", sa.Integer(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.ForeignKeyConstraint(["book_id"], ["books.id"], name=op.f("fk_datasets_book_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("folded", name=op.f("uq_datasets_folded")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_datasets_book_id"), "datasets", ["book_id"], unique=False)
    op.create_table(
        "fingerprints",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("book_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["book_id"], ["books.id"], name=op.f("fk_fingerprints_book_id")),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_fingerprints")),
        sqlite_strict=True,
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("analyst_id", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("expires_at", BIG, nullable=True),
        sa.Column("revoked_at", BIG, nullable=True),
        sa.ForeignKeyConstraint(["analyst_id"], ["analysts.id"], name=op.f("fk_keys_analyst_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
        sa.UniqueConstraint("hash", name=op.f("uq_keys_hash")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_keys_analyst_id"), "keys", ["analyst_id"], unique=False)
    op.create_table(
        "versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("seed", sa.Text(), nullable=False),
        sa.Column("created_at", BIG, nullable=False),
        sa.Column("appended", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_versions_dataset_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_versions")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_versions_dataset_id"), "versions", ["dataset_id"], unique=False)
    if op.get_bind().dialect.name == "sqlite":
        for deed in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER entries_no_{deed.lower()} BEFORE {deed} ON entries "
                "BEGIN SELECT RAISE(ABORT, 'entries are append-only'); END"
            )
    else:
        op.execute(
            "CREATE FUNCTION entries_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'entries are append-only'; END $$"
        )
        op.execute(
            "CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries "
            "FOR EACH STATEMENT EXECUTE FUNCTION entries_append_only()"
        )


def downgrade() -> None:
    """Drop the whole ledger."""
    for table in TABLES:
        op.drop_table(table)
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION entries_append_only()")
