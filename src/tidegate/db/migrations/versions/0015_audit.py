"""The audit log, whose rows nobody changes, and nobody removes but from the front when they are old enough."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_POSITION = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_SQLITE = (
    """
    CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'rows of the audit log are never changed'); END
    """,
    """
    CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
    WHEN OLD.id > (SELECT removable FROM audit_retention)
    BEGIN SELECT RAISE(ABORT, 'rows of the audit log are removed by their retention only'); END
    """,
)
_POSTGRESQL = (
    """
    CREATE FUNCTION tidegate_audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF OLD.id <= (SELECT removable FROM audit_retention) THEN
                RETURN OLD;
            END IF;
        END IF;
        RAISE EXCEPTION 'rows of the audit log are never changed, and removed by their retention only';
    END $$
    """,
    """
    CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION tidegate_audit_is_kept()
    """,
    """
    CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION tidegate_audit_is_kept()
    """,
)


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _POSITION, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("principal", sa.Text()),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text()),
        sa.Column("allowed", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("message", sa.Text()),
        sa.Column("request_id", sa.Text()),
        sa.Column("address", sa.Text()),
        sa.Column("version", sa.BigInteger()),
        sa.Column("txn_id", sa.Text()),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    kept = op.create_table(
        "audit_retention",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("removable", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("one = 1", name=op.f("ck_audit_retention_only_one")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_audit_retention")),
    )
    op.bulk_insert(kept, [{"one": 1, "removable": 0}])
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("audit")
    op.drop_table("audit_retention")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION tidegate_audit_is_kept()")
