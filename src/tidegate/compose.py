"""The only place that wires ports to implementations."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.auth.rights import AdminsOnly
from tidegate.auth.tokens import ADMIN, ANONYMOUS, AdminToken, Nobody, read_or_make_token
from tidegate.credentials.local import LocalVendor
from tidegate.db.database import SqlDatabase
from tidegate.db.migrate import migrate
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.ports import Authenticator, UnitOfWork
from tidegate.domain.ratification import Decision, Limits, Proposal
from tidegate.http.app import App
from tidegate.http.delta.endpoints import ENDPOINTS as DELTA_ENDPOINTS
from tidegate.http.delta.face import DELTA
from tidegate.http.endpoints import Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.http.extensions.metrics import ENDPOINTS as METRICS_ENDPOINTS
from tidegate.http.extensions.timeline import ENDPOINTS as TIMELINE_ENDPOINTS
from tidegate.http.faces import Face
from tidegate.http.unity.catalogs import ENDPOINTS as CATALOG_ENDPOINTS
from tidegate.http.unity.commits import ENDPOINTS as COMMIT_ENDPOINTS
from tidegate.http.unity.credentials import ENDPOINTS as CREDENTIAL_ENDPOINTS
from tidegate.http.unity.face import UNITY
from tidegate.http.unity.metrics import ENDPOINTS as REPORT_ENDPOINTS
from tidegate.http.unity.permissions import ENDPOINTS as PERMISSION_ENDPOINTS
from tidegate.http.unity.schemas import ENDPOINTS as SCHEMA_ENDPOINTS
from tidegate.http.unity.tables import ENDPOINTS as TABLE_ENDPOINTS
from tidegate.http.unity.workspace import ENDPOINTS as WORKSPACE_ENDPOINTS
from tidegate.http.unity.workspace import WORKSPACE
from tidegate.services.environment import Environment
from tidegate.services.first_start import first_start
from tidegate.services.outcomes import OutcomeCounts
from tidegate.services.turns import Turns
from tidegate.services.update_table import ratify_group
from tidegate.settings import Settings
from tidegate.storage.delta_logs import ObjectStoreDeltaLogs

ENDPOINTS: list[Endpoint] = [
    *DELTA_ENDPOINTS,
    *CATALOG_ENDPOINTS,
    *SCHEMA_ENDPOINTS,
    *TABLE_ENDPOINTS,
    *COMMIT_ENDPOINTS,
    *REPORT_ENDPOINTS,
    *CREDENTIAL_ENDPOINTS,
    *PERMISSION_ENDPOINTS,
    *WORKSPACE_ENDPOINTS,
    *TIMELINE_ENDPOINTS,
    *METRICS_ENDPOINTS,
]
FACES: list[Face] = [DELTA, UNITY, WORKSPACE, TIDEGATE]
"""The last one also answers where nothing is served."""

TOKEN_FILE = "admin.token"  # noqa: S105
COUNTED_TABLES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Server:
    app: App
    env: Environment


def prepare(settings: Settings) -> None:
    """What a first start makes, and later starts find: the home, the storage root, the database's schema."""
    _make_folder(settings.home)
    _make_folder(Path(settings.storage_location.removeprefix("file://")))
    migrate(settings.database_url)


def build_server(settings: Settings, *, authenticator: Authenticator | None = None) -> Server:
    """The application on a prepared home. Tests may bring callers of their own."""
    database = SqlDatabase(
        settings.database_url,
        _group_decider(settings),
        readers=settings.read_connections,
        group_max=settings.group_max,
        queue_max=settings.requests_in_flight_max,
        known_max=settings.cache_entries_max,
    )
    env = Environment(
        database=database,
        authorizer=AdminsOnly(frozenset({ADMIN, ANONYMOUS})),
        delta_logs=ObjectStoreDeltaLogs(bytes_max=settings.commit_bytes_max),
        vendor=LocalVendor(),
        outcomes=OutcomeCounts(now_ms, tables_max=COUNTED_TABLES_MAX),
        turns=Turns(),
        clock=now_ms,
        new_id=lambda: str(uuid.uuid4()),
        storage_root=settings.storage_location,
        staging_tables_max=settings.staging_tables_max,
        page_size_max=settings.page_size_max,
        commits_page_size_max=settings.commits_page_size_max,
        metrics_history_max=settings.metrics_history_max,
        grants_max=settings.grants_max,
    )

    async def start() -> None:
        database.start()
        await first_start(env, owner=ADMIN.name)

    async def stop() -> None:
        database.stop()

    app = App(
        env,
        authenticator or build_authenticator(settings),
        ENDPOINTS,
        FACES,
        body_bytes_max=settings.body_bytes_max,
        in_flight_max=settings.requests_in_flight_max,
        on_start=start,
        on_stop=stop,
    )
    return Server(app, env)


def build_authenticator(settings: Settings) -> Authenticator:
    if settings.auth == "none":
        return Nobody()
    return AdminToken(read_or_make_token(settings.home / TOKEN_FILE))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


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
