"""Commits that go inline: with their content in the request, so that there is no file to write before.

    with a version       as a staged commit: another commit may have it
    without one          an append, which becomes the next version whatever others do meanwhile: see open_appends.py

What the commit changes of the metadata the server reads from the content. It knows the commit by its version and its
transaction's id, an open append by that id alone: after a lost answer the same request is sent again.
"""

from __future__ import annotations

from tidegate.client.conversations import Answer, Conversation, decoded, exchange
from tidegate.client.errors import CommitOutcomeUnknown, NotATidegate, OutcomeUnknown, TidegateError, Unreachable
from tidegate.client.files import Files
from tidegate.client.kept_commits import commits_path, look_closely
from tidegate.client.known_tables import TableHandle, known_after_inline
from tidegate.client.outcomes import CommitResponse, Verdict, conflict, lost, verdict
from tidegate.client.proposals import InlineProposal
from tidegate.client.publishing import publish_known
from tidegate.client.refusals import refusal, says_metadata_changed, says_no_such_call, says_too_large
from tidegate.client.wire import InlineCommitted


def propose_inline(
    table: TableHandle, files: Files, proposal: InlineProposal, *, doubtful: bool = False
) -> Conversation[CommitResponse | None]:
    """None: the server wants it staged, and has not taken it. Raises RequirementConflict if the metadata is not the
    one that an open append was made for. `doubtful`: it was sent before, and nobody knows what came of it.
    """
    published = yield from publish_known(files, table.known)
    try:
        body = proposal.body(published=published)
        answer = yield from exchange("POST", commits_path(table.name), body=body, repeatable=True)
    except (OutcomeUnknown, Unreachable) as no_answer:
        table.known = None
        if doubtful or isinstance(no_answer, OutcomeUnknown):
            raise CommitOutcomeUnknown(proposal, no_answer.why) from None
        raise
    doubtful = doubtful or answer.doubtful
    if _wanted_staged(table, proposal, answer, doubtful=doubtful):
        return None
    if proposal.version is None and says_metadata_changed(answer.status, answer.body):
        raise _refused(answer, doubtful=doubtful)
    match verdict(answer, doubtful=doubtful):
        case Verdict.RATIFIED:
            return (yield from _ratified(table, proposal, answer, published))
        case Verdict.LOST:
            # An open append meets this when the server could not settle the ids of its rows: it may be sent again.
            taken = yield from lost(table, proposal.version, answer)
            taken.doubtful = doubtful and proposal.version is None
            raise taken
        case Verdict.REFUSED:
            raise _refused(answer, doubtful=doubtful)
        case Verdict.UNKNOWN:
            raise CommitOutcomeUnknown(proposal, str(refusal(answer.status, answer.body, url=answer.url)))


def _wanted_staged(table: TableHandle, proposal: InlineProposal, answer: Answer, *, doubtful: bool) -> bool:
    if says_too_large(answer.status, answer.body):
        table.inline.learn_too_large(proposal.content)
        # A staged file with the name that the server gives an inline commit is the same commit, if it is one already.
        return proposal.version is not None or not doubtful
    if says_no_such_call(answer.status, answer.body) and not doubtful:
        table.inline.learn_not_served()
        return True
    return False


def _ratified(
    table: TableHandle, proposal: InlineProposal, answer: Answer, published: int | None
) -> Conversation[CommitResponse]:
    try:
        told = decoded(answer, InlineCommitted)
    except NotATidegate as stranger:
        raise CommitOutcomeUnknown(proposal, stranger.why) from None
    if proposal.version is not None and told.file_size != len(proposal.content):
        # A transaction's id that was used before, for another commit: that one has the version.
        raise conflict(table.name, proposal.version, (yield from look_closely(table)))
    table.known = known_after_inline(
        table.known,
        told,
        table_id=proposal.table_id,
        published=published,
        changes_metadata=proposal.changes_metadata,
    )
    return CommitResponse(
        version=told.version,
        timestamp=told.timestamp,
        txn_id=proposal.txn_id,
        path=None,
        size=told.file_size,
        published=published,
    )


def _refused(answer: Answer, *, doubtful: bool) -> TidegateError:
    refused = refusal(answer.status, answer.body, url=answer.url)
    refused.doubtful = doubtful
    return refused
