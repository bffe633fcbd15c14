"""What shows an object to a caller that sees not all of its kind: that somebody of its names owns it, or was given
something on it. A condition of a query, so that pages are as long as they shall be.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from tidegate.db.schema import grants
from tidegate.domain.grants import Privilege
from tidegate.domain.rights import Names


def is_shown(table: sa.Table, names: Names, by: Collection[Privilege]) -> sa.ColumnElement[bool]:
    """Of a table with the columns `id` and `owner`."""
    wanted = sorted(names)
    given = sa.exists().where(
        grants.c.securable_id == table.c.id,
        grants.c.principal.in_(wanted),
        grants.c.privilege.in_(sorted(privilege.value for privilege in by)),
    )
    return sa.or_(table.c.owner.in_(wanted), given)
