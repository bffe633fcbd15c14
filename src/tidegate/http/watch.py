"""What is told of every answer: it is counted, logged if that is wanted, and traced if that is wanted.

A request has an id: the client's own `X-Request-Id` if it is sane, else one of ours. It is in the answer and in every
log line of the request.
"""

from __future__ import annotations

import itertools
import logging
import re
import secrets
from time import monotonic

from tidegate.telemetry.current import CURRENT, RequestAtWork
from tidegate.telemetry.server import EndpointMeasures, ServerMeasures
from tidegate.telemetry.traces import Headers, Traces

NONE = "none"
"""The endpoint, or the API, of a request to which none belongs."""
LINES_PER_SECOND_MAX = 20
"""Of failures; should more fail, the next line says how many were left out."""
_EVERYDAY = frozenset({404, 409})
"""Answers that clients ask for: whether a table is there, and who won."""
_SANE_ID = re.compile(rb"[!-~]{1,128}").fullmatch

log = logging.getLogger("tidegate.requests")


class Watch:
    """`lines`: off, failures or all."""

    def __init__(self, measures: ServerMeasures, *, lines: str = "failures", traces: Traces | None = None) -> None:
        self._traces = traces
        self._measures = measures
        self._known: dict[str, EndpointMeasures] = {}
        self._strays: dict[str, EndpointMeasures] = {}
        self._all, self._failures = lines == "all", lines == "failures"
        self._prefix = secrets.token_hex(4).encode()
        self._numbers = itertools.count(1)
        self._second, self._written, self._left_out = 0, 0, 0

    def begin(self, method: str, headers: Headers) -> RequestAtWork:
        request = RequestAtWork(b"%b-%x" % (self._prefix, next(self._numbers)), method)
        if self._traces is not None:
            request.span = self._traces.begin_request(headers)
        CURRENT.set(request)
        return request

    def identify(self, request: RequestAtWork, id: bytes) -> None:
        """By what the client calls it, if that can be written into a header and a line of a log."""
        if _SANE_ID(id):
            request.id = id

    def end(self, request: RequestAtWork, face: str, status: int) -> None:
        """`face`: the API that was called by a request that reached no endpoint."""
        endpoint = request.endpoint
        if endpoint is None:
            measures = self._strays.get(face) or self._add(self._strays, face, face, NONE)
        else:
            measures = self._known.get(endpoint.name) or self._add(
                self._known, endpoint.name, endpoint.face.name, endpoint.name
            )
        seconds = measures.answered(status, request.started)
        if self._all or (status >= 400 and self._failures):
            self._log(request, status, seconds)
        if self._traces is not None:
            self._traces.end_request(request, status)

    def _add(self, to: dict[str, EndpointMeasures], key: str, face: str, endpoint: str) -> EndpointMeasures:
        """Made with the first answer: of what nobody calls there is nothing to tell."""
        added = to[key] = EndpointMeasures(self._measures, face, endpoint)
        return added

    def _log(self, request: RequestAtWork, status: int, seconds: float) -> None:
        request.status, request.seconds = status, seconds
        failed = status >= 400 and status not in _EVERYDAY
        if not self._all and not (failed and self._may_write()):
            return
        what = request.endpoint.template if request.endpoint else "(no endpoint)"
        about = "".join(f" {part}" for part in (request.error, request.table_name()) if part is not None)
        level = logging.WARNING if failed else logging.INFO
        log.log(level, "%s %s %d in %.1f ms%s", request.method[:20], what, status, seconds * 1000, about)

    def _may_write(self) -> bool:
        second = int(monotonic())
        if second != self._second:
            if self._left_out:
                log.warning("%d more requests failed in the second before this one", self._left_out)
            self._second, self._written, self._left_out = second, 0, 0
        self._written += 1
        if self._written > LINES_PER_SECOND_MAX:
            self._left_out += 1
            return False
        return True
