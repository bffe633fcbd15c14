"""Delta's jars: fetched once, checked by their hashes, never in need of network or Java after that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tidegate.spark.jars import DELTA_JARS, Jar, JarsMissing, delta_jars
from tidegate.spark.java import JavaMissing

STORAGE = next(jar for jar in DELTA_JARS if jar.name == "delta-storage")
ASK = "from tidegate.spark.jars import delta_jars; print(*delta_jars(), sep='\\n')"


@pytest.fixture(scope="session")
def fetched() -> Path:
    """The folder of the jars on this machine, as Tidegate fetched them."""
    return delta_jars()[0].parent


@pytest.fixture
def folder(fetched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own that has all the jars, named by TIDEGATE_JARS."""
    copy = tmp_path / "jars"
    copy.mkdir()
    for jar in DELTA_JARS:
        shutil.copyfile(fetched / jar.file_name, copy / jar.file_name)
    monkeypatch.setenv("TIDEGATE_JARS", str(copy))
    return copy


@pytest.fixture
def mirror(fetched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository in a folder, named by TIDEGATE_IVY_SETTINGS."""
    root = tmp_path / "mirror"
    for jar in DELTA_JARS:
        place(jar, root).parent.mkdir(parents=True)
        shutil.copyfile(fetched / jar.file_name, place(jar, root))
    use_repository(root.as_uri(), tmp_path, monkeypatch)
    return root


def place(jar: Jar, root: Path) -> Path:
    return root.joinpath(*jar.group.split("."), jar.name, jar.version, jar.file_name)


def use_repository(root: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = folder / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" root="{root}/"/></resolvers></ivysettings>'
    )
    monkeypatch.setenv("TIDEGATE_IVY_SETTINGS", str(settings))


def fake_java(folder: Path, script: str) -> Path:
    """A JAVA_HOME whose java is a shell script."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return folder


def test_a_folder_that_has_the_jars_needs_neither_network_nor_java(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "java-was-started"
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", f"touch {marker}; exit 1")))
    said: list[str] = []
    assert delta_jars(say=said.append) == [folder / jar.file_name for jar in DELTA_JARS]
    assert not marker.exists()
    assert said == []


def test_an_empty_folder_is_filled_once_and_that_is_said_once(
    mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new" / "jars"
    monkeypatch.setenv("TIDEGATE_JARS", str(folder))
    said: list[str] = []
    for _ in range(2):
        delta_jars(say=said.append)
    assert sorted(path.name for path in folder.iterdir()) == sorted(jar.file_name for jar in DELTA_JARS)
    assert len(said) == 1
    assert str(folder) in said[0]


def test_without_a_folder_given_the_users_cache_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEGATE_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    from tidegate.spark.jars import jars_folder

    assert jars_folder() == tmp_path / "tidegate" / "jars"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert jars_folder() == tmp_path / "me" / ".cache" / "tidegate" / "jars"


@pytest.mark.parametrize("damage", [b"", b"not a jar"], ids=["emptied", "overwritten"])
def test_a_jar_with_the_wrong_content_is_replaced(folder: Path, mirror: Path, damage: bytes) -> None:
    right = (folder / STORAGE.file_name).read_bytes()
    (folder / STORAGE.file_name).write_bytes(damage)
    delta_jars()
    assert (folder / STORAGE.file_name).read_bytes() == right


def test_what_maven_left_behind_on_the_machine_does_not_matter(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for cache in (home / ".m2" / "repository", home / ".ivy2" / "local"):
        pom = place(STORAGE, cache).with_suffix(".pom")
        pom.parent.mkdir(parents=True)
        pom.write_text("<project><modelVersion>4.0.0</modelVersion></project>")
    options = os.environ.get("JAVA_TOOL_OPTIONS", "")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{options} -Duser.home={home}")
    (folder / STORAGE.file_name).unlink()
    assert folder / STORAGE.file_name in delta_jars()
    assert not (home / ".ivy2" / "cache").exists()


def test_a_mirror_that_hands_out_something_else_is_not_believed(folder: Path, mirror: Path) -> None:
    (folder / STORAGE.file_name).unlink()
    place(STORAGE, mirror).write_bytes(b"not a jar")
    with pytest.raises(JarsMissing, match=f"{STORAGE.coordinates} was fetched, but its content"):
        delta_jars()
    assert not (folder / STORAGE.file_name).exists()


def test_without_network_the_error_names_the_jars_the_folder_and_what_to_do(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_repository("http://127.0.0.1:1", tmp_path, monkeypatch)
    (folder / STORAGE.file_name).unlink()
    with pytest.raises(JarsMissing) as refused:
        delta_jars()
    for told in (STORAGE.coordinates, STORAGE.sha256, str(folder), "TIDEGATE_JARS", "TIDEGATE_IVY_SETTINGS"):
        assert told in str(refused.value)
    present = [jar for jar in DELTA_JARS if jar is not STORAGE]
    assert not [jar for jar in present if jar.coordinates in str(refused.value)]


def test_a_server_that_fails_at_first_is_asked_again(
    folder: Path, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / STORAGE.file_name).unlink()
    with failing_server(mirror, failures=1) as (address, asked):
        use_repository(address, tmp_path, monkeypatch)
        delta_jars()
    assert (folder / STORAGE.file_name).is_file()
    assert len([path for path in asked if path.endswith(".jar")]) > 1


@contextmanager
def failing_server(root: Path, *, failures: int) -> Iterator[tuple[str, list[str]]]:
    """Serves the folder over HTTP, but answers the first requests for a jar with 503. Its address, what was asked."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def send_head(self) -> Any:
            asked.append(self.path)
            if self.path.endswith(".jar") and len([path for path in asked if path.endswith(".jar")]) <= failures:
                self.send_error(503)
                return None
            return super().send_head()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: pytest shows what matters."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


def test_two_processes_may_fetch_at_once(mirror: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    environ = {**os.environ, "TIDEGATE_JARS": str(folder)}
    running = [
        subprocess.Popen([sys.executable, "-c", ASK], env=environ, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = [process.communicate(timeout=120)[0].splitlines() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert answers == [[str(folder / jar.file_name) for jar in DELTA_JARS]] * 2
    assert sorted(path.name for path in folder.iterdir()) == sorted(jar.file_name for jar in DELTA_JARS)


@pytest.mark.parametrize(
    ("script", "told"),
    [(None, "there is no bin/java in it"), ("echo 'openjdk version \"11.0.2\"' >&2", "is version 11")],
    ids=["no Java", "Java 11"],
)
def test_a_java_that_is_missing_or_too_old_is_one_clear_sentence(
    script: str | None, told: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / STORAGE.file_name).unlink()
    home = tmp_path / "none" if script is None else fake_java(tmp_path / "jdk", script)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(JavaMissing, match=told) as refused:
        delta_jars()
    assert "install a JDK 17 or newer" in str(refused.value)


def test_pyspark_is_not_imported_to_find_the_jars() -> None:
    imported = f"import sys; {ASK}; import tidegate.spark; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", imported], check=True, capture_output=True, timeout=60)
