"""Every number that a server keeps of itself. What servers share is in `services/shared_gauges.py`."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from time import perf_counter

from tidegate import __version__
from tidegate.telemetry.measures import SECONDS, SIZES, Labels, Measures, Number, Numbers

_STATM = Path("/proc/self/statm")


class ServerMeasures:
    """Numbers that are counted with every commit are at hand as they are; the others by their labels."""

    def __init__(self, labels: Labels = ()) -> None:
        """`labels`: those of every number, where several processes answer at one address."""
        self.labels = labels
        all = self.all = Measures()
        self.requests = all.counter(
            "tidegate_requests_total", "Requests answered, by API, endpoint and status.", "face", "endpoint", "status"
        )
        self.latencies = all.histogram(
            "tidegate_request_seconds",
            "How long requests took, from the first header to the answer.",
            SECONDS,
            "endpoint",
        )
        self.errors = all.counter("tidegate_errors_total", "Requests that were refused or failed, by kind.", "kind")

        outcomes = all.counter(
            "tidegate_proposals_total",
            "Changes of tables that were proposed, by outcome: ratified (a commit), updated (metadata or a report), "
            "replay (had happened before), conflict (another one won), rejected.",
            "outcome",
        )
        self.ratified, self.updated = outcomes.at("ratified"), outcomes.at("updated")
        self.replays, self.conflicts = outcomes.at("replay"), outcomes.at("conflict")
        self.rejected = outcomes.at("rejected")
        self.rejections = all.counter("tidegate_rejections_total", "Proposals that a rule refused, by kind.", "kind")

        self.group_sizes = all.histogram(
            "tidegate_group_size", "Proposals that one database transaction took.", SIZES
        ).at()
        transactions = all.counter(
            "tidegate_transactions_total",
            "Transactions that write, by kind (group, single) and way: loop (all on the event loop), sync (a thread "
            "waited for the disk), thread (all on the thread: the slow way).",
            "kind",
            "way",
        )
        self.on_loop, self.on_sync = transactions.at("group", "loop"), transactions.at("group", "sync")
        self.on_thread, self.singles = transactions.at("group", "thread"), transactions.at("single", "thread")
        self.failed_groups = all.counter(
            "tidegate_failed_groups_total", "Transactions of proposals that failed: their outcome is unknown."
        ).at()

        self.audit_lost = all.counter(
            "tidegate_audit_lost_total", "Refusals and reads that did not fit, and are not in the audit log."
        ).at()
        self.database_up = all.gauge("tidegate_database_up", "Whether this server can read its database.").at()
        self.publishing = all.counter(
            "tidegate_publishing_total",
            "Tables that the publisher looked at, by outcome: done, failed (tried again), blocked (an alarm stands).",
            "outcome",
        )
        self.failing_tables = all.gauge(
            "tidegate_publishing_failing_tables", "Tables whose publishing failed and waits to be tried again."
        ).at()
        self.published = all.counter("tidegate_published_commits_total", "Commits published by this server.").at()

        self.learned = all.counter(
            "tidegate_learned_commits_total",
            "Commits that this server found in the logs of tables with tidegate.commits=put-if-absent, put by others.",
        ).at()

        self.deliveries = all.counter(
            "tidegate_deliveries_total",
            "Events sent to subscribers by this server, by outcome: delivered, failed (tried again), buried (a dead "
            "letter).",
            "outcome",
        )
        self.removed_files = all.counter(
            "tidegate_removed_files_total",
            "Files removed by this server, by reason: purge (dropped tables), expire (staging tables), clean (logs).",
            "reason",
        )

        self.job_runs = all.counter("tidegate_job_runs_total", "Runs of background jobs that were begun.", "job")
        self.job_failures = all.counter("tidegate_job_failures_total", "Runs of background jobs that failed.", "job")
        self.job_seconds = all.counter("tidegate_job_seconds_total", "Time that background jobs took.", "job")
        self.job_successes = all.gauge(
            "tidegate_job_last_success_timestamp_seconds", "When a background job last ended well.", "job"
        )
        _describe_process(all)


class EndpointMeasures:
    """The numbers of one endpoint, at hand for every answer."""

    __slots__ = ("_endpoint", "_face", "_observe", "_requests", "_statuses")

    def __init__(self, measures: ServerMeasures, face: str, endpoint: str) -> None:
        self._face = face
        self._endpoint = endpoint
        self._requests: Numbers = measures.requests
        self._observe = measures.latencies.at(endpoint).observe
        self._statuses: dict[int, Number] = {}

    def answered(self, status: int, started: float) -> float:
        """How many seconds it took."""
        number = self._statuses.get(status)
        if number is None:
            number = self._statuses[status] = self._requests.at(self._face, self._endpoint, str(status))
        number.value += 1
        seconds = perf_counter() - started
        self._observe(seconds)
        return seconds


def _describe_process(all: Measures) -> None:
    started = time.time()
    info = all.gauge("tidegate_info", "What runs here; always 1.", "version", "python")
    info.at(__version__, platform.python_version()).value = 1
    all.gauge_of("process_start_time_seconds", "When this process began to serve.", lambda: started)
    all.gauge_of("process_cpu_seconds_total", "Processor time of this process.", time.process_time, kind="counter")
    all.gauge_of("process_resident_memory_bytes", "Memory of this process; 0 where it is not known.", _resident)


def _resident() -> float:
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
