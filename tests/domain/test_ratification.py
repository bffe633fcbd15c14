"""The decision: ratified, replayed, in conflict or rejected; for single requests and for whole histories of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.builders import (
    CREATED_AT,
    ICEBERG_ON,
    LIMITS,
    LOCATION,
    NAME,
    NOW,
    TABLE_ID,
    columns,
    commit,
    domains,
    external_table,
    feature_names,
    field,
    iceberg_table,
    managed_table,
    metadata,
    proposal,
    protocol,
    schemas,
    staged_name,
    struct,
    timestamp_of,
    uniform,
)
from tidegate.domain.chain import chain_of
from tidegate.domain.commits import Commit
from tidegate.domain.errors import (
    BacklogFull,
    CommitVersionConflict,
    InvalidRequest,
    NoSuchTable,
    RequirementConflict,
    TidegateError,
)
from tidegate.domain.names import Version
from tidegate.domain.protocol import Protocol
from tidegate.domain.ratification import (
    Conflict,
    Decision,
    Limits,
    Proposal,
    Ratified,
    Rejected,
    Replay,
    decide,
    table_moved,
)
from tidegate.domain.tables import Table, check_metadata
from tidegate.domain.uniform import ENABLED_FORMATS_PROPERTY, Uniform, is_iceberg_enabled
from tidegate.domain.updates import (
    Action,
    AddCommit,
    RemoveDomainMetadata,
    RemoveProperties,
    ReportPublished,
    SetColumns,
    SetComment,
    SetDomainMetadata,
    SetPartitionColumns,
    SetProperties,
    SetProtocol,
    SetSnapshotVersion,
    apply_metadata,
    check_actions,
    is_metadata_change,
)


def add(version: int, *, writer: str = "a", uniform: Uniform | None = None, **changes: Any) -> AddCommit:
    return AddCommit(commit(version, writer=writer, **changes), uniform)


def report(version: int) -> ReportPublished:
    return ReportPublished(Version(version))


def decided(
    table: Table, proposed: Proposal, *, ratified: Commit | None = None, limits: Limits = LIMITS, now: int = NOW
) -> Decision:
    return decide(table, proposed, ratified=ratified, limits=limits, now=now)


def ratified(table: Table, proposed: Proposal, *, limits: Limits = LIMITS) -> Table:
    decision = decided(table, proposed, limits=limits)
    assert isinstance(decision, Ratified), decision
    return decision.table


def rejection(table: Table, proposed: Proposal, *, limits: Limits = LIMITS) -> TidegateError:
    decision = decided(table, proposed, limits=limits)
    assert isinstance(decision, Rejected), decision
    return decision.error


# One winner


def test_the_next_version_is_ratified() -> None:
    table = managed_table(latest=4, published=2)
    decision = decided(table, proposal(add(5)))
    assert decision == Ratified(
        replace(
            table,
            latest=5,
            latest_timestamp=timestamp_of(5),
            unpublished=(commit(3), commit(4), commit(5)),
            chain=chain_of(table.id, None, commit(5), principal=proposal(add(5)).principal, ratified_at=NOW),
        ),
        commit(5),
    )


def test_the_first_version_after_creation_is_1() -> None:
    assert ratified(managed_table(), proposal(add(1))).latest == 1
    assert isinstance(decided(managed_table(), proposal(add(2))), Conflict)


@pytest.mark.parametrize(
    ("version", "why"),
    [(1, "is already taken"), (4, "is already taken"), (6, "would leave a gap"), (5000, "would leave a gap")],
)
def test_any_other_version_is_a_conflict_that_says_which_one_to_propose(version: int, why: str) -> None:
    holder = commit(version, writer="a") if version <= 4 else None
    decision = decided(managed_table(latest=4), proposal(add(version, writer="b")), ratified=holder)
    assert isinstance(decision, Conflict)
    assert decision.latest == decision.error.latest == 4
    assert decision.error.proposed == version
    assert why in decision.error.message
    assert "the latest version is 4. Rebase and propose version 5" in decision.error.message


def test_of_two_writers_the_first_wins_and_the_second_rebases() -> None:
    table = ratified(managed_table(latest=4), proposal(add(5, writer="a")))
    lost = decided(table, proposal(add(5, writer="b")), ratified=commit(5, writer="a"))
    assert isinstance(lost, Conflict)
    assert lost.latest == 5
    assert ratified(table, proposal(add(6, writer="b"))).latest == 6


# A lost answer


@pytest.mark.parametrize("published", [0, 5, 7])
def test_a_replayed_commit_changes_nothing_whether_published_or_not(published: int) -> None:
    table = managed_table(latest=7, published=published)
    assert decided(table, proposal(add(5)), ratified=commit(5)) == Replay(table, commit(5))


def test_a_replay_succeeds_although_its_own_first_try_changed_the_etag() -> None:
    table = managed_table()
    request = proposal(add(1), SetComment("new"), etag=table.etag)
    after = ratified(table, request)
    assert after.etag != table.etag
    assert decided(after, request, ratified=commit(1)) == Replay(after, commit(1))


def test_a_replay_succeeds_although_the_backlog_is_full() -> None:
    table = managed_table(latest=3)
    assert decided(table, proposal(add(3)), ratified=commit(3), limits=Limits(unpublished_max=3)) == Replay(
        table, commit(3)
    )


def test_another_file_for_a_taken_version_is_no_replay() -> None:
    taken = decided(managed_table(latest=3), proposal(add(3, writer="b")), ratified=commit(3, writer="a"))
    assert isinstance(taken, Conflict)


# Timestamps


@pytest.mark.parametrize("timestamp", [timestamp_of(4), timestamp_of(4) - 1, 1])
def test_a_timestamp_that_does_not_rise_is_refused_with_both(timestamp: int) -> None:
    error = rejection(managed_table(latest=4), proposal(add(5, timestamp=timestamp)))
    assert isinstance(error, InvalidRequest)
    assert f"The timestamp of version 5 is {timestamp}, but version 4 has {timestamp_of(4)}" in error.message
    assert "use a later one" in error.message


def test_one_millisecond_later_is_late_enough() -> None:
    after = ratified(managed_table(latest=4), proposal(add(5, timestamp=timestamp_of(4) + 1)))
    assert after.latest_timestamp == timestamp_of(4) + 1


def test_the_first_commit_is_later_than_version_0() -> None:
    error = rejection(managed_table(), proposal(add(1, timestamp=timestamp_of(0))))
    assert "version 0 has" in error.message


def test_a_lost_race_is_a_conflict_even_if_its_timestamp_is_old() -> None:
    """The writer will take a later one when it rebases: a refusal would stop it for nothing."""
    decision = decided(managed_table(latest=4), proposal(add(4, writer="b", timestamp=1)), ratified=commit(4))
    assert isinstance(decision, Conflict)


# The backlog


def test_the_backlog_is_filled_to_its_bound_and_not_beyond() -> None:
    limits = Limits(unpublished_max=3)
    table = ratified(managed_table(latest=2), proposal(add(3)), limits=limits)
    assert len(table.unpublished) == 3
    error = rejection(table, proposal(add(4)), limits=limits)
    assert isinstance(error, BacklogFull)
    assert f"{NAME} has 3 ratified commits that are not published yet; 3 is the limit" in error.message
    assert "Publish them to _delta_log and report it" in error.message


def test_the_backlog_is_counted_after_the_request_own_report() -> None:
    table = ratified(managed_table(latest=3), proposal(add(4), report(2), verified=2), limits=Limits(unpublished_max=2))
    assert [one.version for one in table.unpublished] == [3, 4]


def test_a_report_that_could_not_be_verified_makes_no_room() -> None:
    full = proposal(add(4), report(3), verified=None)
    assert isinstance(rejection(managed_table(latest=3), full, limits=Limits(unpublished_max=3)), BacklogFull)


@pytest.mark.parametrize("action", [SetComment("new"), SetProperties({"team": "sea"}), ReportPublished(Version(2))])
def test_a_full_backlog_stops_commits_only(action: Action) -> None:
    ratified(managed_table(latest=3), proposal(action, verified=2), limits=Limits(unpublished_max=3))


# Reports


@pytest.mark.parametrize(("verified", "published"), [(None, 1), (0, 1), (1, 1), (2, 2), (4, 4)])
def test_a_report_counts_as_far_as_it_was_verified(verified: int | None, published: int) -> None:
    table = managed_table(latest=4, published=1)
    after = ratified(table, proposal(report(4), verified=verified))
    assert after.published == published
    assert [one.version for one in after.unpublished] == list(range(published + 1, 5))
    assert after.etag == table.etag
    assert after.updated_at == table.updated_at


@pytest.mark.parametrize("actions", [(report(5),), (add(5), report(5)), (add(5), report(6))])
def test_a_report_beyond_what_was_ratified_is_refused_and_its_commit_with_it(actions: tuple[Action, ...]) -> None:
    error = rejection(managed_table(latest=4), proposal(*actions, verified=4))
    assert isinstance(error, InvalidRequest)
    assert "the latest ratified version is 4" in error.message


# Metadata


def test_metadata_and_commit_change_together() -> None:
    table = managed_table(latest=4)
    after = ratified(table, proposal(add(5), SetColumns(struct(field("a"), field("b"))), SetProperties({"x": "1"})))
    assert after.metadata.columns == struct(field("a"), field("b"))
    assert after.metadata.properties["x"] == "1"
    assert (after.metadata_version, after.metadata_timestamp) == (5, timestamp_of(5))
    assert after.revision == table.revision + 1
    assert (after.updated_at, after.updated_by) == (NOW, "bob")
    assert (after.created_at, after.created_by, after.owner) == (CREATED_AT, "ada", "ada")


@pytest.mark.parametrize(
    "actions",
    [
        (add(5),),
        (add(5), SetProperties({})),
        (add(5), SetComment(None)),
        (add(5), SetColumns(columns())),
        (add(5), SetProtocol(protocol())),
        (add(5), RemoveProperties(["unknown"])),
        (add(5), SetDomainMetadata({"delta.rowTracking": {"rowIdHighWaterMark": 7}})),
        (report(4),),
        (SetComment(None),),
    ],
    ids=lambda actions: "+".join(action.action for action in actions),
)
def test_what_leaves_the_metadata_as_it_is_keeps_the_etag(actions: tuple[Action, ...]) -> None:
    table = managed_table(latest=4)
    after = ratified(table, proposal(*actions, verified=4))
    assert after.etag == table.etag
    assert (after.metadata_version, after.metadata_timestamp) == (table.metadata_version, table.metadata_timestamp)
    assert (after.updated_at, after.updated_by) == (table.updated_at, table.updated_by)


def test_the_row_tracking_mark_is_kept_although_the_etag_is_too() -> None:
    mark = {"delta.rowTracking": {"rowIdHighWaterMark": 7}}
    assert ratified(managed_table(), proposal(add(1), SetDomainMetadata(mark))).metadata.domains == mark


@pytest.mark.parametrize("action", [SetComment("new"), SetProperties({"team": "sea"})])
def test_what_only_the_catalog_knows_changes_alone_and_moves_no_version(action: Action) -> None:
    table = managed_table(latest=4)
    after = ratified(table, proposal(action))
    assert after.revision == table.revision + 1
    assert (after.latest, after.metadata_version, after.unpublished) == (4, 0, table.unpublished)


@pytest.mark.parametrize(
    "action",
    [
        SetColumns(struct(field("a"))),
        SetProtocol(protocol()),
        SetPartitionColumns(("port",)),
        SetDomainMetadata({"d": {}}),
        RemoveDomainMetadata(["d"]),
        SetProperties({"delta.appendOnly": "true"}),
        RemoveProperties(["delta.checkpointPolicy"]),
    ],
    ids=lambda action: action.action,
)
def test_metadata_of_the_log_needs_a_commit(action: Action) -> None:
    error = rejection(managed_table(latest=4), proposal(action))
    assert isinstance(error, InvalidRequest)
    assert "together with the add-commit" in error.message


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (RemoveProperties(["io.unitycatalog.tableId"]), "io.unitycatalog.tableId"),
        (RemoveProperties(["delta.checkpointPolicy"]), "needs the property delta.checkpointPolicy=v2"),
        (SetProperties({"delta.enableInCommitTimestamps": "false"}), "delta.enableInCommitTimestamps=true"),
        (SetProtocol(Protocol(3, 7, frozenset(), frozenset())), "needs the reader feature 'catalogManaged'"),
        (SetColumns(struct(field("a"), field("A"))), "differ in case only"),
        (SetColumns(struct(field("a"))), "Partition column 'port' is not among the columns"),
        (SetPartitionColumns(("depth",)), "Partition column 'depth' is not among the columns"),
        (SetProtocol(replace(protocol(), writer_features=protocol().writer_features - {"clustering"})), "'clustering'"),
    ],
)
def test_the_contract_is_checked_on_the_state_after_every_update(action: Action, message: str) -> None:
    clustered = {"delta.clustering": {"clusteringColumns": [["id"]]}}
    table = managed_table(metadata=metadata(partition_columns=("port",), domains=clustered))
    error = rejection(table, proposal(add(1), action))
    assert isinstance(error, InvalidRequest)
    assert message in error.message


def test_changes_that_are_sound_only_together_are_judged_together() -> None:
    table = managed_table(metadata=metadata(partition_columns=("port",)))
    together = proposal(add(1), SetColumns(struct(field("a"), field("b"))), SetPartitionColumns(("b",)))
    assert ratified(table, together).metadata.partition_columns == ("b",)


# Requirements


def test_the_current_etag_is_met_and_a_stale_one_is_a_conflict() -> None:
    table = managed_table(revision=5)
    ratified(table, proposal(add(1), etag=f"{TABLE_ID}.5"))
    assert isinstance(rejection(table, proposal(add(1), etag=f"{TABLE_ID}.4")), RequirementConflict)


def test_an_etag_outlives_data_commits_and_reports() -> None:
    table = managed_table(latest=2)
    after = ratified(ratified(table, proposal(add(3))), proposal(report(3), verified=3))
    ratified(after, proposal(SetComment("new"), etag=table.etag))


# UniForm


def test_with_iceberg_each_commit_brings_its_conversion() -> None:
    table = iceberg_table(latest=4)
    told = uniform(5, base_converted_version=4)
    assert ratified(table, proposal(add(5, uniform=told))).uniform == told
    assert "must carry 'uniform'" in rejection(table, proposal(add(5))).message
    assert isinstance(
        rejection(table, proposal(add(5, uniform=uniform(5, base_converted_version=3)))), RequirementConflict
    )


def test_whether_iceberg_is_enabled_is_read_after_the_update() -> None:
    enabling = SetProperties(ICEBERG_ON)
    assert ratified(managed_table(), proposal(add(1, uniform=uniform(1)), enabling)).uniform == uniform(1)
    assert "must carry 'uniform'" in rejection(managed_table(), proposal(add(1), enabling)).message
    disabling = RemoveProperties([ENABLED_FORMATS_PROPERTY])
    assert ratified(iceberg_table(), proposal(add(1), disabling)).uniform is None
    assert "leave it out" in rejection(iceberg_table(), proposal(add(1, uniform=uniform(1)), disabling)).message


@pytest.mark.parametrize("action", [SetComment("new"), ReportPublished(Version(2))])
def test_an_update_without_a_commit_keeps_the_conversion(action: Action) -> None:
    table = iceberg_table(latest=2)
    assert ratified(table, proposal(action, verified=2)).uniform == table.uniform


# External tables


@pytest.mark.parametrize("action", [add(1), ReportPublished(Version(0))], ids=lambda action: action.action)
def test_external_tables_have_no_commits_here(action: Action) -> None:
    error = rejection(external_table(), proposal(action))
    assert isinstance(error, InvalidRequest)
    assert error.message == f"{action.action} is for managed tables; {NAME} is external."


def test_the_snapshot_version_is_for_external_tables() -> None:
    told = SetSnapshotVersion(Version(8), 99)
    after = ratified(external_table(), proposal(told))
    assert (after.metadata_version, after.metadata_timestamp, after.revision) == (8, 99, 2)
    assert ratified(after, proposal(told)).revision == 2
    assert "is for external tables" in rejection(managed_table(), proposal(told)).message


def test_the_metadata_of_an_external_table_changes_without_a_commit() -> None:
    after = ratified(external_table(), proposal(SetColumns(struct(field("a"))), SetProperties({"delta.x": "1"})))
    assert after.metadata.properties == {"delta.x": "1"}
    assert after.metadata.catalog_properties == {}
    assert after.revision == 2


# Tables that are not there any more


def test_a_table_that_was_renamed_is_told_by_its_new_name() -> None:
    error = table_moved(proposal(add(1)), now_named=replace(NAME, table="waves"))
    assert isinstance(error, NoSuchTable)
    assert f"There is no table {NAME}" in error.message
    assert f"The table with id {TABLE_ID} is called main.default.waves now" in error.message


def test_a_name_that_another_table_took_stops_a_commit_for_good_and_lets_others_reload() -> None:
    """Stock clients take every 409 for a lost race, and would commit to the stranger at its next version."""
    with_commit = table_moved(proposal(add(1), SetComment("c")), now_named=None)
    assert isinstance(with_commit, NoSuchTable)
    assert f"the one with id {TABLE_ID} was dropped" in with_commit.message
    without = table_moved(proposal(SetComment("c")), now_named=None)
    assert isinstance(without, RequirementConflict)
    assert f"{NAME} is not the table with id {TABLE_ID}. Reload" in without.message


# Histories


@dataclass(frozen=True)
class Step:
    """A request, told relative to the state it meets."""

    commit_offset: int | None
    """From the version that would be right."""
    writer: str
    tick: int
    uniform: Uniform | Literal["fitting"] | None
    report_offset: int | None
    """From the latest version."""
    verified_back: int | None
    """How much of the report was not verified."""
    etag: str | None
    others: tuple[Action, ...]


texts = st.text(max_size=4) | st.sampled_from(["id", "port", "ID", "delta.x", "delta.feature.y", "team"])
keyed = st.dictionaries(texts, texts, max_size=3)
formats = st.sampled_from([{ENABLED_FORMATS_PROPERTY: "iceberg"}, {ENABLED_FORMATS_PROPERTY: "none"}])
features = st.frozensets(feature_names() | st.sampled_from(sorted(protocol().features())))
protocols = st.builds(Protocol, st.integers(-1, 4), st.integers(-1, 8), features, features) | st.builds(
    lambda more: protocol(writer=more), features
)
metadata_actions: tuple[st.SearchStrategy[Action], ...] = (
    st.builds(SetProperties, keyed | formats),
    st.builds(RemoveProperties, st.lists(texts | st.sampled_from(sorted(metadata().properties)), max_size=3)),
    st.builds(SetProtocol, protocols),
    st.builds(SetColumns, schemas() | st.builds(lambda name: struct(field(name), field("port")), texts)),
    st.builds(SetPartitionColumns, st.lists(texts, max_size=3).map(tuple)),
    st.builds(SetComment, st.none() | texts),
    st.builds(SetDomainMetadata, domains().filter(bool)),
    st.builds(RemoveDomainMetadata, st.lists(texts | st.just("delta.clustering"), min_size=1, max_size=2)),
    st.builds(SetSnapshotVersion, st.integers(0, 9).map(Version), st.integers(1, 9)),
)
uniforms = st.builds(
    Uniform,
    metadata_location=st.sampled_from([f"{LOCATION}/m.json", "file:///elsewhere/m.json", "nowhere"]),
    converted_version=st.integers(0, 6),
    converted_timestamp=st.integers(),
    base_converted_version=st.none() | st.integers(0, 6),
)


some_metadata_actions = st.lists(st.integers(0, len(metadata_actions) - 1), unique=True, max_size=2).flatmap(
    lambda kinds: st.tuples(*(metadata_actions[kind] for kind in kinds))
)
wild_steps = st.builds(
    Step,
    commit_offset=st.none() | st.sampled_from([0, 0, 0, -1, -2, 1]),
    writer=st.sampled_from("ab"),
    tick=st.sampled_from([1, 5, 0, -1]),
    uniform=st.none() | st.just("fitting") | uniforms,
    report_offset=st.none() | st.integers(-3, 1),
    verified_back=st.none() | st.integers(0, 3),
    etag=st.sampled_from([None, "current", "stale"]),
    others=some_metadata_actions,
)
# Most of a history must succeed, or it never leaves the first versions.
sound_actions = st.just(()) | st.one_of(
    st.builds(SetComment, texts),
    st.builds(SetProperties, st.dictionaries(st.sampled_from(["team", "port"]), texts, max_size=2) | formats),
    st.builds(RemoveProperties, st.lists(st.sampled_from(["team", "port", ENABLED_FORMATS_PROPERTY]), max_size=2)),
    st.builds(SetDomainMetadata, domains().filter(bool)),
).map(lambda action: (action,))
sound_steps = st.builds(
    Step,
    commit_offset=st.sampled_from([0, 0, 0, None]),
    writer=st.sampled_from("ab"),
    tick=st.sampled_from([1, 5]),
    uniform=st.just("fitting"),
    report_offset=st.none() | st.integers(-3, 0),
    verified_back=st.integers(0, 2),
    etag=st.sampled_from([None, "current"]),
    others=sound_actions,
)
steps = sound_steps | sound_steps | wild_steps


def fitting_uniform(table: Table, others: tuple[Action, ...], version: int) -> Uniform | None:
    """What the commit must tell of Iceberg, given what the other actions make of the properties."""
    properties = apply_metadata(table.metadata, others, in_log=True).properties
    base = None if table.uniform is None else table.uniform.converted_version
    return uniform(version, base_converted_version=base) if is_iceberg_enabled(properties) else None


def request(step: Step, table: Table) -> Proposal | None:
    """The step as a request to the table; None when its shape would not have let it come this far."""
    actions, verified = list(step.others), None
    if step.commit_offset is not None:
        version = max(1, table.latest + 1 + step.commit_offset)
        proposed = commit(version, writer=step.writer, timestamp=max(1, table.latest_timestamp + step.tick))
        fitting = fitting_uniform(table, step.others, version)
        actions.append(AddCommit(proposed, fitting if step.uniform == "fitting" else step.uniform))
    if step.report_offset is not None:
        reported = max(0, table.latest + step.report_offset)
        actions.append(report(reported))
        if step.verified_back is not None:
            verified = max(table.published, min(reported, table.latest) - step.verified_back)
    try:
        check_actions(actions)
    except InvalidRequest:
        return None
    etag = {None: None, "current": table.etag, "stale": f"{table.id}.0"}[step.etag]
    return proposal(*actions, etag=etag, verified=verified)


def holder_of(proposed: Proposal, log: dict[int, Commit]) -> Commit | None:
    return None if proposed.commit is None else log.get(proposed.commit.version)


def is_same_file(proposed: Proposal, holder: Commit | None) -> bool:
    return holder is not None and proposed.commit is not None and holder.file_name == proposed.commit.file_name


def check_sound(table: Table) -> None:
    """What holds of every state that a table can be in."""
    check_metadata(table)
    assert 0 <= table.published <= table.latest
    assert [one.version for one in table.unpublished] == list(range(table.published + 1, table.latest + 1))
    timestamps = [one.timestamp for one in table.unpublished]
    assert timestamps == sorted(set(timestamps))
    assert table.metadata_version <= table.latest
    assert table.metadata_timestamp <= table.latest_timestamp


def check_step(before: Table, after: Table, proposed: Proposal, *, limits: Limits) -> None:
    """What holds between a state and the next."""
    changed = is_metadata_change(before.metadata, after.metadata)
    assert after.revision == before.revision + changed
    assert (after.updated_at, after.updated_by) == ((NOW, "bob") if changed else (before.updated_at, before.updated_by))
    assert after.published == max(before.published, proposed.verified or 0)
    assert after.latest == before.latest + (proposed.commit is not None)
    if proposed.commit is None:
        assert (after.latest_timestamp, after.metadata_version) == (before.latest_timestamp, before.metadata_version)
    else:
        assert after.latest_timestamp == proposed.commit.timestamp > before.latest_timestamp
        assert after.metadata_version == (after.latest if changed else before.metadata_version)
        assert after.unpublished[-1] == proposed.commit
        assert len(after.unpublished) <= limits.unpublished_max
    for kept in ("id", "name", "type", "format", "location", "owner", "created_at", "created_by"):
        assert getattr(after, kept) == getattr(before, kept)


def facts(decision: Decision) -> tuple[type, object]:
    """A decision as something that can be compared: errors are equal when they say the same."""
    match decision:
        case Rejected(error) | Conflict(_, error):
            return type(error), error.message
        case _:
            return type(decision), decision


def check_no_success(decision: Replay | Conflict | Rejected, table: Table, proposed: Proposal) -> None:
    match decision:
        case Replay(same, _):
            assert same == table
        case Conflict(latest, error):
            assert isinstance(error, CommitVersionConflict)
            assert latest == table.latest
            assert proposed.commit is not None and proposed.commit.version != latest + 1
        case Rejected(error):
            assert isinstance(error, InvalidRequest | RequirementConflict | BacklogFull)
            assert error.message


def check_success(table: Table, decision: Ratified, proposed: Proposal, *, limits: Limits) -> None:
    after = decision.table
    check_sound(after)
    check_step(table, after, proposed, limits=limits)
    assert decision.commit == proposed.commit
    if decision.commit is not None:
        assert decided(after, proposed, ratified=decision.commit, limits=limits) == Replay(after, decision.commit)


@given(history=st.lists(steps, min_size=5, max_size=20), unpublished_max=st.sampled_from([1000, 5, 3, 1, 0]))
@settings(deadline=None, max_examples=150)
def test_whatever_is_proposed_the_table_stays_sound_and_no_version_is_ratified_twice(
    history: list[Step], unpublished_max: int
) -> None:
    table, limits = managed_table(), Limits(unpublished_max)
    log: dict[int, Commit] = {}
    for step in history:
        proposed = request(step, table)
        if proposed is None:
            continue
        holder = holder_of(proposed, log)
        decision = decided(table, proposed, ratified=holder, limits=limits)
        assert facts(decided(table, proposed, ratified=holder, limits=limits)) == facts(decision)
        assert isinstance(decision, Replay) == is_same_file(proposed, holder)
        if not isinstance(decision, Ratified):
            check_no_success(decision, table, proposed)
            continue
        check_success(table, decision, proposed, limits=limits)
        table = decision.table
        if decision.commit is not None:
            assert decision.commit.version not in log
            log[decision.commit.version] = decision.commit
    assert sorted(log) == list(range(1, table.latest + 1))


@given(step=wild_steps)
@settings(deadline=None, max_examples=200)
def test_an_external_table_meets_every_request_with_a_decision(step: Step) -> None:
    table = external_table()
    proposed = request(step, table)
    if proposed is None:
        return
    match decided(table, proposed):
        case Ratified(after, won):
            assert won is None
            check_metadata(after)
            assert (after.latest, after.published, after.unpublished) == (0, 0, ())
            assert after.revision in {table.revision, table.revision + 1}
            assert (after.revision == table.revision) == (after == replace(table, metadata=after.metadata))
        case Rejected(error):
            assert isinstance(error, InvalidRequest | RequirementConflict)
        case other:
            pytest.fail(f"an external table has no commits to replay or to conflict with: {other}")


def test_writers_name_their_files_apart() -> None:
    """The histories rest on it: one version of two writers is two files, and of one writer always the same."""
    assert staged_name(1, "a") == staged_name(1, "a") != staged_name(1, "b")
