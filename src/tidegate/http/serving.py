"""How an application is served: everything that uvicorn is told, in one place."""

from __future__ import annotations

from typing import Any

import uvicorn

from tidegate.http.protocol import protocol_for


def server_config(
    app: Any,
    *,
    shutdown_seconds_max: int,
    request_seconds_max: float = 60.0,
    tls_certificate: str = "",
    tls_key: str = "",
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol_for(request_seconds_max=request_seconds_max),
        ssl_certfile=tls_certificate or None,
        ssl_keyfile=tls_key or None,
        loop="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,  # longer than clients pause: one that meets a closing connection has to ask again
        proxy_headers=False,  # nothing here depends on where a request came from
        server_header=False,
        timeout_graceful_shutdown=shutdown_seconds_max,
    )
