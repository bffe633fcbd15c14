"""Building the package: the JDK alone compiles the connector, anew when it has to be, and the wheel carries it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import hatch_build
import pytest
from hatch_build import BuildFailed, build_connector

ROOT = Path(__file__).parent.parent
CLASS = "package io.tidegate; public class {name} {{ public static final int ONE = {value}; }}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with a connector of two trivial classes."""
    for file in (*hatch_build.ALSO_READ, hatch_build.JAR):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    for file in hatch_build.ALSO_READ:
        (tmp_path / file).write_bytes((ROOT / file).read_bytes())
    write_class(tmp_path, "One", "1")
    write_class(tmp_path, "Two", "2")
    return tmp_path


def write_class(project: Path, name: str, value: str) -> Path:
    file = project / "connector" / "io" / "tidegate" / f"{name}.java"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(CLASS.format(name=name, value=value))
    return file


def classes(jar: Path) -> list[str]:
    return [Path(name).stem for name in zipfile.ZipFile(jar).namelist() if name.endswith(".class")]


def test_the_same_sources_make_the_same_jar(project: Path) -> None:
    jar = build_connector(project)
    first = jar.read_bytes()
    assert classes(jar) == ["One", "Two"]
    jar.unlink()
    assert build_connector(project).read_bytes() == first


def test_it_is_compiled_anew_only_when_a_source_has_changed_or_is_gone(project: Path) -> None:
    jar = build_connector(project)
    made = jar.stat().st_mtime_ns
    assert build_connector(project).stat().st_mtime_ns == made
    write_class(project, "One", "3")
    assert build_connector(project).stat().st_mtime_ns > made
    (project / "connector" / "io" / "tidegate" / "Two.java").unlink()
    assert classes(build_connector(project)) == ["One"]


def test_what_does_not_compile_is_told_in_the_compilers_words_and_the_old_jar_stays(project: Path) -> None:
    before = build_connector(project).read_bytes()
    write_class(project, "One", "nonsense")
    with pytest.raises(BuildFailed, match=r"One\.java:1: error: cannot find symbol"):
        build_connector(project)
    assert (project / hatch_build.JAR).read_bytes() == before


def test_without_sources_or_without_a_compiler_the_build_says_so(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BuildFailed, match="needs a JDK"):
        build_connector(project)
    for source in (project / "connector").rglob("*.java"):
        source.unlink()
    with pytest.raises(BuildFailed, match="no Java sources"):
        build_connector(project)


def test_the_wheel_has_the_jar_and_the_source_distribution_what_it_is_made_from(tmp_path: Path) -> None:
    for target in ("sdist", "wheel"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(tmp_path)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    assert "tidegate/spark/tidegate-connector.jar" in zipfile.ZipFile(wheel).namelist()
    assert "tidegate/cli/log4j2.properties" in zipfile.ZipFile(wheel).namelist()
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"hatch_build.py", "connector/io/unitycatalog/spark/UCSingleCatalog.java"} <= set(names)
    assert str(hatch_build.JAR) not in names
