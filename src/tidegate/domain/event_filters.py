"""Which events somebody wants: those of a table, of a schema, of some kinds, or of commits by one operation.

A table is named by its id, which stays when it is renamed, or by its full name, which is the one that it had at the
moment of the event; `catalog.schema.*` means all tables of a schema.
"""

from __future__ import annotations

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.events import Event, EventKind
from tidegate.domain.frozen import frozen
from tidegate.domain.names import (
    SchemaName,
    TableId,
    TableName,
    check_name,
    parse_schema_name,
    parse_table_id,
    parse_table_name,
)

TableScope = TableId | TableName | SchemaName

OPERATION_LENGTH_MAX = 200
_EVERY = ".*"


@frozen
class EventFilter:
    scope: TableScope | None = None
    """None: all tables."""
    kinds: frozenset[EventKind] = frozenset()
    """Empty: all kinds."""
    operation: str | None = None
    """Of commits, as their writers call it; None: any."""

    def may_match(self, event: Event) -> bool:
        """All that can be said without looking into a commit's file."""
        if self.kinds and event.kind not in self.kinds:
            return False
        if self.operation is not None and event.kind is not EventKind.COMMITTED:
            return False
        return self.scope is None or _within(event, self.scope)

    def matches(self, event: Event, *, operation: str | None) -> bool:
        """A commit whose operation is not known matches: better one too many than one that is missed."""
        if not self.may_match(event):
            return False
        return self.operation is None or operation is None or operation.upper() == self.operation.upper()


EVERYTHING = EventFilter()


def parse_filter(
    *, table: str | None = None, kinds: list[str] | None = None, operation: str | None = None
) -> EventFilter:
    """Raises InvalidRequest for what would never match anything."""
    if operation is not None and not 0 < len(operation) <= OPERATION_LENGTH_MAX:
        raise InvalidRequest(f"An operation has 1 to {OPERATION_LENGTH_MAX} characters, such as WRITE or MERGE.")
    wanted = frozenset(parse_kind(kind) for kind in kinds or [])
    if operation is not None and wanted and EventKind.COMMITTED not in wanted:
        raise InvalidRequest(f"Only {EventKind.COMMITTED} has an operation. Add that kind, or leave the operation out.")
    return EventFilter(None if table is None else parse_scope(table), wanted, operation)


def parse_kind(text: str) -> EventKind:
    try:
        return EventKind(text)
    except ValueError:
        raise InvalidRequest(
            f"{text[:100]!r} is not a kind of event. The kinds are {', '.join(kind.value for kind in EventKind)}."
        ) from None


def parse_scope(text: str) -> TableScope:
    if text.endswith(_EVERY):
        schema = parse_schema_name(text.removesuffix(_EVERY))
        return SchemaName(check_name("catalog", schema.catalog), check_name("schema", schema.schema))
    if "." not in text:
        return parse_table_id("table", text)
    name = parse_table_name(text)
    return TableName(
        check_name("catalog", name.catalog), check_name("schema", name.schema), check_name("table", name.table)
    )


def scope_text(scope: TableScope) -> str:
    """What `parse_scope` reads."""
    return f"{scope}{_EVERY}" if isinstance(scope, SchemaName) else str(scope)


def _within(event: Event, scope: TableScope) -> bool:
    match scope:
        case SchemaName():
            return event.table.startswith(f"{scope}.")
        case TableName():
            return event.table == str(scope)
        case _:
            return event.table_id == scope
