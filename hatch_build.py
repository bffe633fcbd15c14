"""Compiles the connector and puts its jar into the package: `python hatch_build.py`, and part of every wheel.

The connector is Java that is compiled against the jars of Spark and Delta: no build tool but javac is needed. The jar
lies next to the Python code that gives it to Spark, in a checkout as in a wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

JAR = Path("src/tidegate/spark/tidegate-connector.jar")
SOURCES = Path("connector")
# A change of these changes the jar as well: what it is compiled against, and how.
ALSO_READ = (Path("hatch_build.py"), Path("src/tidegate/spark/jars.py"))
JAVA_RELEASE = 17
COMPILE_SECONDS_MAX = 300
# The earliest time that a zip file can hold: the same sources make the same jar, byte for byte.
ALWAYS = (1980, 1, 1, 0, 0, 0)
MANIFEST = b"Manifest-Version: 1.0\r\nImplementation-Title: tidegate-connector\r\n\r\n"


class BuildFailed(Exception):
    """The connector cannot be built; the message says why."""


class ConnectorHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            build_connector(Path(self.root))
        except BuildFailed as failed:
            self.app.abort(str(failed))


def build_connector(root: Path) -> Path:
    """The connector's jar, compiled unless it is newer than everything it is made from."""
    jar = root / JAR
    sources = sorted((root / SOURCES).rglob("*.java"))
    if not sources:
        raise BuildFailed(f"There are no Java sources in {root / SOURCES}: the connector cannot be built.")
    if not _is_current(jar, root):
        with tempfile.TemporaryDirectory(prefix="tidegate-connector-") as classes:
            _compile(sources, Path(classes), root)
            _pack(Path(classes), jar)
    return jar


def _is_current(jar: Path, root: Path) -> bool:
    """Folders count as well: theirs is the time at which a source was last removed."""
    read = [root / SOURCES, *(root / SOURCES).rglob("*"), *(root / name for name in ALSO_READ)]
    return jar.is_file() and jar.stat().st_mtime_ns > max(path.stat().st_mtime_ns for path in read)


def _compile(sources: list[Path], classes: Path, root: Path) -> None:
    javac, class_path = _tools(root)
    command = [
        javac,
        "--release",
        JAVA_RELEASE,
        "-encoding",
        "UTF-8",
        "-proc:none",
        "-Xlint:unchecked",
        "-XDsuppressNotes",
    ]
    command += ["-cp", os.pathsep.join(class_path), "-d", classes, *sources]
    done = subprocess.run(  # noqa: S603
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=COMPILE_SECONDS_MAX,
    )
    if done.returncode != 0:
        raise BuildFailed(f"javac did not compile the connector:\n{done.stdout}")
    sys.stderr.write(done.stdout)


def _tools(root: Path) -> tuple[Path, list[str]]:
    """javac and the class path, found by the package's own code: the build and the program agree on the versions."""
    sys.path.insert(0, str(root / "src"))
    from tidegate.spark.jars import JarsMissing, SparkMissing, delta_jars, spark_jars_folder
    from tidegate.spark.java import JavaMissing, find_java

    try:
        return find_java("javac"), [str(spark_jars_folder() / "*"), *map(str, delta_jars())]
    except (JavaMissing, JarsMissing, SparkMissing) as missing:
        raise BuildFailed(str(missing)) from None
    finally:
        sys.path.remove(str(root / "src"))


def _pack(classes: Path, jar: Path) -> None:
    """Whoever looks sees the old jar or the new one, never half of it."""
    handle, unfinished = tempfile.mkstemp(dir=jar.parent, prefix=f".{jar.name}.")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            _add(packed, "META-INF/MANIFEST.MF", MANIFEST)
            for path in sorted(classes.rglob("*.class")):
                _add(packed, path.relative_to(classes).as_posix(), path.read_bytes())
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, jar)
    except BaseException:
        os.unlink(unfinished)
        raise


def _add(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, ALWAYS)
    entry.external_attr = 0o644 << 16
    packed.writestr(entry, content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    try:
        build_connector(Path(__file__).parent)
    except BuildFailed as failed:
        sys.exit(f"tidegate: {failed}")
