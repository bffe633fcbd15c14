"""`tidegate serve`: the server, in this process."""

from __future__ import annotations

import gc
import signal
import socket
import ssl
import sys
from types import FrameType
from urllib.parse import unquote, urlsplit

import typer
import uvicorn

from tidegate.cli import flags
from tidegate.cli.workers import run_workers
from tidegate.compose import TOKEN_FILE, admin_token, build_server, prepare
from tidegate.domain.errors import InvalidRequest, TidegateError
from tidegate.http.serving import server_config
from tidegate.settings import Settings
from tidegate.telemetry.logs import log_to_stderr
from tidegate.telemetry.traces import require_packages

SWITCH_SECONDS = 0.0001
"""How long a thread may keep the interpreter while another wants it. The usual 5 ms are longer than a commit takes: a
thread that has an answer from PostgreSQL would wait that long to hand it over.
"""


def serve(
    home: flags.Home = None,
    config: flags.Config = None,
    host: flags.Host = None,
    port: flags.Port = None,
    database: flags.Database = None,
    storage_root: flags.StorageRoot = None,
    auth: flags.Auth = None,
    tls_certificate: flags.TlsCertificate = None,
    tls_key: flags.TlsKey = None,
    workers: flags.Workers = None,
    log_level: flags.LogLevel = None,
) -> None:
    """Serve the catalog until it is told to stop.

    The first start makes everything: the database, the catalog main with the schema default, the folder for
    managed tables and the admin token. A stop by SIGTERM or Ctrl-C finishes what was accepted.

    More settings can be given by environment variables and in a TOML file: see `tidegate settings`.
    """
    loaded = flags.load_or_exit(
        home=home,
        config=config,
        host=host,
        port=port,
        database=database,
        storage_root=storage_root,
        auth=auth,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        workers=workers,
        log_level=log_level,
    )
    try:
        run(loaded.settings)
    except TidegateError as error:
        flags.fail(error)


def run(settings: Settings) -> None:
    if settings.workers > 1 and settings.database_url.startswith("sqlite"):
        raise InvalidRequest("Several workers need PostgreSQL; SQLite has one writer. Use --workers 1, or --database.")
    _start_logging(settings)
    if settings.otel_endpoint:
        require_packages()
    _check_tls(settings)
    prepare(settings)
    if settings.auth == "token":
        admin_token(settings)  # the token is there before anybody is told where to find it
    listening = _listen(settings)
    _announce(settings, _url(settings, listening))
    if settings.workers == 1:
        serve_on(settings, listening)
    else:
        run_workers(settings, listening, serve_on)


def serve_on(settings: Settings, listening: socket.socket) -> None:
    """One whole server, in this process."""
    _start_logging(settings)
    server = build_server(settings, url=_url(settings, listening))
    for asked_to_stop in (signal.SIGTERM, signal.SIGINT):
        # uvicorn finishes what was accepted, then raises the signal again: a stop that was asked for is no failure.
        signal.signal(asked_to_stop, _exit)
    _tame_the_garbage_collector()
    sys.setswitchinterval(SWITCH_SECONDS)
    config = server_config(
        server.app,
        shutdown_seconds_max=settings.shutdown_seconds_max,
        request_seconds_max=settings.request_seconds_max,
        tls_certificate=settings.tls_certificate,
        tls_key=settings.tls_key,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _check_tls(settings: Settings) -> None:
    """What cannot be served with is told before anything is made or announced."""
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise InvalidRequest("TLS needs both tls_certificate and tls_key.")
    if settings.tls_certificate:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                settings.tls_certificate, settings.tls_key
            )
        except OSError as error:  # an error of TLS is one too
            raise InvalidRequest(f"The certificate or its key cannot be used: {error}.") from None


def _tame_the_garbage_collector() -> None:
    """What was made until now stays; requests leave next to no cycles behind. Looked for as often as by default, they
    would cost a tenth of every request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _start_logging(settings: Settings) -> None:
    log_to_stderr(level=settings.log_level, format=settings.log_format, secrets=_secrets(settings))


def _secrets(settings: Settings) -> list[str]:
    """What no log line may hold: the token, once there is one, and the database's password as it may be spelled."""
    token = settings.home / TOKEN_FILE
    password = urlsplit(settings.database_url).password or ""
    return [token.read_text().strip() if token.is_file() else "", password, unquote(password)]


def _exit(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _listen(settings: Settings) -> socket.socket:
    """The socket is opened before anything is announced: who reads the address can connect."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        raise InvalidRequest(f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}.") from None
    listening.listen(2048)
    listening.set_inheritable(True)
    return listening


def _url(settings: Settings, listening: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "https" if settings.tls_certificate else "http"
    return f"{scheme}://{host}:{listening.getsockname()[1]}"


def _announce(settings: Settings, url: str) -> None:
    typer.echo(f"Tidegate serves {url}")
    if settings.auth == "token":
        typer.echo(f"The admin token is in {settings.home / TOKEN_FILE}")
    else:
        typer.echo("Anybody on this machine may do anything: authentication is off.")
