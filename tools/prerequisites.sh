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

java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null || missing "a JDK 17 or newer (for Spark): '$java' was not found; install one or set JAVA_HOME."
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${version:-0}" -ge 17 ] || missing "a JDK 17 or newer (for Spark): '$java' is version ${version:-unknown}; install one or set JAVA_HOME."
exit 0
