"""Traces: what a request, a transaction or a job did, and when, for whoever collects it by OpenTelemetry.

Off unless there is a place to send them to, and then there is nothing here to call: who would tell something asks first
whether somebody listens.

    if self._traces is not None:
        span = self._traces.begin("ratify group", ...)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tidegate.domain.errors import InvalidRequest
from tidegate.telemetry.current import AtWork, RequestAtWork

Attributes = Mapping[str, str | int | float | bool | None]
"""What is None is left out."""
Headers = Sequence[tuple[bytes, bytes]]
Span = Any
"""Whatever the tracer keeps of what has begun and not ended."""


class Traces(Protocol):
    """Nothing here waits or raises: what cannot be kept is dropped."""

    def begin_request(self, headers: Headers) -> Span:
        """Goes on with the caller's trace, if the headers tell of one."""
        ...

    def end_request(self, request: RequestAtWork, status: int) -> None: ...

    def begin(
        self, name: str, attributes: Attributes, *, of: AtWork | None = None, links: Sequence[AtWork | None] = ()
    ) -> Span:
        """`of` is what it is a part of, `links` are those that it is done for."""
        ...

    def end(self, span: Span, attributes: Attributes, *, failure: str | None = None) -> None: ...

    def close(self) -> None:
        """Sends what is left, but not for long."""
        ...


def open_traces(endpoint: str, *, instance: str) -> Traces:
    """To a collector that takes OTLP over HTTP at this address."""
    require_packages()
    from tidegate.telemetry.otlp import OtlpTraces

    return OtlpTraces(endpoint, instance=instance)


def require_packages() -> None:
    """Those that only traces need are loaded, and have to be installed, only for them."""
    try:
        import tidegate.telemetry.otlp as _  # noqa: F401
    except ImportError as missing:
        raise InvalidRequest(
            f"The setting otel_endpoint needs packages that are not installed ({missing.name}). "
            "Install them with `pip install 'tidegate[otel]'`, or leave the setting out."
        ) from None
