"""Who may do what with an object: the conversations about grants.

An object is named by its full name, whose parts say what it is: `main`, `main.sales`, `main.sales.orders`; and
`metastore`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.client.address import UNITY, segment
from tidegate.client.conversations import Conversation, decoded, request
from tidegate.client.wire import PermissionsList

_KINDS = ("catalog", "schema", "table")


def get_grants(on: str) -> Conversation[dict[str, list[str]]]:
    return _by_principal(decoded((yield from request("GET", _place(on))), PermissionsList))


def change_grants(
    on: str, principal: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Conversation[dict[str, list[str]]]:
    """May be sent again: what is granted stays granted. Privileges are spelled as for the commands: `use_catalog`."""
    change = {"principal": principal, "add": _spelled(add), "remove": _spelled(remove)}
    body = {"changes": [change]}
    answer = yield from request("PATCH", _place(on), body=body, repeatable=True)
    return _by_principal(decoded(answer, PermissionsList))


def _spelled(privileges: Sequence[str]) -> list[str]:
    return [privilege.upper().replace("_", " ") for privilege in privileges]


def _by_principal(found: PermissionsList) -> dict[str, list[str]]:
    return {one.principal: one.privileges for one in found.privilege_assignments}


def _place(on: str) -> str:
    kind = "metastore" if on == "metastore" else _KINDS[min(on.count("."), 2)]
    return f"{UNITY}/permissions/{kind}/{segment(on)}"
