"""The command `tidegate`, also as `python -m tidegate`. A light install has not what it needs: then it says so."""

from __future__ import annotations

import sys

SERVER_PACKAGES = frozenset(
    {"alembic", "httptools", "jwt", "obstore", "psycopg", "rich", "sqlalchemy", "typer", "uvicorn", "uvloop"}
)
"""Those of the extra `server`."""


def main() -> None:
    try:
        from tidegate.cli.main import app

        app()
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in SERVER_PACKAGES:
            raise
        sys.exit(f"tidegate: The command needs {package}, which is not installed: pip install 'tidegate[server]'.")


if __name__ == "__main__":
    main()
