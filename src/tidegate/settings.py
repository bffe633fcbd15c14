"""Every setting: its name, its type, its default and what it is for.

A value comes from the first of these that has one:

    1. a flag on the command line             --port 8081
    2. an environment variable                TIDEGATE_PORT=8081
    3. the TOML file (config)                 port = 8081
    4. the default
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.locations import normalize_location

DEFAULT_HOME = Path("~/.tidegate")
_MIB = 1024 * 1024


def _setting(default: Any, help: str, *, low: int | None = None, high: int | None = None, secret: bool = False) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high, "secret": secret})


@dataclass(frozen=True, slots=True)
class Settings:
    home: Path = _setting(DEFAULT_HOME, "Folder of the embedded database, the admin token and local tables.")
    config: Path = _setting(Path(), "TOML file with settings. Default: tidegate.toml in home, if it is there.")
    host: str = _setting("127.0.0.1", "Address to listen on.")
    port: int = _setting(8080, "Port to listen on; 0 takes a free one.", low=0, high=65535)
    database: str = _setting(
        "", "Database URL, sqlite:////file or postgresql://user@host/name. Default: catalog.db in home.", secret=True
    )
    storage_root: str = _setting("", "Location of managed tables. Default: the folder tables in home.")
    auth: str = _setting("token", "token: a bearer token on every call. none: no check, on loopback addresses only.")
    oidc: str = _setting(
        "", "TOML file that names the identity providers whose tokens are taken; see docs/access.md. Default: none."
    )
    tls_certificate: str = _setting("", "File with the certificate, and its chain, to serve https with. Needs tls_key.")
    tls_key: str = _setting("", "File with the private key of tls_certificate.")
    workers: int = _setting(
        1, "Processes that serve; more than one needs PostgreSQL, and uses more than one core.", low=1, high=64
    )
    log_level: str = _setting("info", "How much to log: debug, info, warning or error.")
    log_format: str = _setting("text", "text: lines for people. json: one JSON object on each line, for programs.")
    log_requests: str = _setting(
        "failures", "Which requests get a line: off, failures (neither 404 nor 409, which are everyday answers) or all."
    )
    otel_endpoint: str = _setting(
        "", "Address of an OpenTelemetry collector (OTLP over HTTP), to which traces are sent. Needs tidegate[otel]."
    )
    unpublished_commits_max: int = _setting(
        1000, "Ratified commits of one table that may wait to be published; beyond it commits get a 429.", low=1
    )
    publishing: str = _setting(
        "on", "on: the server publishes what writers leave unpublished. off: writers alone publish."
    )
    publish_after_ms: int = _setting(
        1000,
        "How long a ratified commit may wait for its writer to publish it before the server does.",
        low=0,
        high=3_600_000,
    )
    staging_tables_max: int = _setting(
        10_000, "Staging tables that may wait to be finished; beyond it staging gets a 429.", low=1
    )
    dropped_retention_hours: int = _setting(
        168, "How long a dropped table can be restored; then it is purged, files and all.", low=0, high=1_000_000
    )
    staging_retention_hours: int = _setting(
        24,
        "How long a staging table may wait to be finished; then it expires, and its files go.",
        low=0,
        high=1_000_000,
    )
    staged_files_retention_hours: int = _setting(
        24,
        "How old a staged commit file must be before it goes, if it lost its race or its version is published.",
        low=0,
        high=1_000_000,
    )
    housekeeping_seconds: int = _setting(
        60, "How often the server looks for tables whose retention is over.", low=1, high=86_400
    )
    log_cleaning_seconds: int = _setting(
        21_600, "How often the server looks through the logs of tables for files that nobody needs.", low=1, high=86_400
    )
    learning_seconds: int = _setting(
        10,
        "How often the server looks for commits that others put into the logs of tables with "
        "tidegate.commits=put-if-absent.",
        low=1,
        high=86_400,
    )
    body_bytes_max: int = _setting(8 * _MIB, "Largest request body; beyond it requests get a 413.", low=1024)
    commit_bytes_max: int = _setting(
        64 * _MIB, "Largest commit file that the server reads, such as version 0; a larger one is refused.", low=1024
    )
    inline_bytes_max: int = _setting(
        64 * 1024,
        "Largest commit that may be sent with its content instead of as a staged file; 0: none.",
        low=0,
        high=_MIB,
    )
    requests_in_flight_max: int = _setting(1000, "Requests worked on at once; beyond it they get a 429.", low=1)
    request_seconds_max: int = _setting(
        60,
        "How long a request may take to arrive whole, head and body; then its connection is closed.",
        low=1,
        high=3600,
    )
    failed_login_ms_max: int = _setting(
        1000,
        "How long the refusal of a wrong token waits at most, if many came before it; 0: never.",
        low=0,
        high=60_000,
    )
    failed_logins_waiting_max: int = _setting(
        1000, "Refusals that wait so at once; beyond it they are given without a wait.", low=0, high=100_000
    )
    event_readers_max: int = _setting(
        200, "Requests that wait for events, and streams of events, at once; beyond it they get a 429.", low=1
    )
    events_retention_hours: int = _setting(
        168,
        "How long events are kept; four times as long for a subscription that has not got them.",
        low=1,
        high=87_600,
    )
    audit_retention_hours: int = _setting(2160, "How long records of the audit log are kept.", low=1, high=876_000)
    audit_reads: str = _setting(
        "off", "on: reads that are allowed are in the audit log, too; those that are refused always are."
    )
    audit_lines: str = _setting(
        "", "Where the audit log also goes as JSON lines: stdout, or a file that is appended to. Default: nowhere."
    )
    audit_waiting_max: int = _setting(
        10_000,
        "Refusals, and reads, that may wait for a second to be written to the audit log; beyond it they are left out, "
        "and counted.",
        low=1,
        high=1_000_000,
    )
    subscriptions_max: int = _setting(100, "Subscriptions; beyond it creating one gets a 429.", low=1, high=1000)
    delivery_attempts_max: int = _setting(
        10, "Attempts to deliver an event to a subscription; then it is a dead letter.", low=1, high=1000
    )
    delivery_backoff_ms: int = _setting(
        1000, "Pause after a first failed attempt; each further one doubles it, up to 5 minutes.", low=1, high=300_000
    )
    delivery_seconds_max: int = _setting(
        10, "How long a webhook may take to answer, and a function to return.", low=1, high=3600
    )
    dead_letters_max: int = _setting(
        1000, "Dead letters of one subscription; with so many it is paused.", low=1, high=1_000_000
    )
    functions: str = _setting(
        "", "Functions that subscriptions may name, loaded at the start: name=module:callable, separated by commas."
    )
    group_max: int = _setting(256, "Commits that one database transaction takes at most.", low=1, high=10_000)
    page_size_max: int = _setting(1000, "Objects on one page of a listing, at most.", low=1, high=100_000)
    cache_entries_max: int = _setting(
        100_000, "Tables, plus their unpublished commits, that are kept in memory, about 500 bytes each.", low=1
    )
    commits_page_size_max: int = _setting(
        1000,
        "Commits in one answer of the Unity Catalog API. For clients that never ask for more: unpublished_commits_max.",
        low=1,
        high=100_000,
    )
    metrics_history_max: int = _setting(
        100, "Commit reports that are kept of one table; the oldest versions are forgotten.", low=1, high=10_000
    )
    grants_max: int = _setting(
        10_000, "Privileges that may be granted on one object; beyond it granting gets a 429.", low=1, high=1_000_000
    )
    identities_max: int = _setting(
        10_000, "Users, service accounts and groups; beyond it creating one gets a 429.", low=1, high=1_000_000
    )
    tokens_max: int = _setting(
        100, "Tokens that one user or service account may have; beyond it making one gets a 429.", low=1, high=10_000
    )
    token_hours_max: int = _setting(8760, "How long a token may live.", low=1, high=87_600)
    machine_token_seconds: int = _setting(
        3600, "How long a token lives that a service account gets for its client secret.", low=60, high=86_400
    )
    machine_tokens_max: int = _setting(
        10_000,
        "Such tokens of one service account at once; beyond it asking for one gets a 429.",
        low=1,
        high=1_000_000,
    )
    access_cache_ms: int = _setting(
        2000,
        "How long a server goes by what it knows of tokens and rights, while another server may have changed them.",
        low=0,
        high=60_000,
    )
    access_cache_entries_max: int = _setting(
        10_000, "Tokens that are kept in memory, and answers about rights.", low=1, high=1_000_000
    )
    read_connections: int = _setting(4, "Database connections, and threads, that read.", low=1, high=256)
    shutdown_seconds_max: int = _setting(30, "How long a stopping server waits for requests in flight.", low=1)

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.home}/catalog.db"

    @property
    def storage_location(self) -> str:
        return normalize_location(self.storage_root or f"file://{self.home}/tables")


@dataclass(frozen=True, slots=True)
class Loaded:
    settings: Settings
    sources: Mapping[str, str]
    """For each setting, where its value came from."""


def load_settings(flags: Mapping[str, Any], environ: Mapping[str, str]) -> Loaded:
    """`flags` holds what was given on the command line; None means not given. Raises InvalidRequest."""
    given: dict[str, tuple[Any, str]] = {}
    for name in names():
        variable = variable_of(name)
        if flags.get(name) is not None:
            given[name] = flags[name], f"flag {flag_of(name)}"
        elif variable in environ:
            given[name] = environ[variable], f"environment variable {variable}"
    file = _config_file(given)
    if file is not None:
        for name, value in _read_toml(file).items():
            given.setdefault(name, (value, f"file {file}"))
    values = {name: _convert(name, value) for name, (value, _) in given.items()}
    values["home"] = Path(values.get("home", DEFAULT_HOME)).expanduser().absolute()
    settings = Settings(**values)
    _check(settings)
    return Loaded(settings, {name: given[name][1] if name in given else "default" for name in names()})


def names() -> list[str]:
    return [described.name for described in dataclasses.fields(Settings)]


def variable_of(name: str) -> str:
    return f"TIDEGATE_{name.upper()}"


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def help_of(name: str) -> str:
    return _field(name).metadata["help"]


def shown(settings: Settings, name: str) -> str:
    """The value as it may be shown to anybody: without passwords."""
    value = str(settings.database_url if name == "database" else getattr(settings, name))
    if name == "storage_root":
        value = settings.storage_location
    if _field(name).metadata["secret"] and "@" in value:
        scheme, _, rest = value.partition("://")
        user, _, host = rest.rpartition("@")
        return f"{scheme}://{user.partition(':')[0]}:***@{host}" if ":" in user else value
    return "" if name == "config" and value == "." else value


def _field(name: str) -> dataclasses.Field[Any]:
    return next(described for described in dataclasses.fields(Settings) if described.name == name)


def _config_file(given: Mapping[str, tuple[Any, str]]) -> Path | None:
    if "config" in given:
        return Path(given["config"][0]).expanduser()
    home = Path(given["home"][0]) if "home" in given else DEFAULT_HOME
    usual = home.expanduser() / "tidegate.toml"
    return usual if usual.is_file() else None


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text())
    except OSError as error:
        raise InvalidRequest(f"The settings file {file} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The settings file {file} is not TOML: {error}.") from None
    for name in values:
        if name not in names() or name == "config":
            near = difflib.get_close_matches(name, names(), n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InvalidRequest(f"{file} holds {name!r}, which is not a setting.{hint}")
    return values


def _convert(name: str, value: Any) -> Any:
    wanted = get_type_hints(Settings)[name]
    if wanted is int:
        return _whole_number(name, value)
    if not isinstance(value, str | Path):
        raise InvalidRequest(f"The setting {name} is a text, not {value!r}.")
    return wanted(value)


def _whole_number(name: str, value: Any) -> int:
    try:
        number = int(str(value))
    except ValueError:
        raise InvalidRequest(f"The setting {name} is a whole number, not {value!r}.") from None
    low, high = _field(name).metadata["low"], _field(name).metadata["high"]
    if (low is not None and number < low) or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InvalidRequest(f"The setting {name} must be {allowed}, not {number}.")
    return number


def _check(settings: Settings) -> None:
    if settings.auth not in {"token", "none"}:
        raise InvalidRequest(f"The setting auth is 'token' or 'none', not {settings.auth!r}.")
    if settings.audit_reads not in {"on", "off"}:
        raise InvalidRequest(f"The setting audit_reads is 'on' or 'off', not {settings.audit_reads!r}.")
    if settings.publishing not in {"on", "off"}:
        raise InvalidRequest(f"The setting publishing is 'on' or 'off', not {settings.publishing!r}.")
    if settings.log_level not in {"debug", "info", "warning", "error"}:
        raise InvalidRequest(f"log_level is debug, info, warning or error, not {settings.log_level!r}.")
    if settings.log_format not in {"text", "json"}:
        raise InvalidRequest(f"log_format is text or json, not {settings.log_format!r}.")
    if settings.log_requests not in {"off", "failures", "all"}:
        raise InvalidRequest(f"log_requests is off, failures or all, not {settings.log_requests!r}.")
    if settings.otel_endpoint and not settings.otel_endpoint.startswith(("http://", "https://")):
        raise InvalidRequest(f"otel_endpoint is an address such as http://host:4318, not {settings.otel_endpoint!r}.")
    if settings.auth == "none" and not is_loopback(settings.host):
        raise InvalidRequest(
            f"Without authentication the server listens on loopback addresses only, not on {settings.host}. "
            "Use --host 127.0.0.1, or --auth token."
        )
    if not settings.storage_location.startswith("file://"):
        raise InvalidRequest(f"storage_root is {settings.storage_location}; only file:// locations are supported.")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
