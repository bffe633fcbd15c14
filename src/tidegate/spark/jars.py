"""The jars that Delta needs on top of Spark's own: known by coordinates and hash, fetched once, then never again.

Naming `delta-spark` in `spark.jars.packages` brings in 33 artifacts, most of which Spark has already, and stops on
machines where Maven left a POM without its jar. Here it is the seven that are needed, in a folder of their own:

    delta_jars()    first time: fetched by the Ivy that comes with Spark, checked, kept in ~/.cache/tidegate/jars
    delta_jars()    from then on: checked and returned, without network and without starting Java

TIDEGATE_JARS names another folder: one that has the jars already just works, on a machine without network as well.
TIDEGATE_IVY_SETTINGS names an Ivy settings file, for those who have to fetch from a mirror.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tidegate.spark.java import find_java

ATTEMPTS_MAX = 3
BACKOFF_SECONDS = 1.0
FETCH_SECONDS_MAX = 600
COMPLAINTS_SHOWN_MAX = 3

DELTA_VERSION = "4.4.0"
UNITY_CATALOG_VERSION = "0.6.0"
AWS_VERSION = "1.12.262"


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    name: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"


DELTA_JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.1_2.13",
        DELTA_VERSION,
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    Jar("io.delta", "delta-storage", DELTA_VERSION, "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
    Jar(
        "io.delta",
        "delta-kernel-api",
        DELTA_VERSION,
        "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    ),
    Jar(
        "io.delta",
        "delta-kernel-defaults",
        DELTA_VERSION,
        "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    ),
    Jar(
        "io.delta",
        "delta-kernel-unitycatalog",
        DELTA_VERSION,
        "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    ),
    Jar(
        "io.unitycatalog",
        "unitycatalog-client",
        UNITY_CATALOG_VERSION,
        "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    ),
    Jar(
        "io.unitycatalog",
        "unitycatalog-hadoop",
        UNITY_CATALOG_VERSION,
        "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
    ),
)


OWNER_JARS = (
    Jar(
        "com.amazonaws",
        "aws-java-sdk-dynamodb",
        AWS_VERSION,
        "7af4ba06d0d9b3c2ab435089caecd0567810d203aa285f7aa72861f1964d442e",
    ),
    Jar(
        "com.amazonaws",
        "aws-java-sdk-core",
        AWS_VERSION,
        "06fed99f929c389e168278c1b111aaf1afb270d07202fbbce92e73d1e4279678",
    ),
)
"""Delta's list of commit owners names one that needs these, and cannot be loaded without them: nothing else does."""


class JarsMissing(RuntimeError):
    """Jars that Spark needs are not on this machine and could not be fetched."""


class SparkMissing(RuntimeError):
    """PySpark is not installed, or not in the version that the connector and Delta's jars are made for."""


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def delta_jars(*, say: Callable[[str], None] = _to_stderr) -> list[Path]:
    """The files of Delta's jars, fetched if need be. `say` gets one line when something has to be fetched."""
    return _get(DELTA_JARS, f"of Delta {DELTA_VERSION}", say)


def owner_jars(*, say: Callable[[str], None] = _to_stderr) -> list[Path]:
    """What Delta needs besides, in sessions that know a commit owner; fetched when the first one asks for it."""
    return _get(OWNER_JARS, "for commit owners", say)


def _get(jars: Iterable[Jar], what: str, say: Callable[[str], None]) -> list[Path]:
    folder = jars_folder()
    missing = _missing(jars, folder)
    if missing:
        ivy = _ivy_command()
        say(f"Fetching {len(missing)} jars {what} to {folder} (only this once)")
        _fetch_with_retries(missing, folder, ivy)
    return [folder / jar.file_name for jar in jars]


def jars_folder() -> Path:
    given = os.environ.get("TIDEGATE_JARS")
    if given:
        return Path(given).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "tidegate" / "jars"


def spark_jars_folder() -> Path:
    """The folder of the jars that Spark itself comes with: that of SPARK_HOME if it is set, else PySpark's own."""
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SparkMissing('PySpark is not installed: pip install "tidegate[spark]".')
    return Path(spec.submodule_search_locations[0]) / "jars"


def _missing(jars: Iterable[Jar], folder: Path) -> list[Jar]:
    """What is not there, or is not what it should be: a file cut short is as good as none."""
    return [jar for jar in jars if not _is(jar, folder / jar.file_name)]


def _is(jar: Jar, file: Path) -> bool:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def _ivy_command() -> list[str]:
    ivy = next(spark_jars_folder().glob("ivy-*.jar"), None)
    if ivy is None:
        raise SparkMissing(f"There is no Ivy in {spark_jars_folder()}: is that Spark complete?")
    settings = os.environ.get("TIDEGATE_IVY_SETTINGS")
    if settings and not Path(settings).is_file():
        raise JarsMissing(f"TIDEGATE_IVY_SETTINGS names {settings}, which is not a file.")
    return [str(find_java()), "-cp", str(ivy), "org.apache.ivy.Main"]


def _fetch_with_retries(missing: list[Jar], folder: Path, ivy: list[str]) -> None:
    """Each attempt keeps what it got, so that the next one asks only for the rest."""
    complaint = ""
    for attempt in range(ATTEMPTS_MAX):
        if attempt:
            time.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
        complaint = _fetch(missing, folder, ivy)
        missing = _missing(missing, folder)
        if not missing:
            return
    raise JarsMissing(_told(missing, folder, complaint))


def _told(missing: Iterable[Jar], folder: Path, complaint: str) -> str:
    wanted = "\n".join(f"  {jar.coordinates}  ({jar.file_name}, sha256 {jar.sha256})" for jar in missing)
    return (
        f"These jars are not in {folder} and could not be fetched:\n{wanted}\n{complaint}"
        "Without network: copy that folder from a machine where `tidegate jars` has run, or name one that has the jars "
        "with TIDEGATE_JARS. Behind a mirror: name an Ivy settings file with TIDEGATE_IVY_SETTINGS."
    )


def _fetch(jars: list[Jar], folder: Path, ivy: list[str]) -> str:
    """Lets Ivy fetch the jars and takes over those with the right content. What went wrong, in Ivy's words."""
    with tempfile.TemporaryDirectory(prefix="tidegate-jars-") as temporary:
        scratch = Path(temporary)
        said = _run_ivy(ivy, jars, scratch)
        wrong: list[str] = []
        for jar in jars:
            fetched = scratch / "fetched" / jar.file_name
            if _is(jar, fetched):
                _take_over(fetched, folder)
            elif fetched.exists():
                wrong.append(f"  {jar.coordinates} was fetched, but its content is not what it should be\n")
    return "".join(wrong) + said


def _take_over(fetched: Path, folder: Path) -> None:
    """Another process may do the same at this moment: a file appears under its name only when it is whole."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=folder, prefix=f".{fetched.name}.")
        try:
            with os.fdopen(handle, "wb") as target, fetched.open("rb") as source:
                shutil.copyfileobj(source, target)
            os.chmod(unfinished, 0o644)
            os.replace(unfinished, folder / fetched.name)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError as error:
        raise JarsMissing(
            f"{folder} cannot be written to ({error.strerror}): name a folder that can with TIDEGATE_JARS."
        ) from None


def _run_ivy(ivy: list[str], jars: list[Jar], scratch: Path) -> str:
    """Ivy's cache lies in `scratch`: neither ~/.ivy2 nor ~/.m2 nor a failed attempt before has a say."""
    options = {
        "-settings": os.environ.get("TIDEGATE_IVY_SETTINGS") or _write(scratch / "settings.xml", _SETTINGS),
        "-ivy": _write(scratch / "ivy.xml", _module(jars)),
        "-cache": scratch / "cache",
        "-retrieve": scratch / "fetched" / "[artifact]-[revision].[ext]",
    }
    try:
        done = subprocess.run(  # noqa: S603
            [*ivy, *(str(word) for option in options.items() for word in option)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=FETCH_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return f"  Ivy did not end within {FETCH_SECONDS_MAX} seconds\n"
    return _complaints(done.stdout)


def _complaints(output: str) -> str:
    signs = ("error", "exception", "not found", "unresolved dependency")
    lines = (line.strip(" :\t") for line in output.splitlines())
    told = dict.fromkeys(line for line in lines if any(sign in line.lower() for sign in signs))
    return "".join(f"  Ivy says: {line}\n" for line in list(told)[:COMPLAINTS_SHOWN_MAX])


def _write(file: Path, content: str) -> Path:
    file.write_text(content, encoding="utf-8")
    return file


# The resolver knows the address of the central repository by itself. POMs are not needed: nothing transitive is wanted.
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


def _module(jars: Iterable[Jar]) -> str:
    dependencies = "\n".join(
        f'    <dependency org="{jar.group}" name="{jar.name}" rev="{jar.version}" transitive="false" '
        f'conf="default->master(default)"/>'
        for jar in jars
    )
    return f"""\
<ivy-module version="2.0">
  <info organisation="tidegate" module="spark"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
