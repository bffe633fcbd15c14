"""Settings: four sources in their order, clear refusals, and nothing secret shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.domain.errors import InvalidRequest
from tidegate.settings import Settings, flag_of, load_settings, names, shown, variable_of

REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"


def test_a_flag_wins_over_the_environment_that_over_the_file_and_that_over_the_default(tmp_path: Path) -> None:
    (tmp_path / "tidegate.toml").write_text('port = 1\nhost = "localhost"\nauth = "none"\n')
    environ = {"TIDEGATE_PORT": "2", "TIDEGATE_HOST": "127.0.0.2"}
    loaded = load_settings({"home": tmp_path, "port": 3}, environ)
    assert (loaded.settings.port, loaded.settings.host, loaded.settings.auth) == (3, "127.0.0.2", "none")
    assert loaded.sources["port"] == "flag --port"
    assert loaded.sources["host"] == "environment variable TIDEGATE_HOST"
    assert loaded.sources["auth"] == f"file {tmp_path / 'tidegate.toml'}"
    assert loaded.sources["group_max"] == "default"


OTHERS = {
    "database": "sqlite:////x.db",
    "host": "::1",
    "publishing": "off",
    "audit_reads": "on",
    "log_format": "json",
    "log_requests": "all",
    "otel_endpoint": "http://localhost:4318",
}
"""Values that are not the default, of settings that do not take every text."""


@pytest.mark.parametrize("name", [name for name in names() if name not in {"home", "config", "auth", "log_level"}])
def test_every_setting_can_be_given_in_the_environment_and_in_a_file(name: str, tmp_path: Path) -> None:
    value = getattr(Settings(), name)
    other = value + 1 if isinstance(value, int) else OTHERS.get(name, "file:///x")
    by_variable = load_settings({"home": tmp_path}, {variable_of(name): str(other)})
    assert getattr(by_variable.settings, name) == other
    file = tmp_path / "given.toml"
    file.write_text(f"{name} = {other!r}\n")
    by_file = load_settings({"home": tmp_path}, {"TIDEGATE_CONFIG": str(file)})
    assert getattr(by_file.settings, name) == other
    assert by_file.sources[name] == f"file {file}"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"port": 70000}, "port"),
        ({"port": "eighty"}, "whole number"),
        ({"auth": "maybe"}, "'token' or 'none'"),
        ({"auth": "none", "host": "0.0.0.0"}, "loopback"),
        ({"auth": "none", "host": "example.org"}, "loopback"),
        ({"log_level": "loud"}, "log_level"),
        ({"publishing": "sometimes"}, "'on' or 'off'"),
        ({"audit_reads": "sometimes"}, "'on' or 'off'"),
        ({"log_format": "xml"}, "text or json"),
        ({"otel_endpoint": "collector:4318"}, "http://host:4318"),
        ({"log_requests": "some"}, "off, failures or all"),
        ({"storage_root": "s3://bucket/tables"}, "file://"),
        ({"storage_root": "tables"}, "absolute"),
        ({"unpublished_commits_max": 0}, "at least 1"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_reason(flags: dict[str, object], told: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=told):
        load_settings({"home": tmp_path, **flags}, {})


@pytest.mark.parametrize(
    ("content", "told"),
    [("prot = 1", "Did you mean port"), ("port = ", "not TOML"), ('port = "x"', "whole number"), ("host = 7", "text")],
)
def test_a_file_that_is_wrong_is_refused_with_its_reason(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "tidegate.toml").write_text(content)
    with pytest.raises(InvalidRequest, match=told):
        load_settings({"home": tmp_path}, {})


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"none\.toml"):
        load_settings({"home": tmp_path, "config": tmp_path / "none.toml"}, {})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_authentication_can_be_off_on_loopback(host: str, tmp_path: Path) -> None:
    assert load_settings({"home": tmp_path, "auth": "none", "host": host}, {}).settings.auth == "none"


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    loaded = load_settings({"home": tmp_path, "database": "postgresql://me:se:cr@et@db/name"}, {})
    assert shown(loaded.settings, "database") == "postgresql://me:***@db/name"


def test_every_setting_is_documented() -> None:
    page = REFERENCE.read_text()
    for name in names():
        assert f"`{name}`" in page
        assert variable_of(name) in page
    assert flag_of("storage_root") in page
