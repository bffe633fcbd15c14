"""Named steps of background work at which a test can let the worst happen.

The work says where it is; nothing listens unless the variable TIDEGATE_FAULT names a step and a fault. Then this
process is killed there, or the step fails or hangs, and the tests see that nothing is lost:

    TIDEGATE_FAULT=publish.linked:kill       the process dies there, as by kill -9
    TIDEGATE_FAULT=publish.copied:fail       the step raises "no space left on device", every time
    TIDEGATE_FAULT=publish.copied:fail:3     the first three times
    TIDEGATE_FAULT=publish.started:hang:5    the step takes five seconds
    TIDEGATE_FAULT=publish.copied:hang:5:3   the first three times

`STEPS` lists every step there is, so that a test can visit each.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable

VARIABLE = "TIDEGATE_FAULT"

STEPS: dict[str, str] = {
    "publish.started": "a table's unpublished commits are known, no file has been looked at",
    "publish.copied": "the copy is written beside the log and synced, under a name that nobody reads",
    "publish.linked": "the copy has its name in the log",
    "publish.verified": "the published files hold the ratified bytes, the catalog does not know it yet",
    "publish.recorded": "the catalog knows",
    "report.started": "a file that a writer reports as published is about to be compared, its commit waits for that",
    "put.decided": "no rule is against a commit, its file is not in the log",
    "put.written": "the file is written beside the log and synced, under a name that nobody reads",
    "put.linked": "the file has its name in the log: the commit has happened, and nobody was told",
    "put.synced": "the name stays when the power goes, the catalog does not know of the commit",
    "put.recorded": "the catalog knows, the writer does not",
    "learn.read": "a file that somebody else has put into a log is read and found to be sound",
    "learn.recorded": "the catalog knows of it",
    "store.removed": "files of a table are gone, and the store, on a thread of its own, has not said so yet",
    "purge.marked": "a dropped table is marked: from here on it cannot be restored",
    "purge.files_removed": "a batch of its files is gone, the catalog does not know how many",
    "purge.emptied": "nothing is left of its folder, all rows are there",
    "purge.commits_forgotten": "the rows of some commits are gone",
    "purge.forgotten": "the catalog has no row of it",
    "expire.taken": "a staging table is gone from the catalog, its folder is noted for removal",
    "expire.files_removed": "a batch of its files is gone, the catalog does not know how many",
    "expire.emptied": "nothing is left of its folder, the note is there",
    "expire.forgotten": "the note is gone",
    "clean.planned": "it is decided which files of a log go, all are there",
    "clean.removed": "a batch of them is gone",
    "deliver.started": "the next events for a subscription are known, nothing has been sent",
    "deliver.sent": "the receiver has an event, the catalog has not recorded it",
    "deliver.recorded": "the catalog has recorded what was delivered",
    "deliver.failed": "the receiver refused an event, the catalog has not recorded it",
    "deliver.buried": "the event is a dead letter, and delivery goes on after it",
    "deliver.resent": "the receiver has a dead letter that was sent again, which is still kept",
    "adopt.promised": "what adopts a table is written down, nothing has been put into its log",
    "adopt.put": "the commit that adopts a table is in its log, the catalog has not registered the table",
    "adopt.planned_anew": "another writer had the version, and the next one is written down",
    "adopt.registered": "the table is registered, nobody has been told",
    "release.promised": "a table takes no more commits, some may not be published",
    "release.published": "all of its commits are published",
    "release.planned": "what gives it back is written down, nothing has been put into its log",
    "release.put": "the commit that gives it back is in its log, the catalog still has it as its own",
    "release.forgotten": "the catalog has let it go, nobody has been told",
    "own.promised": "a commit owner has agreed to own a table, the client has put nothing into its log",
    "own.found": "the log names the owner, the catalog has not registered the table",
    "own.registered": "the table is registered with its owner, nobody has been told",
    "own.planned": "an owned table is published, what makes it a managed one is written down and not in its log",
    "own.returning": "the last commit through the owner is written down, nothing has been put into the log",
    "forget.chosen": "it is known which events are old enough to be forgotten, all are still there",
    "forget.removed": "a batch of old events is gone",
    "audit.chosen": "it is known which records of the audit log are old enough to go, all are still there",
    "audit.removed": "a batch of them is gone",
}


def reached(step: str) -> None:
    """Costs nothing unless a fault is set."""
    if _fault is not None:
        _fault(step)


def _parse(text: str | None) -> Callable[[str], None] | None:
    if not text:
        return None
    step, _, what = text.partition(":")
    fault, _, given = what.partition(":")
    amount, _, times = given.partition(":") if fault == "hang" else ("", "", given)
    if step not in STEPS or fault not in {"kill", "fail", "hang"}:
        raise ValueError(f"{VARIABLE}={text!r} names no step and fault. Steps: {', '.join(STEPS)}.")
    left = [int(times) if times else -1]

    def act(reached_step: str) -> None:
        if reached_step != step or not left[0]:
            return
        left[0] -= 1
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "hang":
            time.sleep(float(amount or 3600))
        else:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return act


_fault = _parse(os.environ.get(VARIABLE))
