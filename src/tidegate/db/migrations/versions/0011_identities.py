"""Users, service accounts, groups, and the tokens by which they are known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "identities",
        sa.Column("name", _PLAIN, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_identities")),
    )
    op.create_table(
        "group_members",
        sa.Column("group_name", _PLAIN, nullable=False),
        sa.Column("member", _PLAIN, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_name"], ["identities.name"], name=op.f("fk_group_members_group_name"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["member"], ["identities.name"], name=op.f("fk_group_members_member"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("group_name", "member", name=op.f("pk_group_members")),
    )
    op.create_index(op.f("ix_group_members_member"), "group_members", ["member"])
    op.create_table(
        "access_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("principal", _PLAIN, nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["principal"], ["identities.name"], name=op.f("fk_access_tokens_principal"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_access_tokens_digest")),
    )
    op.create_index(op.f("ix_access_tokens_principal"), "access_tokens", ["principal"])


def downgrade() -> None:
    op.drop_table("access_tokens")
    op.drop_table("group_members")
    op.drop_table("identities")
