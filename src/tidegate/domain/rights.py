"""Rights: who may do what, decided from what was granted along the way to an object.

The way goes from the metastore down. What is granted on an object holds for everything below it, and its owner may do
everything with it and with what is below:

    metastore ─▶ catalog main ─▶ schema main.sales ─▶ table main.sales.orders
                 USE CATALOG     USE SCHEMA           SELECT                    ->  may read
                 USE CATALOG     SELECT               -                         ->  sees no schema: nothing is there
                 USE CATALOG     USE SCHEMA, SELECT   -                         ->  may read every table of the schema
                 USE CATALOG     USE SCHEMA           SELECT, wants to write    ->  refused, and told why

To come to an object, all above it must be passed: a catalog with USE CATALOG, a schema with USE SCHEMA. Who cannot come
to an object, or may do nothing with it, is answered as if it did not exist. Pure: what was granted is passed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tidegate.domain.frozen import frozen
from tidegate.domain.grants import Grant, Privilege, SecurableType
from tidegate.domain.names import SchemaName, TableName
from tidegate.domain.privileges import Operation, Question

METASTORE, CATALOG, SCHEMA, TABLE = SecurableType
_ORDER = (METASTORE, CATALOG, SCHEMA, TABLE)

SHOWN_BY: Mapping[SecurableType, frozenset[Privilege]] = {
    CATALOG: frozenset({Privilege.USE_CATALOG, Privilege.MANAGE}),
    SCHEMA: frozenset({Privilege.USE_SCHEMA, Privilege.MANAGE}),
    TABLE: frozenset(
        {
            Privilege.SELECT,
            Privilege.MODIFY,
            Privilege.MODIFY_METADATA,
            Privilege.MAINTAIN,
            Privilege.MANAGE,
        }
    ),
}
"""Without one of these, granted on it or above, an object is not there."""


@frozen
class Rule:
    """What an operation takes: one of these privileges on an object of this type, or above it. None: to see it."""

    of: SecurableType
    one_of: Sequence[Privilege] = ()
    passing: bool = True
    """Whether all above the object must be passed. A dropped table is in no schema any more."""


RULES: Mapping[Operation, Rule] = {
    Operation.BE_KNOWN: Rule(METASTORE),
    Operation.USE_METASTORE: Rule(METASTORE),
    # Whoever may create tables; and whose staging table it is, is looked up.
    Operation.FINISH_STAGING: Rule(METASTORE),
    Operation.WATCH_METASTORE: Rule(METASTORE, [Privilege.MAINTAIN, Privilege.MANAGE]),
    Operation.MANAGE_METASTORE: Rule(METASTORE, [Privilege.MANAGE]),
    Operation.CREATE_CATALOG: Rule(METASTORE, [Privilege.CREATE_CATALOG]),
    Operation.READ_LOCATION: Rule(METASTORE, [Privilege.READ_FILES, Privilege.WRITE_FILES]),
    Operation.WRITE_LOCATION: Rule(METASTORE, [Privilege.WRITE_FILES]),
    Operation.USE_CATALOG: Rule(CATALOG),
    Operation.MANAGE_CATALOG: Rule(CATALOG, [Privilege.MANAGE]),
    Operation.CREATE_SCHEMA: Rule(CATALOG, [Privilege.CREATE_SCHEMA]),
    Operation.USE_SCHEMA: Rule(SCHEMA),
    Operation.MANAGE_SCHEMA: Rule(SCHEMA, [Privilege.MANAGE]),
    Operation.CREATE_TABLE: Rule(SCHEMA, [Privilege.CREATE_TABLE]),
    Operation.CREATE_EXTERNAL_TABLE: Rule(SCHEMA, [Privilege.CREATE_EXTERNAL_TABLE]),
    Operation.RESTORE_INTO: Rule(SCHEMA, [Privilege.CREATE_TABLE, Privilege.MANAGE]),
    Operation.DESCRIBE_TABLE: Rule(TABLE),
    # Who commits has to read the log, and gets credentials that read as well.
    Operation.READ_TABLE: Rule(TABLE, [Privilege.SELECT, Privilege.MODIFY]),
    Operation.MODIFY_TABLE: Rule(TABLE, [Privilege.MODIFY]),
    Operation.REPORT_METRICS: Rule(TABLE, [Privilege.SELECT, Privilege.MODIFY]),
    Operation.MAINTAIN_TABLE: Rule(TABLE, [Privilege.MAINTAIN, Privilege.MANAGE]),
    Operation.MANAGE_TABLE: Rule(TABLE, [Privilege.MANAGE]),
    Operation.MANAGE_DROPPED_TABLE: Rule(TABLE, [Privilege.MANAGE], passing=False),
}


@frozen
class Level:
    """An object on the way, and what was granted on it to those that are asked about."""

    type: SecurableType
    id: str
    name: str
    owner: str | None
    """The metastore has none: it is the administrators'."""
    grants: Sequence[Grant] = ()

    def __str__(self) -> str:
        return "the metastore" if self.type is METASTORE else f"{self.type.value} {self.name}"


Path: TypeAlias = Sequence[Level]
"""From the metastore down, as far as the objects exist."""
Names: TypeAlias = frozenset[str]
"""A caller's own name, and those of the groups that it is in."""


@frozen
class Allowed:
    """Yes; and what else is good to know about the caller and the object."""

    id: str | None = None
    """Of the object. None: whatever it is."""
    names: Names | None = None
    """None: one who may do everything."""
    owned: bool = True
    held: frozenset[Privilege] = frozenset()
    """On the object, or above it."""

    @property
    def changes_metadata(self) -> bool:
        """Also of a table that is guarded."""
        return self.owned or Privilege.MODIFY_METADATA in self.held

    def only_for(self, type: SecurableType) -> Names | None:
        """Who must have been given something on an object of this type below this one, or own it, for the caller to
        see it; None if the caller sees all of them, as far as it comes to them.
        """
        return None if self.owned or self.held & SHOWN_BY[type] else self.names

    @property
    def sees_all(self) -> bool:
        return all(self.only_for(type) is None for type in SHOWN_BY)


@frozen
class Denied:
    """No: it is there, and this is missing."""

    why: str


@frozen
class Hidden:
    """No: for the caller, there is no such object. `type` is the uppermost that is missing."""

    type: SecurableType


Verdict: TypeAlias = Allowed | Denied | Hidden
EVERYTHING = Allowed()


def may(names: Names, question: Question, path: Path) -> Verdict:
    """Whether somebody with these names may do it, to the object at the end of this path if it goes that far."""
    rule = RULES[question.operation]
    owned, held = False, frozenset[Privilege]()
    for level in path:
        owned = owned or level.owner in names
        held |= {grant.privilege for grant in level.grants if grant.principal in names}
        if rule.passing and level.type is not METASTORE and not owned and not held & SHOWN_BY[level.type]:
            return Hidden(level.type)
    end = path[-1]
    if end.type is not rule.of:
        return Hidden(_ORDER[_ORDER.index(end.type) + 1])
    if not rule.one_of or owned or held.intersection(rule.one_of):
        return Allowed(end.id, names, owned, held)
    if not rule.passing:
        return Hidden(end.type)
    return Denied(f"It takes {' or '.join(rule.one_of)} on {end}, or on what it is in.")


def sees(names: Names, path: Path) -> bool:
    """Whether the object at the end of the path is there for somebody with these names."""
    return isinstance(may_see(names, path), Allowed)


def may_see(names: Names, path: Path) -> Verdict:
    return may(names, Question(_SEEING[path[-1].type], ""), path)


_SEEING = {
    METASTORE: Operation.USE_METASTORE,
    CATALOG: Operation.USE_CATALOG,
    SCHEMA: Operation.USE_SCHEMA,
    TABLE: Operation.DESCRIBE_TABLE,
}


def place_of(operation: Operation, on: str | SchemaName | TableName) -> str | SchemaName | TableName | None:
    """The object that a question is about, by name; None for the metastore."""
    return None if RULES[operation].of is METASTORE else on


# Telling why


@frozen
class Explained:
    allowed: bool
    why: str


def explain(names: Names, privilege: Privilege, path: Path, *, guarded: bool = False) -> Explained:
    """Whether a privilege can be exercised on the object at the end of the path, and because of what."""
    for level in path[1:]:
        # A table is shown by any privilege on it, also by the one that is asked about.
        wanted = SHOWN_BY[level.type] if level.type is not TABLE else frozenset[Privilege]()
        if wanted and _reason(names, wanted, path, down_to=level) is None:
            return Explained(False, f"It takes {' or '.join(sorted(wanted))} on {level}, or on what it is in.")
    reason = _reason(names, _counting_as(privilege, guarded=guarded), path, down_to=path[-1])
    if reason is not None:
        return Explained(True, reason)
    hint = " The table is guarded: MODIFY alone does not bring it." if guarded and _is_metadata(privilege) else ""
    return Explained(False, f"Nobody has granted {privilege} on {path[-1]}, or on what it is in.{hint}")


def _counting_as(privilege: Privilege, *, guarded: bool) -> frozenset[Privilege]:
    if privilege is Privilege.SELECT or (_is_metadata(privilege) and not guarded):
        return frozenset({privilege, Privilege.MODIFY})
    return frozenset({privilege})


def _is_metadata(privilege: Privilege) -> bool:
    return privilege is Privilege.MODIFY_METADATA


def _reason(names: Names, wanted: frozenset[Privilege], path: Path, *, down_to: Level) -> str | None:
    for level in path[: path.index(down_to) + 1]:
        if level.owner in names:
            return f"{level.owner} owns {level}."
        for grant in level.grants:
            if grant.principal in names and grant.privilege in wanted:
                return f"{grant.principal} has {grant.privilege} on {level}."
    return None
