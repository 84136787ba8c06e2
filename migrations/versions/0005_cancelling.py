"""Time at which a query was cancelled: a mark that the running attempt sees."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("charges", sa.Column("cancel_asked_at", big, nullable=True))


def downgrade() -> None:
    op.drop_column("charges", "cancel_asked_at")
