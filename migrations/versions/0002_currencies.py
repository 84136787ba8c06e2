"""All currencies: frozen terms, curves beside epsilon and delta, cells, and groups of analysts."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    # Added in place. The defaults describe older rows, which know only basic composition.
    op.add_column("analysts", sa.Column("groups", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("books", sa.Column("celled", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("accounts", sa.Column("terms", sa.Text(), nullable=False, server_default=""))
    op.add_column("accounts", sa.Column("pairs", sa.Integer(), nullable=False, server_default="0"))
    op.add_column(
        "accounts", sa.Column("curve_spent", sa.Text(), nullable=False, server_default="[]")
    )
    accounts = sa.table(
        "accounts",
        *(sa.column(name) for name in ("id", "terms", "epsilon_limit", "delta_limit")),
    )
    connection = op.get_bind()
    for row in connection.execute(sa.select(accounts)).all():
        # The largest 64-bit integer now means no bound, so a limit stays below it.
        limits = [min(row.epsilon_limit, 2**63 - 2), row.delta_limit]
        terms = {"conversion": 0, "delta": limits[1], "epsilon": limits[0], "limits": limits}
        text = json.dumps({**terms, "order": None}, sort_keys=True, separators=(",", ":"))
        connection.execute(sa.update(accounts).where(accounts.c.id == row.id).values(terms=text))
    datasets = sa.table("datasets", sa.column("book_id"), sa.column("card"))
    for row in connection.execute(sa.select(datasets)).all():
        card = json.loads(row.card)
        if card["neighbours"] == "replace_one":
            _mark(connection, "accounts", "book_id", row.book_id, "pairs")
        if card.get("cells"):
            _mark(connection, "books", "id", row.book_id, "celled")
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


def _mark(connection: sa.Connection, table: str, key: str, value: str, flag: str) -> None:
    flagged = sa.table(table, sa.column(key), sa.column(flag))
    connection.execute(sa.update(flagged).where(flagged.c[key] == value).values({flag: 1}))


def downgrade() -> None:
    """Only for an empty ledger: spends in another currency would be lost."""
    op.drop_table("cells")
    for column in ("curve_spent", "pairs", "terms"):
        op.drop_column("accounts", column)
    op.drop_column("books", "celled")
    op.drop_column("analysts", "groups")
