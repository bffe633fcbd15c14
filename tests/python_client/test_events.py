"""Events through the client: in pages, and followed."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.python_client.conftest import COLUMNS, QUICK
from tests.python_client.faces import close_face, open_face
from tests.python_client.proxy import Fault, proxy_to
from tests.servers import ServerProcess
from tidegate import client


def test_events_are_read_in_pages(catalog: Any, table: Any) -> None:
    for version in (1, 2, 3):
        table.commit(version, [])
    page = catalog.read_events(table=table.name, max_results=2)
    assert [event.kind for event in page.events] == ["table.created", "table.committed"]
    rest = catalog.read_events(table=table.name, after=page.next_after, kinds=["table.committed"])
    assert [event.version for event in rest.events] == [2, 3]
    assert rest.next_after == rest.last


def test_events_are_followed_from_any_number_on(catalog: Any, table: Any) -> None:
    table.commit(1, [])
    following = catalog.follow_events(table=table.name)
    first, second = itertools.islice(following, 2)
    following.close()
    table.commit(2, [])
    resumed = catalog.follow_events(table=table.name, after=first.sequence, kinds=iter(["table.committed"]))
    assert [event.version for event in itertools.islice(resumed, 2)] == [1, 2]
    resumed.close()
    assert second.sequence > first.sequence


@pytest.mark.parametrize("seed", range(2))
def test_who_follows_through_a_bad_network_misses_nothing_and_gets_nothing_twice(
    server: ServerProcess, catalog: Any, face: str, unique: str, seed: int
) -> None:
    table = catalog.create_table(f"main.default.{unique}", COLUMNS)
    start = catalog.read_events(max_results=1).last
    dice = random.Random(seed)
    faults = [Fault.PASS, Fault.DROP_ANSWER, Fault.CUT_ANSWER, Fault.DROP_REQUEST, Fault.UNAVAILABLE, Fault.BUSY]
    with proxy_to(server.url, lambda _: dice.choice(faults)) as proxy:
        follower = open_face(face, proxy.url, token=server.token, patience=QUICK)
        following = follower.follow_events(after=start, table=table.name, kinds=["table.committed"])
        seen = []
        for version in range(1, 11):
            table.commit(version, [])
            if version % 3 == 0:
                seen += itertools.islice(following, 3)
        seen += itertools.islice(following, 1)
        following.close()
        close_face(follower)
    assert [event.version for event in seen] == list(range(1, 11))


def test_a_number_that_is_not_there_yet_is_refused(catalog: Any) -> None:
    with pytest.raises(client.InvalidRequest, match="no event"):
        catalog.read_events(after=10**15)
