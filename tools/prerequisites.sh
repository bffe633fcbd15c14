#!/usr/bin/env bash
# Says in one line what is missing on this machine. Usage: prerequisites.sh [python]
set -u
python=${1:-python3}

missing() { echo "Tidegate needs $1" >&2; exit 1; }

command -v git >/dev/null || missing "git: install it with your system's package manager."
command -v "$python" >/dev/null || missing "Python 3.11 or newer: '$python' was not found (make PYTHON=/path/to/python3.11 ...)."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    missing "Python 3.11 or newer: '$python' is $("$python" -V 2>&1) (make PYTHON=/path/to/python3.11 ...)."
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    missing "Python's venv module: install your system's python3-venv package."

for tool in java javac; do
    program=${JAVA_HOME:+$JAVA_HOME/bin/}$tool
    jdk="a JDK 17 or newer (for Spark; a JRE has no javac)"
    command -v "$program" >/dev/null || missing "$jdk: '$program' was not found; install one or set JAVA_HOME."
    # java says 'openjdk version "17.0.15"', javac says 'javac 17.0.15'.
    version=$("$program" -version 2>&1 | sed -nE 's/.*(version "|javac )([0-9]+).*/\2/p' | head -n 1)
    [ "${version:-0}" -ge 17 ] || missing "$jdk: '$program' is version ${version:-unknown}; install one or set JAVA_HOME."
done
exit 0
