"""The Java on this machine: where it is, and whether it is new enough for Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

JAVA_VERSION_MIN = 17
ANSWER_SECONDS_MAX = 60


class JavaMissing(RuntimeError):
    """There is no Java to run Spark with, or only one that is too old."""


def find_java(tool: str = "java") -> Path:
    """The tool of the JDK that JAVA_HOME names, else the one on the PATH, as Spark itself looks for it."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(tool, path=str(Path(home) / "bin")) if home else shutil.which(tool)
    where = f"JAVA_HOME is {home}, and there is no bin/{tool} in it" if home else f"no {tool} on the PATH"
    what = (
        "Spark needs Java" if tool == "java" else "Compiling the connector needs a JDK (a JRE is not enough), version"
    )
    todo = f"install a JDK {JAVA_VERSION_MIN} or newer, or set JAVA_HOME to one"
    if found is None:
        raise JavaMissing(f"{what} {JAVA_VERSION_MIN} or newer: {where}; {todo}.")
    version = _version(found)
    if version < JAVA_VERSION_MIN:
        raise JavaMissing(f"{what} {JAVA_VERSION_MIN} or newer: {found} is version {version or 'unknown'}; {todo}.")
    return Path(found)


def _version(tool: str) -> int:
    """The major version; 0 when it does not say."""
    asked = subprocess.run(  # noqa: S603
        [tool, "-version"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=ANSWER_SECONDS_MAX,
    )
    # java says `openjdk version "17.0.15"` and javac `javac 17.0.15`; before Java 9 the 8 stood second, as in "1.8.0".
    said = re.search(r'(?:version "|javac )(?:1\.)?(\d+)', asked.stdout)
    return int(said[1]) if said else 0
