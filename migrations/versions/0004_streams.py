"""Streams and their asks, and versions of a dataset with appended epochs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("versions", sa.Column("appended", sa.Text(), nullable=False, server_default="[]"))
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
        sa.CheckConstraint(
            "state IN ('charged', 'answered', 'forfeited')", name=op.f("ck_asks_state")
        ),
        sa.CheckConstraint(
            "(state = 'answered') = (answer IS NOT NULL)", name=op.f("ck_asks_answered")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_asks")),
        sa.UniqueConstraint("request", name=op.f("uq_asks_request")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_asks_stream_id"), "asks", ["stream_id"], unique=False)
    op.create_table(
        "nodes",
        sa.Column("stream_id", sa.Text(), nullable=False),
        sa.Column("first_epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("last_epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("noisy_count", BIG, nullable=False),
        sa.PrimaryKeyConstraint("stream_id", "first_epoch", "last_epoch", name=op.f("pk_nodes")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    """Only for a ledger without streams: they would be lost, while their cost would stay."""
    op.drop_table("nodes")
    op.drop_table("asks")
    op.drop_table("streams")
    op.drop_column("versions", "appended")
