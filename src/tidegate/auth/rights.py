"""Who may do what: the rules of `domain/rights.py`, asked about what the database says, and remembered.

A yes is remembered, at most `known_max` of them: until this server changes anything about rights, names or owners, and
never longer than `seconds_max`, for changes by other servers. So a known caller costs a look into memory, and a no is
looked up anew each time: who is granted something may use it at once.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import NamedTuple

from tidegate.domain.access_epoch import AccessEpoch
from tidegate.domain.errors import NoSuchCatalog, NoSuchSchema, NoSuchTable, NotFound, PermissionDenied
from tidegate.domain.grants import SecurableType
from tidegate.domain.names import SchemaName, TableId, TableName
from tidegate.domain.ports import Database, UnitOfWork
from tidegate.domain.privileges import Operation, Principal, Question
from tidegate.domain.rights import EVERYTHING, RULES, Allowed, Denied, Hidden, Verdict, may, place_of


class Remembered(NamedTuple):
    allowed: Allowed
    epoch: int
    until: float


class GrantedRights:
    """The admins may do everything; everybody else what was granted to them, or to a group that they are in."""

    def __init__(
        self,
        admins: frozenset[Principal],
        database: Database,
        epoch: AccessEpoch,
        *,
        known_max: int,
        seconds_max: float,
    ) -> None:
        self._admins = admins
        self._database = database
        self._epoch = epoch
        self._known_max = known_max
        self._seconds_max = seconds_max
        self._known: OrderedDict[tuple[Principal, Question], Remembered] = OrderedDict()

    async def require(self, principal: Principal, question: Question) -> Allowed:
        if principal in self._admins:
            return EVERYTHING
        key = (principal, question)
        known = self._known.get(key)
        if known is not None and known.epoch == self._epoch.number and monotonic() < known.until:
            return known.allowed
        epoch, until = self._epoch.number, monotonic() + self._seconds_max
        verdict = await self._database.read(lambda uow: _look(uow, principal, question))
        self._known.pop(key, None)
        if not isinstance(verdict, Allowed):
            raise _refusal(principal, question, verdict)
        self._known[key] = Remembered(verdict, epoch, until)
        if len(self._known) > self._known_max:
            self._known.popitem(last=False)
        return verdict


def _look(uow: UnitOfWork, principal: Principal, question: Question) -> Verdict | None:
    """None: the catalog knows nobody of this name."""
    names = uow.rights.names(principal)
    if names is None and question.operation is Operation.BE_KNOWN:
        names = frozenset({principal.name})  # everybody may ask about oneself
    if names is None:
        return None
    on = place_of(question.operation, question.on)
    if question.operation is Operation.MANAGE_DROPPED_TABLE:
        id = TableId(str(on))
        found = uow.rights.paths([id], names).get(id)
        return Hidden(SecurableType.TABLE) if found is None else may(names, question, found)
    return may(names, question, uow.rights.path(on, names))


def _refusal(principal: Principal, question: Question, verdict: Denied | Hidden | None) -> PermissionDenied | NotFound:
    match verdict:
        case None:
            return PermissionDenied(f"This catalog knows nobody called {principal.name}. Ask an administrator.")
        case Denied(why):
            return PermissionDenied(f"{principal.name} may not {question}. {why}")
        case Hidden(type):
            # A table that is named by its id is in no catalog that could be named.
            by_id = isinstance(question.on, str) and RULES[question.operation].of is SecurableType.TABLE
            return NoSuchTable(question.on) if by_id else _missing(question.on, type)


def _missing(on: str | SchemaName | TableName, type: SecurableType) -> NotFound:
    """The very error that is raised where there is no such thing."""
    match on, type:
        case TableName(), _:
            missing = NoSuchTable(on)
            missing.above = None if type is SecurableType.TABLE else _missing(on.parent, type)
            return missing
        case SchemaName(), SecurableType.CATALOG:
            return NoSuchCatalog(on.catalog)
        case SchemaName(), _:
            return NoSuchSchema(on)
        case _:
            return NoSuchCatalog(on)
