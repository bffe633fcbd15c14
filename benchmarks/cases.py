"""The cases: what is driven, by how many clients, on how many tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CONCURRENCY = (1, 8, 32, 128)
USUAL_CLIENTS = 32
LISTED_TABLES = 10_000
LISTED_SCHEMA = "listed"


@dataclass(frozen=True, slots=True)
class Case:
    """`group` is how it is asked for on the command line."""

    group: str
    title: str
    workload: str
    clients: int = USUAL_CLIENTS
    tables: int = 64
    pending: int = 0
    schema: str = "default"

    @property
    def key(self) -> str:
        return f"{self.title}, {self.clients} client{'s' if self.clients > 1 else ''}"


def commit(clients: int = USUAL_CLIENTS) -> Case:
    return Case("commit", "commit", "commit", clients=clients, tables=max(64, clients))


def load(pending: int) -> Case:
    # One table is enough to find out what a thousand commits cost, and takes a thousand commits to make.
    tables = 64 if pending <= 10 else 1
    return Case("load", f"load, {pending} pending", "load", tables=tables, pending=pending)


def whole(how: str, clients: int = USUAL_CLIENTS) -> Case:
    """`how`: staged or inline."""
    return Case("inline", f"whole commit, {how}", f"whole-{how}", clients=clients, tables=max(64, clients))


COMMITS = tuple(commit(clients) for clients in CONCURRENCY)
LOADS = tuple(load(pending) for pending in (0, 10, 1000))
MIX = Case("mix", "5 loads per commit", "mix")
PUBLISH = Case("publish", "commit, the server publishes", "leave")
CONTEND = Case("contend", "contend for one table", "contend", tables=1)
APPEND = Case("inline", "open appends, one table", "append", tables=1)
APPEND_PUBLISHED = Case("inline", "open appends, one table, the server publishes", "append-published", tables=1)
CREATE = Case("create", "create and drop", "create", clients=8, tables=1)
_LISTED = f"pages of a list of {LISTED_TABLES:,} tables"
LIST = Case("list", _LISTED, "list", clients=4, tables=LISTED_TABLES, schema=LISTED_SCHEMA)

WHOLE = tuple(whole(how, clients) for clients in (1, USUAL_CLIENTS) for how in ("staged", "inline"))

SMALL = (*COMMITS, *LOADS, MIX, CONTEND, CREATE, LIST)
"""On a catalog that holds little else."""

BY_ADMIN = Case("guards", "commit, by the admin", "commit")
GRANTED = Case("guards", "commit, by granted rights", "commit-granted")
DECLARED = Case("guards", "commit, requests are trusted", "commit-declared")
GUARDS = (BY_ADMIN, GRANTED, DECLARED)
"""The first is what the others are compared with: its commits are read, and nobody is looked up."""

KEPT = (APPEND, *GUARDS)
"""Likewise, but nothing that every server of the API could do."""

PUBLISHED = (PUBLISH, *WHOLE, APPEND_PUBLISHED)
"""Where the server publishes: all that is kept by it, or what writers left."""

SERVERS = (commit(), load(10))
"""Through two servers of one database."""


def large(tables: int) -> tuple[Case, ...]:
    """On a catalog of many tables and commits: the same again, and loads of any of its tables."""
    any_table = Case("large", f"load, any of {tables:,} tables", "browse", tables=tables)
    return (*COMMITS, *LOADS, any_table)


def limit(clients: int = USUAL_CLIENTS) -> Case:
    return Case("limits", "nothing but an answer", "ask", clients=clients, tables=1)


LIMITS = tuple(limit(clients) for clients in CONCURRENCY)
LIMIT = limit()
GROUPS = (
    "commit",
    "publish",
    "inline",
    "guards",
    "load",
    "mix",
    "contend",
    "create",
    "list",
    "large",
    "servers",
    "start",
)


def chosen(cases: Iterable[Case], groups: Iterable[str]) -> list[Case]:
    wanted = set(groups)
    return [case for case in cases if case.group in wanted]
