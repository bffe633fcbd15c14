"""The only place that wires ports to implementations."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.auth.issuers import Issuer, read_issuers
from tidegate.auth.rights import GrantedRights
from tidegate.auth.tokens import ADMIN, ANONYMOUS, AdminToken, Nobody, Tokens, read_or_make_token
from tidegate.credentials.local import LocalVendor
from tidegate.db.database import SqlDatabase
from tidegate.db.migrate import migrate
from tidegate.delivery.functions import ThreadedFunctions, load_functions
from tidegate.delivery.webhooks import HttpWebhooks
from tidegate.domain.access_epoch import AccessEpoch
from tidegate.domain.access_ports import Authenticator
from tidegate.domain.errors import InvalidRequest, TidegateError
from tidegate.domain.ports import Database, UnitOfWork
from tidegate.domain.ratification import Decision, Limits, Proposal
from tidegate.domain.retention import HOUR_MS, Retentions, unhurried
from tidegate.http.app import App
from tidegate.http.delta.endpoints import ENDPOINTS as DELTA_ENDPOINTS
from tidegate.http.delta.face import DELTA
from tidegate.http.endpoints import Endpoint
from tidegate.http.extensions.access import ENDPOINTS as ACCESS_ENDPOINTS
from tidegate.http.extensions.access_tokens import ENDPOINTS as TOKEN_ENDPOINTS
from tidegate.http.extensions.audit import ENDPOINTS as AUDIT_ENDPOINTS
from tidegate.http.extensions.commit_owner import ENDPOINTS as COMMIT_OWNER_ENDPOINTS
from tidegate.http.extensions.commits import ENDPOINTS as INLINE_COMMIT_ENDPOINTS
from tidegate.http.extensions.constraints import ENDPOINTS as SHOWN_CONSTRAINT_ENDPOINTS
from tidegate.http.extensions.doctor import ENDPOINTS as DOCTOR_ENDPOINTS
from tidegate.http.extensions.dropped_tables import ENDPOINTS as DROPPED_TABLE_ENDPOINTS
from tidegate.http.extensions.events import ENDPOINTS as EVENT_ENDPOINTS
from tidegate.http.extensions.face import TIDEGATE
from tidegate.http.extensions.identities import ENDPOINTS as IDENTITY_ENDPOINTS
from tidegate.http.extensions.metrics import ENDPOINTS as METRICS_ENDPOINTS
from tidegate.http.extensions.oauth import OAUTH, OAUTH_TOKEN
from tidegate.http.extensions.ownership import ENDPOINTS as OWNERSHIP_ENDPOINTS
from tidegate.http.extensions.policies import ENDPOINTS as POLICY_ENDPOINTS
from tidegate.http.extensions.prometheus import BESIDES, METRICS
from tidegate.http.extensions.status import ENDPOINTS as STATUS_ENDPOINTS
from tidegate.http.extensions.subscriptions import ENDPOINTS as SUBSCRIPTION_ENDPOINTS
from tidegate.http.extensions.timeline import ENDPOINTS as TIMELINE_ENDPOINTS
from tidegate.http.extensions.verification import ENDPOINTS as VERIFICATION_ENDPOINTS
from tidegate.http.faces import Face
from tidegate.http.failed_logins import FailedLogins
from tidegate.http.unity.catalogs import ENDPOINTS as CATALOG_ENDPOINTS
from tidegate.http.unity.commits import ENDPOINTS as COMMIT_ENDPOINTS
from tidegate.http.unity.constraints import ENDPOINTS as CONSTRAINT_ENDPOINTS
from tidegate.http.unity.credentials import ENDPOINTS as CREDENTIAL_ENDPOINTS
from tidegate.http.unity.face import UNITY
from tidegate.http.unity.metrics import ENDPOINTS as REPORT_ENDPOINTS
from tidegate.http.unity.permissions import ENDPOINTS as PERMISSION_ENDPOINTS
from tidegate.http.unity.schemas import ENDPOINTS as SCHEMA_ENDPOINTS
from tidegate.http.unity.tables import ENDPOINTS as TABLE_ENDPOINTS
from tidegate.http.unity.workspace import ENDPOINTS as WORKSPACE_ENDPOINTS
from tidegate.http.unity.workspace import WORKSPACE
from tidegate.http.watch import Watch
from tidegate.services.activity import TableCounts
from tidegate.services.audit import Audit, record_of_write
from tidegate.services.describe_commits import CommitDescriptions
from tidegate.services.environment import Access, DeliveryLimits, Environment
from tidegate.services.event_feed import EventFeed
from tidegate.services.first_start import first_start
from tidegate.services.forget_appends import forget_appends
from tidegate.services.forget_events import forget_events
from tidegate.services.heartbeat import EVERY_SECONDS, Heartbeat
from tidegate.services.one_at_a_time import OneAtATime
from tidegate.services.outcomes import OutcomeCounts
from tidegate.services.publish_queue import PublishQueue
from tidegate.services.ratify_group import ratify_group
from tidegate.services.read_audit import forget_audit
from tidegate.services.refused_files import RefusedFiles
from tidegate.services.staged_versions import StagedVersions
from tidegate.services.turns import Turns
from tidegate.settings import Settings
from tidegate.storage.delta_logs import ObjectStoreDeltaLogs
from tidegate.storage.found_tables import LocalFoundTables
from tidegate.storage.table_files import LocalTableFiles
from tidegate.telemetry.server import ServerMeasures
from tidegate.telemetry.traces import open_traces
from tidegate.worker.background import Background, Job
from tidegate.worker.cleaning import clean_logs
from tidegate.worker.deliverer import deliver_for_ever
from tidegate.worker.housekeeping import end_retentions, remove_folders
from tidegate.worker.learning import learn_put_commits
from tidegate.worker.promises import keep_promises_for_ever
from tidegate.worker.publisher import publish_for_ever, sweep

if TYPE_CHECKING:
    from tidegate.auth.jwts import Providers

ENDPOINTS: list[Endpoint] = [
    *DELTA_ENDPOINTS,
    *CATALOG_ENDPOINTS,
    *SCHEMA_ENDPOINTS,
    *TABLE_ENDPOINTS,
    *CONSTRAINT_ENDPOINTS,
    *COMMIT_ENDPOINTS,
    *REPORT_ENDPOINTS,
    *CREDENTIAL_ENDPOINTS,
    *PERMISSION_ENDPOINTS,
    *WORKSPACE_ENDPOINTS,
    *INLINE_COMMIT_ENDPOINTS,
    *TIMELINE_ENDPOINTS,
    *METRICS_ENDPOINTS,
    *DOCTOR_ENDPOINTS,
    *AUDIT_ENDPOINTS,
    *VERIFICATION_ENDPOINTS,
    *DROPPED_TABLE_ENDPOINTS,
    *COMMIT_OWNER_ENDPOINTS,
    *OWNERSHIP_ENDPOINTS,
    *POLICY_ENDPOINTS,
    *SHOWN_CONSTRAINT_ENDPOINTS,
    *STATUS_ENDPOINTS,
    *EVENT_ENDPOINTS,
    *SUBSCRIPTION_ENDPOINTS,
    *IDENTITY_ENDPOINTS,
    *TOKEN_ENDPOINTS,
    *ACCESS_ENDPOINTS,
]
FACES: list[Face] = [DELTA, UNITY, WORKSPACE, OAUTH, TIDEGATE, BESIDES]
"""The last one also answers where nothing is served."""

TOKEN_FILE = "admin.token"  # noqa: S105
COUNTED_TABLES_MAX = 10_000
SWEEP_SECONDS = 5
PUT_TOGETHER_MAX = 32
PUT_WAIT_SECONDS_MAX = 30.0
DESCRIBED_COMMITS_MAX = 10_000
FORGET_SECONDS = 300
AUDIT_SECONDS = 1
ASK_AGAIN_SECONDS_MIN = 0.1


@dataclass(frozen=True, slots=True)
class Server:
    app: App
    env: Environment


def prepare(settings: Settings) -> None:
    """What a first start makes, and later starts find: the home, the storage root, the database's schema."""
    load_functions(settings.functions)  # what cannot be loaded is told before anything is made or announced
    _issuers(settings)
    _make_folder(settings.home)
    _make_folder(Path(settings.storage_location.removeprefix("file://")))
    migrate(settings.database_url)


def build_server(settings: Settings, *, authenticator: Authenticator | None = None, url: str = "") -> Server:
    """The application on a prepared home, served at `url`. Tests may bring callers of their own."""
    # Workers answer at one address in turns: their numbers must not be taken for those of one process.
    measures = ServerMeasures(labels=(("worker", str(os.getpid())),) if settings.workers > 1 else ())
    traces = open_traces(settings.otel_endpoint, instance=str(uuid.uuid4())) if settings.otel_endpoint else None
    database = SqlDatabase(
        settings.database_url,
        _group_decider(settings),
        readers=settings.read_connections,
        group_max=settings.group_max,
        queue_max=settings.requests_in_flight_max,
        known_max=settings.cache_entries_max,
        measures=measures,
        traces=traces,
        record=partial(record_of_write, clock=now_ms),
    )
    epoch = AccessEpoch()
    providers = _providers(settings)
    delta_logs = ObjectStoreDeltaLogs(bytes_max=settings.commit_bytes_max)
    webhooks = HttpWebhooks(seconds_max=settings.delivery_seconds_max)
    functions = ThreadedFunctions(load_functions(settings.functions), seconds_max=settings.delivery_seconds_max)
    env = Environment(
        database=database,
        authorizer=GrantedRights(
            frozenset({ADMIN, ANONYMOUS}),
            database,
            epoch,
            known_max=settings.access_cache_entries_max,
            seconds_max=settings.access_cache_ms / 1000,
        ),
        access=Access(
            epoch=epoch,
            identities_max=settings.identities_max,
            tokens_max=settings.tokens_max,
            token_hours_max=settings.token_hours_max,
            machine_token_seconds=settings.machine_token_seconds,
            machine_tokens_max=settings.machine_tokens_max,
        ),
        delta_logs=delta_logs,
        table_files=LocalTableFiles(),
        found_tables=LocalFoundTables(),
        vendor=LocalVendor(),
        outcomes=OutcomeCounts(now_ms, tables_max=COUNTED_TABLES_MAX),
        activity=TableCounts(tables_max=COUNTED_TABLES_MAX),
        turns=Turns(),
        publishing=PublishQueue(
            time.monotonic,
            delay_seconds=settings.publish_after_ms / 1000,
            tables_max=settings.cache_entries_max if settings.publishing == "on" else 0,
        ),
        one_at_a_time=OneAtATime(together_max=PUT_TOGETHER_MAX, seconds_max=PUT_WAIT_SECONDS_MAX),
        refused=RefusedFiles(tables_max=COUNTED_TABLES_MAX),
        staged_versions=StagedVersions(tables_max=settings.cache_entries_max),
        audit=Audit(
            now_ms,
            measures.audit_lost,
            waiting_max=settings.audit_waiting_max,
            reads=settings.audit_reads == "on",
            lines_to=settings.audit_lines,
        ),
        measures=measures,
        traces=traces,
        feed=EventFeed(),
        descriptions=CommitDescriptions(delta_logs, remembered_max=DESCRIBED_COMMITS_MAX),
        webhooks=webhooks,
        functions=functions,
        delivery=DeliveryLimits(
            attempts_max=settings.delivery_attempts_max,
            backoff_ms=settings.delivery_backoff_ms,
            dead_letters_max=settings.dead_letters_max,
            subscriptions_max=settings.subscriptions_max,
        ),
        deliveries=asyncio.Event(),
        clock=now_ms,
        patient_clock=unhurried(now_ms, _rising_ms),
        retentions=Retentions(
            dropped_ms=settings.dropped_retention_hours * HOUR_MS,
            staging_ms=settings.staging_retention_hours * HOUR_MS,
            staged_files_ms=settings.staged_files_retention_hours * HOUR_MS,
        ),
        new_id=lambda: str(uuid.uuid4()),
        storage_root=settings.storage_location,
        staging_tables_max=settings.staging_tables_max,
        page_size_max=settings.page_size_max,
        commits_page_size_max=settings.commits_page_size_max,
        metrics_history_max=settings.metrics_history_max,
        grants_max=settings.grants_max,
        inline_bytes_max=settings.inline_bytes_max,
    )

    heartbeat = Heartbeat(env, url=url, clock=time.monotonic)
    beating = Job("heartbeat", heartbeat.beat, every_seconds=EVERY_SECONDS)
    background = Background([*_jobs(env, settings), beating], measures, traces)

    async def start() -> None:
        database.start()
        await first_start(env, owner=ADMIN.name)
        with contextlib.suppress(TidegateError):  # the next one comes soon
            await heartbeat.beat()
        background.start()

    async def stop() -> None:
        await background.stop()
        await heartbeat.leave()
        with contextlib.suppress(TidegateError, OSError):
            await env.audit.flush(database)
        await database.finish()
        await webhooks.close()
        if providers is not None:
            await providers.close()
        database.stop()
        if traces is not None:
            traces.close()

    app = App(
        env,
        authenticator or build_authenticator(settings, database, epoch, providers),
        ENDPOINTS,
        FACES,
        body_bytes_max=settings.body_bytes_max,
        in_flight_max=settings.requests_in_flight_max,
        patient_max=settings.event_readers_max,
        on_start=start,
        on_stop=stop,
        besides=[METRICS, OAUTH_TOKEN],
        watch=Watch(measures, lines=settings.log_requests, traces=traces),
        failed_logins=FailedLogins(
            seconds_max=settings.failed_login_ms_max / 1000, waiting_max=settings.failed_logins_waiting_max
        ),
        ask_again_seconds=max(settings.access_cache_ms / 1000, ASK_AGAIN_SECONDS_MIN),
    )
    return Server(app, env)


def _jobs(env: Environment, settings: Settings) -> list[Job]:
    kept_ms = settings.events_retention_hours * 3_600_000
    audit_ms = settings.audit_retention_hours * HOUR_MS
    jobs = [
        Job("following events", lambda: env.feed.follow(env.database)),
        Job("delivering events", lambda: deliver_for_ever(env)),
        Job("forgetting events", lambda: forget_events(env, kept_ms=kept_ms), every_seconds=FORGET_SECONDS),
        Job("writing the audit log", lambda: env.audit.flush(env.database), every_seconds=AUDIT_SECONDS),
        Job("forgetting audit records", lambda: forget_audit(env, kept_ms=audit_ms), every_seconds=FORGET_SECONDS),
        Job("forgetting appends", lambda: forget_appends(env), every_seconds=FORGET_SECONDS),
    ]
    if settings.publishing == "on":
        jobs += [
            Job("publishing", lambda: publish_for_ever(env)),
            Job("looking for unpublished commits", lambda: sweep(env), every_seconds=SWEEP_SECONDS),
        ]
    pause = settings.housekeeping_seconds
    jobs += [
        Job("learning commits", lambda: learn_put_commits(env), every_seconds=settings.learning_seconds),
        Job("keeping promises", lambda: keep_promises_for_ever(env)),
        Job("ending retentions", lambda: end_retentions(env), every_seconds=pause),
        Job("cleaning logs", lambda: clean_logs(env), every_seconds=settings.log_cleaning_seconds),
        Job("removing folders", lambda: remove_folders(env), every_seconds=pause),
    ]
    return jobs


def build_authenticator(
    settings: Settings, database: Database, epoch: AccessEpoch, providers: Providers | None = None
) -> Authenticator:
    if settings.auth == "none":
        return Nobody()
    return Tokens(
        AdminToken(admin_token(settings)),
        database,
        epoch,
        now_ms,
        known_max=settings.access_cache_entries_max,
        seconds_max=settings.access_cache_ms / 1000,
        providers=providers,
    )


def _providers(settings: Settings) -> Providers | None:
    issuers = _issuers(settings)
    if not issuers:
        return None
    # Who trusts no identity provider does not wait for what reads their tokens.
    from tidegate.auth.jwts import Providers

    return Providers(issuers)


def _issuers(settings: Settings) -> list[Issuer]:
    return read_issuers(Path(settings.oidc).expanduser()) if settings.oidc else []


def admin_token(settings: Settings) -> str:
    """Made at the first start."""
    return read_or_make_token(settings.home / TOKEN_FILE)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _rising_ms() -> int:
    """Counts on while the machine sleeps, where the system can tell."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


def _group_decider(settings: Settings):
    limits = Limits(unpublished_max=settings.unpublished_commits_max)

    def decide_group(uow: UnitOfWork, proposals: Sequence[Proposal]) -> list[Decision]:
        return ratify_group(uow, proposals, limits=limits, clock=now_ms)

    return decide_group


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(f"The folder {folder} cannot be made: {error.strerror}.") from None
