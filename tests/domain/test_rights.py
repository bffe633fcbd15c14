"""Who may do what: the pure rules."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.domain.grants import Grant, SecurableType
from tidegate.domain.grants import Privilege as P
from tidegate.domain.names import TableName
from tidegate.domain.privileges import Operation, Question
from tidegate.domain.rights import RULES, SHOWN_BY, Allowed, Denied, Hidden, Level, Verdict, explain, may

ADA = frozenset({"ada", "crew"})
METASTORE, CATALOG, SCHEMA, TABLE = SecurableType
NAMES = {METASTORE: "metastore", CATALOG: "c", SCHEMA: "c.s", TABLE: "c.s.t"}


def path(
    grants: Mapping[SecurableType, list[P]], *, to: str = "ada", owners: Mapping[SecurableType, str] | None = None
) -> list[Level]:
    owned = owners or {}
    return [
        Level(
            type,
            f"id of {type}",
            NAMES[type],
            None if type is METASTORE else owned.get(type, "somebody"),
            [Grant(to, privilege) for privilege in grants.get(type, [])],
        )
        for type in SecurableType
    ]


def ask(operation: Operation, way: list[Level]) -> Verdict:
    return may(ADA, Question(operation, TableName("c", "s", "t")), way)


PASSING = {CATALOG: [P.USE_CATALOG], SCHEMA: [P.USE_SCHEMA]}


def test_every_operation_has_a_rule() -> None:
    assert set(RULES) == set(Operation)


@pytest.mark.parametrize("level", SecurableType)
@pytest.mark.parametrize("to", ["ada", "crew"])
def test_what_is_granted_above_holds_below_for_oneself_and_for_groups(level: SecurableType, to: str) -> None:
    grants = {**PASSING, level: [*PASSING.get(level, []), P.SELECT]}
    assert isinstance(ask(Operation.READ_TABLE, path(grants, to=to)), Allowed)
    assert isinstance(ask(Operation.MODIFY_TABLE, path(grants, to=to)), Denied)
    assert ask(Operation.READ_TABLE, path(grants, to="bob")) == Hidden(CATALOG)


@pytest.mark.parametrize(("missing", "hidden"), [(CATALOG, CATALOG), (SCHEMA, SCHEMA)])
def test_what_is_not_passed_hides_what_is_below_even_from_its_owner(
    missing: SecurableType, hidden: SecurableType
) -> None:
    grants = {type: given for type, given in PASSING.items() if type is not missing} | {TABLE: [P.MANAGE]}
    way = path(grants, owners={TABLE: "ada"})
    assert ask(Operation.READ_TABLE, way) == Hidden(hidden)
    assert not explain(ADA, P.SELECT, way).allowed


@pytest.mark.parametrize("owner", ["ada", "crew"])
@pytest.mark.parametrize("level", [CATALOG, SCHEMA, TABLE])
def test_an_owner_may_do_everything_with_it_and_below(level: SecurableType, owner: str) -> None:
    grants = PASSING if level is TABLE else {CATALOG: [P.USE_CATALOG]}
    way = path(grants, owners={level: owner})
    for operation, rule in RULES.items():
        if rule.of is TABLE:
            allowed = ask(operation, way)
            assert isinstance(allowed, Allowed)
            assert allowed.changes_metadata


def test_without_any_privilege_on_it_a_table_is_not_there() -> None:
    assert ask(Operation.READ_TABLE, path(PASSING)) == Hidden(TABLE)
    assert ask(Operation.READ_TABLE, path(PASSING)[:3]) == Hidden(TABLE)


def test_an_object_that_does_not_exist_is_answered_as_one_that_is_hidden() -> None:
    for length in (1, 2, 3):
        missing = ask(Operation.READ_TABLE, path(PASSING)[:length])
        shown = {type: given for type, given in PASSING.items() if list(SecurableType).index(type) < length}
        assert ask(Operation.READ_TABLE, path(shown)) == missing


def test_metadata_of_a_guarded_table_takes_a_privilege_of_its_own() -> None:
    way = path({**PASSING, TABLE: [P.MODIFY]})
    allowed = ask(Operation.MODIFY_TABLE, way)
    assert isinstance(allowed, Allowed)
    assert not allowed.changes_metadata
    assert explain(ADA, P.MODIFY_METADATA, way).allowed
    told = explain(ADA, P.MODIFY_METADATA, way, guarded=True)
    assert not told.allowed
    assert "guarded" in told.why


def test_the_reason_names_who_was_given_what_and_where() -> None:
    way = path({**PASSING, SCHEMA: [P.USE_SCHEMA, P.MODIFY]}, to="crew")
    assert explain(ADA, P.SELECT, way).why == "crew has MODIFY on schema c.s."
    assert explain(ADA, P.MANAGE, way).why == "Nobody has granted MANAGE on table c.s.t, or on what it is in."


GRANTS = st.dictionaries(st.sampled_from(SecurableType), st.lists(st.sampled_from(P), max_size=4), max_size=4)


@given(GRANTS, st.sampled_from(Operation), st.sampled_from(P), st.sampled_from(SecurableType))
def test_more_grants_never_allow_less(
    grants: dict[SecurableType, list[P]], operation: Operation, more: P, level: SecurableType
) -> None:
    before = ask(operation, path(grants)[: list(SecurableType).index(RULES[operation].of) + 1])
    raised = {**grants, level: [*grants.get(level, []), more]}
    after = ask(operation, path(raised)[: list(SecurableType).index(RULES[operation].of) + 1])
    assert not isinstance(before, Allowed) or isinstance(after, Allowed)
    assert not isinstance(before, Denied) or not isinstance(after, Hidden)


@given(GRANTS, st.sampled_from(sorted(SHOWN_BY[TABLE])))
def test_the_explanation_agrees_with_the_rule(grants: dict[SecurableType, list[P]], privilege: P) -> None:
    operations = {P.SELECT: Operation.READ_TABLE, P.MODIFY: Operation.MODIFY_TABLE, P.MANAGE: Operation.MANAGE_TABLE}
    if privilege in operations:
        way = path(grants)
        assert explain(ADA, privilege, way).allowed == isinstance(ask(operations[privilege], way), Allowed)
