"""Log lines, as text for people or as JSON for programs.

Both say which request or job a line belongs to. What a line is about is given as `extra=about(table=..., version=...)`:

    {"time":"2026-03-01T09:30:02.123Z","level":"warning","logger":"tidegate.requests","message":"POST ... 503 in ...",
     "request_id":"4f0c21aa-1f","method":"POST","path":"/api/.../tables/{table}","principal":"admin",
     "table":"main.default.orders","version":7,"status":503,"ms":1.2,"error":"Unavailable"}

Secrets are taken out of every line, whoever wrote it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from tidegate.telemetry.current import CURRENT

HIDDEN = "***"
_BEARER = re.compile(r"(?i)(bearer\s+)[\w.~+/=-]+")
_ABOUT = "about"
_CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(32), 127)}
"""Whoever sends a line break must not write a line of the log, nor paint somebody's terminal."""


def about(**fields: Any) -> dict[str, Any]:
    """What a log line is about, for its `extra`; what is None is left out."""
    return {_ABOUT: {name: value for name, value in fields.items() if value is not None}}


def log_to_stderr(*, level: str, format: str, secrets: Collection[str]) -> None:
    """`secrets`: texts that no line may hold."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(secrets) if format == "json" else TextLines(secrets))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)


class TextLines(logging.Formatter):
    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._hide = _hider(secrets)

    def formatMessage(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        told = [f"{name}={fields[name]}" for name in ("request_id", "job", "table", "version") if name in fields]
        line = super().formatMessage(record) + (f" [{' '.join(told)}]" if told else "")
        return line.translate(_CONTROLS)

    def format(self, record: logging.LogRecord) -> str:
        return self._hide(super().format(record))


class JsonLines(logging.Formatter):
    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__()
        self._hide = _hider(secrets)

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._hide(record.getMessage()),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self._hide(self.formatException(record.exc_info))
        return json.dumps(line, default=str, ensure_ascii=False, separators=(",", ":"))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    at_work = CURRENT.get()
    return {**({} if at_work is None else at_work.fields()), **getattr(record, _ABOUT, {})}


def _hider(secrets: Collection[str]):
    """The longest first: one may be a part of another."""
    known = sorted((re.escape(secret) for secret in secrets if secret), key=len, reverse=True)
    pattern = re.compile("|".join(known)) if known else None

    def hide(text: str) -> str:
        text = _BEARER.sub(rf"\1{HIDDEN}", text)
        return text if pattern is None else pattern.sub(HIDDEN, text)

    return hide
