"""Progress of a long run: its present step and the number of steps."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS = ("progress_step", "progress_steps")


def upgrade() -> None:
    for column in COLUMNS:
        op.add_column("charges", sa.Column(column, sa.Integer(), nullable=True))


def downgrade() -> None:
    for column in reversed(COLUMNS):
        op.drop_column("charges", column)
