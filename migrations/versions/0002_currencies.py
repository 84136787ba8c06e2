"""Every currency: frozen terms, curves beside epsilon and delta, cells, and groups of analysts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    # Added in place, with what an older row means: one that has known only basic composition.
    op.add_column("analysts", sa.Column("groups", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("books", sa.Column("celled", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("accounts", sa.Column("terms", sa.Text(), nullable=False, server_default=""))
    op.add_column("accounts", sa.Column("pairs", sa.Integer(), nullable=False, server_default="0"))
    op.add_column(
        "accounts", sa.Column("curve_spent", sa.Text(), nullable=False, server_default="[]")
    )
    op.execute(
        """UPDATE accounts SET terms = '{"conversion":0,"delta":' || delta_limit ||
        ',"epsilon":' || epsilon_limit || ',"limits":[' || epsilon_limit || ',' || delta_limit ||
        '],"offsets":[],"order":null}'"""
    )
    op.execute(
        """UPDATE accounts SET pairs = 1 WHERE book_id IN
        (SELECT book_id FROM datasets WHERE card LIKE '%"neighbours":"replace_one"%')"""
    )
    # From now on cells count: books of datasets that have declared some.
    op.execute(
        """UPDATE books SET celled = 1 WHERE id IN
        (SELECT book_id FROM datasets WHERE card LIKE '%"cells":{%')"""
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


def downgrade() -> None:
    raise NotImplementedError("a ledger never forgets what was spent")
