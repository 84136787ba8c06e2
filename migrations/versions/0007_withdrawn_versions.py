"""Versions of withdrawn datasets, so that every server deletes its prepared files of them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "withdrawn_versions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("withdrawn_at", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_withdrawn_versions")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("withdrawn_versions")
