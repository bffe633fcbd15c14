"""Rights. There is one user for now, who may do everything; the question is asked all the same."""

from __future__ import annotations

from tidegate.domain.errors import PermissionDenied
from tidegate.domain.privileges import Principal, Question


class AdminsOnly:
    def __init__(self, admins: frozenset[Principal]) -> None:
        self._admins = admins

    def require(self, principal: Principal, question: Question) -> None:
        if principal not in self._admins:
            raise PermissionDenied(f"{principal.name} may not {question}. Ask an administrator for the right.")
