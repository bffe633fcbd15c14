"""Load answers that are put together from kept parts say what one encoded anew would say, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from tests.domain.builders import LIMITS, NOW, commit, external_table, iceberg_table, managed_table, proposal, uniform
from tidegate.domain.names import TableId
from tidegate.domain.ratification import Ratified, decide
from tidegate.domain.tables import Table, TableType
from tidegate.domain.updates import Action, AddCommit, ReportPublished, SetComment, SetProperties
from tidegate.http.delta.answers import LoadAnswers
from tidegate.http.delta.conversion import from_commit, from_metadata, from_uniform
from tidegate.wire import delta as wire


def anew(table: Table) -> bytes:
    return msgspec.json.encode(
        wire.LoadTableResponse(
            metadata=from_metadata(table),
            commits=[from_commit(commit) for commit in reversed(table.unpublished)],
            uniform=UNSET if table.uniform is None else from_uniform(table.uniform),
            latest_table_version=table.latest if table.type is TableType.MANAGED else UNSET,
        )
    )


def after(table: Table, *actions: Action) -> Table:
    verified = next((action.version for action in actions if isinstance(action, ReportPublished)), None)
    decision = decide(table, proposal(*actions, verified=verified), ratified=None, limits=LIMITS, now=NOW)
    assert isinstance(decision, Ratified), decision
    return decision.table


def step(table: Table, kind: str, text: str) -> Table:
    addition = AddCommit(commit(table.latest + 1), None)
    match kind:
        case "commit":
            return after(table, addition)
        case "comment":
            return after(table, addition, SetComment(text))
        case "property":
            return after(table, SetProperties({"colour": text}))
        case "report":
            return after(table, ReportPublished(table.published + (table.latest - table.published) // 2))
        case _:
            return table


KINDS = ("commit", "commit", "comment", "property", "report", "nothing")


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.text(max_size=5)), max_size=25))
@settings(max_examples=150)
def test_through_a_history_every_answer_is_what_it_would_be_made_anew(history: Sequence[tuple[str, str]]) -> None:
    answers, table = LoadAnswers(bytes_max=1_000_000), managed_table()
    for kind, text in history:
        table = step(table, kind, text)
        assert answers.of(table) == anew(table)
        assert answers.of(table) == anew(table)


def test_external_and_iceberg_tables_have_their_own_shape() -> None:
    answers = LoadAnswers(bytes_max=1_000_000)
    iceberg = iceberg_table(latest=2)
    for table in (external_table(), replace(iceberg, uniform=uniform(2)), iceberg):
        assert answers.of(table) == anew(table)


def test_an_answer_is_made_once_for_a_table_and_kept_parts_are_used_again() -> None:
    answers, table = LoadAnswers(bytes_max=1_000_000), managed_table(latest=3)
    body = answers.of(table)
    assert answers.of(table) is body
    assert answers.of(replace(table)) is not body


def test_beyond_its_bound_the_oldest_answers_are_forgotten_and_made_again() -> None:
    tables = [replace(managed_table(latest=2), id=TableId(f"{number:036}")) for number in range(20)]
    answers = LoadAnswers(bytes_max=5 * (2 * len(anew(tables[0])) + 1000))
    bodies: list[Any] = [answers.of(table) for table in tables]
    assert sum(answers.of(table) is body for table, body in zip(tables[-5:], bodies[-5:], strict=True)) == 5
    assert answers.of(tables[0]) is not bodies[0]
    assert answers.of(tables[0]) == bodies[0]
