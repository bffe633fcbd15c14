"""However a log lies there, its versions are the same: commits published or not, compacted, checkpointed, cleaned up.

A history of commits is laid out at random: how far it is published, what the catalog still keeps, where checkpoints and
compaction files are, which commits a cleanup has removed, what the hint says. Files that nobody ratified lie beyond it.
Every version that can still be made must be what plain replay of the history says.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.python_client_log.logs import FIRST, Table, add, info, lines, remove
from tidegate.client.log import names
from tidegate.client.log.actions import parse_actions
from tidegate.client.log.errors import VersionNotFound
from tidegate.client.log.replay import State

paths = st.sampled_from(["a", "b", "c", "d"])
changes = st.lists(st.builds(lambda kind, path: kind(path), st.sampled_from([add, remove]), paths), max_size=3)
FORGED = [*FIRST, add("forged"), remove("a")]
Commits = list[list[dict[str, Any]]]


def state_at(commits: Commits, version: int, start: int = 0) -> dict[str, str]:
    """By path whether the newest action about it, from `start` on, adds or removes it."""
    newest: dict[str, str] = {}
    for commit in commits[start : version + 1]:
        for action in commit:
            for kind, told in action.items():
                if kind in {"add", "remove"}:
                    newest[told["path"]] = kind
    return newest


def actions_of(state: dict[str, str]) -> list[dict[str, Any]]:
    return [add(path) if kind == "add" else remove(path) for path, kind in state.items()]


@st.composite
def layouts(draw: st.DrawFn, table: Table, commits: Commits) -> tuple[int, int]:
    """Lays the commits out, and answers the earliest version that can still be made, and the latest."""
    latest = len(commits) - 1
    published = draw(st.integers(0, latest))
    kept_from = draw(st.integers(1, published + 1))
    for version in range(published + 1):
        told = FORGED if version >= kept_from else commits[version]  # The catalog's word wins: nobody reads these.
        table.publish(*told, version=version)
    for version in range(kept_from, latest + 1):
        table.stage(*commits[version], version=version)
    table.latest = latest
    checkpoints = draw(st.sets(st.integers(0, published), max_size=2))
    for version in checkpoints:
        name = draw(st.sampled_from([None, f"{version:020}.checkpoint.{uuid.UUID(int=version)}.json"]))
        table.checkpoint(version, [*FIRST, *actions_of(state_at(commits, version))], name)
    for _ in range(draw(st.integers(0, 2))):
        start, end = draw(st.integers(1, latest + 1)), draw(st.integers(1, latest + 1))
        if start < end <= published:
            table.compact(start, end, *actions_of(state_at(commits, end, start)))
    if draw(st.booleans()):
        table.hint(draw(st.integers(0, latest + 2)))
    beyond(table, latest + 1)
    return clean_up(draw, table, checkpoints), latest


def beyond(table: Table, version: int) -> None:
    table.publish(*FORGED, version=version)
    table.checkpoint(version, FORGED)


def clean_up(draw: st.DrawFn, table: Table, checkpoints: set[int]) -> int:
    """Removes the commits before a checkpoint, as a cleanup does; with them go compactions that begin before it."""
    cut = draw(st.sampled_from([0, *sorted(checkpoints)]))
    table.forget(*range(cut))
    for path in table.log.iterdir():
        parsed = names.parse_name(path.name)
        is_old_compaction = isinstance(parsed, names.Compaction) and parsed.start <= cut
        is_old_checkpoint = isinstance(parsed, names.CheckpointPart) and parsed.version < cut
        if cut and (is_old_compaction or is_old_checkpoint):
            path.unlink()
    return cut


@settings(max_examples=150, deadline=None)
@given(st.lists(changes, min_size=1, max_size=14), st.data())
def test_every_version_is_the_same_however_its_log_lies_there(
    tmp_path_factory: pytest.TempPathFactory, histories: Commits, data: st.DataObject
) -> None:
    commits: Commits = [[*FIRST, *histories[0]], *histories[1:]]
    table = Table(tmp_path_factory.mktemp("layout") / "t")
    earliest, latest = data.draw(layouts(table, commits))
    version = data.draw(st.integers(0, latest))
    if version < earliest:
        with pytest.raises(VersionNotFound, match=f"ask for version {earliest} or a later one"):
            table.snapshot(version)
        return
    expected = {path for path, kind in state_at(commits, version).items() if kind == "add"}
    assert table.paths(version) == expected
    assert table.snapshot(version).timestamp == 1000 + 10 * version


def test_the_model_of_these_tests_is_plain_replay() -> None:
    commits: Commits = [[*FIRST, add("a"), add("b")], [remove("a")], [add("a"), remove("b")]]
    state = State()
    for commit in commits:
        state.apply(parse_actions(lines([info(1), *commit]), "a commit"))
    assert {file.path for file in state.files} == {"a"}
    assert state_at(commits, 2) == {"a": "add", "b": "remove"}
