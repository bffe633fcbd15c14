"""Which rows lie at, above or below a location."""

from __future__ import annotations

import sqlalchemy as sa

from tidegate.domain.locations import with_ancestors


def overlapping(column: sa.Column[str], location: str) -> sa.ColumnElement[bool]:
    """By the column's index: places above are few and known, places below are one range in code-point order."""
    below = sa.and_(column > f"{location}/", column < f"{location}0")  # '0' follows '/'
    return sa.or_(column.in_(with_ancestors(location)), below)
