"""Appends that leave their version open: the catalog makes them the next one, whatever others do meanwhile.

    made for metadata as of 3, sent                  200: version 9
    made for metadata as of 3, sent                  409: the metadata is as of 7 now
        what was committed since is looked at        in the way: MetadataChanged or ProtocolChanged tells what
    the same files, for metadata as of 7, sent       200: version 10

The catalog knows such an append by its transaction's id alone, which stays the same however often it is sent: so it
never happens twice. For the same reason nothing else is tried while an answer is missing.
"""

from __future__ import annotations

import time

from tidegate.client.conversations import Conversation
from tidegate.client.errors import CommitConflict, InvalidRequest, RequirementConflict, TidegateError
from tidegate.client.files import Files
from tidegate.client.inline import propose_inline
from tidegate.client.kept_commits import look
from tidegate.client.known_tables import KnownTable, TableHandle
from tidegate.client.logical_conflicts import Transaction
from tidegate.client.outcomes import CommitResponse
from tidegate.client.proposals import InlineProposal, draft, written
from tidegate.client.rebasing import Ground, left_open
from tidegate.client.transactions import ATTEMPTS_MAX, checked_as_kept, pause
from tidegate.client.writable import knows_row_ids, tracks_rows


def append_open(
    table: TableHandle,
    files: Files,
    ours: Transaction,
    ground: Ground,
    known: KnownTable,
    *,
    looks: bool = True,
    doubtful: bool = False,
) -> Conversation[CommitResponse | None]:
    """None if the append needs a version of its own, and surely has none yet. Its commitInfo has the transaction's id.

    `known`: the catalog's word of the metadata that `ours` was made for. `looks`: False raises RequirementConflict if
    that is another one now. `doubtful`: it was sent before, and nobody knows what came of it.
    """
    attempt = 0
    while True:
        attempt += 1
        proposal = _proposal(table.name, ours, ground, known)
        if not doubtful and not (_may_be_open(ours, ground) and table.inline.allow(proposal.content, proposal.txn_id)):
            return None
        try:
            return (yield from propose_inline(table, files, proposal, doubtful=doubtful))
        except InvalidRequest as refused:
            if refused.doubtful or not knows_row_ids(ground.protocol):
                raise
            return None  # Nobody there could tell how far the ids of rows go: the log does.
        except (CommitConflict, RequirementConflict) as lost:
            doubtful = doubtful or lost.doubtful
            if attempt == ATTEMPTS_MAX or (isinstance(lost, RequirementConflict) and not looks):
                raise
            if isinstance(lost, RequirementConflict):
                ground, known = yield from _looked_again(table, files, ours, ground, doubtful=doubtful)
        yield from pause(attempt)


def _proposal(table: str, ours: Transaction, ground: Ground, known: KnownTable) -> InlineProposal:
    """The catalog sets the timestamp, and the ids of rows where they have some."""
    actions = left_open(ours.actions, made_for=ours.snapshot, ground=ground)
    append = written(draft(actions), previous=None, now=time.time_ns() // 1_000_000)
    return InlineProposal(
        table=table,
        table_id=known.id,
        version=None,
        metadata_version=known.metadata_version,
        txn_id=append.txn_id,
        content=append.content,
        changes_metadata=False,
    )


def _may_be_open(ours: Transaction, ground: Ground) -> bool:
    """Whether the catalog would write what the client would: it gives ids to all rows of tables that know them."""
    adds = [action["add"] for action in ours.actions if "add" in action]
    suspended = knows_row_ids(ground.protocol) and not tracks_rows(ground.protocol, ground.metadata.configuration)
    has_ids = any(add.get("baseRowId") is not None for add in adds)
    return ours.only_adds and bool(adds) and not suspended and not has_ids


def _looked_again(
    table: TableHandle, files: Files, ours: Transaction, ground: Ground, *, doubtful: bool
) -> Conversation[tuple[Ground, KnownTable]]:
    try:
        kept = yield from look(table)
        return (yield from checked_as_kept(table.name, kept, files, ours, ground)), kept.known(table.name)
    except TidegateError as error:
        error.doubtful = doubtful
        raise
