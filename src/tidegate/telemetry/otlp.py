"""Traces by OpenTelemetry, sent as OTLP over HTTP. The only module that needs its packages.

Spans wait in a bounded queue for a thread that sends them in batches; when the queue is full they are dropped. The
packages' own environment variables hold too: OTEL_EXPORTER_OTLP_HEADERS for a collector that wants a key,
OTEL_TRACES_SAMPLER for fewer traces.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tidegate import __version__
from tidegate.telemetry.current import AtWork, RequestAtWork
from tidegate.telemetry.traces import Attributes, Headers

QUEUE_MAX = 4096
BATCH_MAX = 512
SEND_EVERY_MS = 1000
SEND_SECONDS_MAX = 5
CLOSE_SECONDS_MAX = 3.0
LINKS_MAX = 128
"""Of one group; the specification's own limit."""
_CARRIED = {b"traceparent": "traceparent", b"tracestate": "tracestate"}
_NOWHERE = Context()


class OtlpTraces:
    def __init__(self, endpoint: str, *, instance: str) -> None:
        resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME", "tidegate"),
                "service.version": __version__,
                "service.instance.id": instance,
                "host.name": platform.node(),
                "process.pid": os.getpid(),
            }
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=_address(endpoint), timeout=SEND_SECONDS_MAX)
        sending = BatchSpanProcessor(
            exporter,
            max_queue_size=QUEUE_MAX,
            max_export_batch_size=BATCH_MAX,
            schedule_delay_millis=SEND_EVERY_MS,
            export_timeout_millis=SEND_SECONDS_MAX * 1000,
        )
        self._provider.add_span_processor(sending)
        self._tracer = self._provider.get_tracer("tidegate", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def begin_request(self, headers: Headers) -> OtelSpan:
        carried = {_CARRIED[name]: value.decode("latin-1") for name, value in headers if name in _CARRIED}
        context = self._propagator.extract(carried, context=_NOWHERE)
        return self._tracer.start_span("request", context=context, kind=SpanKind.SERVER)

    def end_request(self, request: RequestAtWork, status: int) -> None:
        span: OtelSpan = request.span
        endpoint = request.endpoint
        span.update_name(request.method[:20] if endpoint is None else endpoint.name)
        about: Attributes = {
            "http.request.method": request.method[:20],
            "http.route": None if endpoint is None else endpoint.template,
            "http.response.status_code": status,
            "tidegate.request_id": request.id.decode("ascii"),
            "tidegate.principal": request.principal,
            "tidegate.table": request.table_name(),
            "tidegate.version": request.version,
            "tidegate.outcome": request.error or request.outcome,
        }
        self.end(span, about, failure=request.error if status >= 500 else None)

    def begin(
        self, name: str, attributes: Attributes, *, of: AtWork | None = None, links: Sequence[AtWork | None] = ()
    ) -> OtelSpan:
        context = _NOWHERE if of is None or of.span is None else set_span_in_context(of.span, _NOWHERE)
        linked = [Link(at_work.span.get_span_context()) for at_work in links if at_work is not None and at_work.span]
        return self._tracer.start_span(name, context=context, links=linked[:LINKS_MAX], attributes=_known(attributes))

    def end(self, span: OtelSpan, attributes: Attributes, *, failure: str | None = None) -> None:
        span.set_attributes(_known(attributes))
        if failure is not None:
            span.set_status(Status(StatusCode.ERROR, failure))
        span.end()

    def close(self) -> None:
        # On a thread of its own: a collector that hangs must not keep a server from stopping.
        closing = threading.Thread(target=self._provider.shutdown, name="tidegate-traces", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS_MAX)


def _known(attributes: Attributes) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in attributes.items() if value is not None}


def _address(endpoint: str) -> str:
    """People give the collector's address; traces go to a path below it."""
    return endpoint if endpoint.rstrip("/").endswith("/v1/traces") else endpoint.rstrip("/") + "/v1/traces"
