"""Stamps of settled charges and asks, and whether the ledger may be charged."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    standing = sa.Column("standing", big, nullable=False, server_default="0")
    op.add_column("installation", standing)
    # Rows settled before have no stamp; verification reports them as not covered.
    op.add_column("charges", sa.Column("stamp", sa.Text(), nullable=True))
    op.add_column("asks", sa.Column("stamp", sa.Text(), nullable=True))
    op.add_column("nodes", sa.Column("ask_id", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("nodes", "ask_id")
    op.drop_column("asks", "stamp")
    op.drop_column("charges", "stamp")
    op.drop_column("installation", "standing")
