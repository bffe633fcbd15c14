"""Publishing from here: the ratified bytes of staged commits into the log.

Inline commits have no file: the server publishes them. Commits are published in order, so those after an inline one
wait for the server too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from tidegate.client.conversations import Conversation, do
from tidegate.client.errors import StorageFailure
from tidegate.client.files import Files, published_path, staged_path
from tidegate.client.known_tables import KnownTable
from tidegate.client.wire import Commit

PUBLISHED_AT_ONCE_MAX = 100
"""What one commit publishes of what others left behind: the next one, or the server, goes on."""


def publish_known(files: Files, known: KnownTable | None) -> Conversation[int | None]:
    """What is known to be unpublished, and can be published from here. The last version that is in the log by now."""
    staged = [] if known is None else list(takewhile(lambda one: not one.inline, known.unpublished))
    if known is None or not staged:
        return None
    return (yield from do(partial(publish, files, known.location, staged[:PUBLISHED_AT_ONCE_MAX])))


def publish(files: Files, location: str, commits: Sequence[Commit]) -> int | None:
    """Puts the ratified bytes into the log, in order. The last version that is there with these bytes.

    Stops at whatever is in the way: the catalog publishes too, and raises an alarm where it cannot.
    """
    last = None
    with contextlib.suppress(StorageFailure):
        for one in commits:
            content = files.read(staged_path(location, one.file_name))
            if content is None or len(content) != one.file_size:
                break
            target = published_path(location, one.version)
            if not files.write_new(target, content) and files.read(target) != content:
                break
            last = one.version
    return last
