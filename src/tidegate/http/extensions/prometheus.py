"""`GET /metrics`: the numbers of the server, where Prometheus looks for them and in its format."""

from __future__ import annotations

from dataclasses import replace

from tidegate.http.endpoints import Call, Encoded, Endpoint
from tidegate.http.extensions.face import TIDEGATE
from tidegate.services.shared_gauges import scrape
from tidegate.telemetry.exposition import CONTENT_TYPE

BESIDES = replace(TIDEGATE, name="Besides", root="")
"""What lies under no API's root. Its errors are spelled as Tidegate's own."""


async def metrics(call: Call) -> Encoded:
    return (await scrape(call.env, call.caller)).encode()


METRICS = Endpoint(
    BESIDES,
    "GET",
    "/metrics",
    "metrics",
    "The numbers of this server, and those that all servers of its database share, for Prometheus.",
    metrics,
    answer=str,
    content_type=CONTENT_TYPE,
)
