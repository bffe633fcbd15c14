"""The application: bare ASGI, because a catalog answers small requests all day and every layer shows.

Who is calling is asked before anything else; only `/health` opens without a token. Every answer that is not a success
has the error body of the face that was called.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from tidegate.domain.errors import InternalFailure, NotAuthenticated, TidegateError, TooManyRequests
from tidegate.domain.ports import Authenticator
from tidegate.http.endpoints import JSON, Call, Encoded, Endpoint, Match, Router
from tidegate.http.faces import Face, MethodNotAllowed, NoSuchEndpoint
from tidegate.http.openapi import openapi_document
from tidegate.http.protocol import WHOLE_ANSWER, WholeAnswer
from tidegate.http.requests import decode_body, read_body, read_query, read_segments
from tidegate.http.streams import Receive, Scope, Send, send_stream, watched
from tidegate.http.watch import NONE, Watch
from tidegate.services.environment import Environment
from tidegate.telemetry.current import RequestAtWork

Hook = Callable[[], Awaitable[None]]

ROUTES_REMEMBERED_MAX = 4096
ROUTE_BYTES_REMEMBERED_MAX = 500

log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class _Answered(NamedTuple):
    status: int
    body: bytes | None = None
    content_type: bytes = JSON
    sent: bool = False
    """Whether the answer was given already."""


class App:
    """`faces` are tried in order: the first whose root a path lies under is the one that answers. `besides`: endpoints
    that belong to no face.
    """

    def __init__(
        self,
        env: Environment,
        authenticator: Authenticator,
        endpoints: Sequence[Endpoint],
        faces: Sequence[Face],
        *,
        body_bytes_max: int,
        in_flight_max: int,
        patient_max: int = 100,
        on_start: Hook,
        on_stop: Hook,
        besides: Sequence[Endpoint] = (),
        watch: Watch | None = None,
    ) -> None:
        self._env = env
        self._watch = watch or Watch(env.measures)
        self._authenticator = authenticator
        self._router = Router([*endpoints, *besides])
        self._remembered_route = lru_cache(maxsize=ROUTES_REMEMBERED_MAX)(self._find_route)
        self._faces = faces
        self._openapi = _encode(openapi_document(endpoints))
        self._body_bytes_max = body_bytes_max
        self._in_flight_max = in_flight_max
        self._in_flight = 0
        self._patient_max = patient_max
        self._patient = 0
        self._on_start = on_start
        self._on_stop = on_stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["path"] == "/health" and scope["method"] in {"GET", "HEAD"}:
            await _respond(scope, send, 200, b'{"status":"ok"}')
            return
        self._in_flight += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._in_flight -= 1

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._on_start()
        except Exception as error:
            log.exception("the server could not start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._on_stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self._watch.begin(scope["method"], scope["headers"])
        face = NONE
        try:
            answer = await self._dispatch(scope, receive, send, request)
            status = answer.status
            if not answer.sent:
                await _respond(scope, send, status, answer.body, id=request.id, content_type=answer.content_type)
        except TidegateError as error:
            face, status = await self._refuse(scope, send, request, error)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            face, status = await self._refuse(scope, send, request, InternalFailure())
        self._watch.end(request, face, status)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send, request: RequestAtWork) -> _Answered:
        authorization = self._read_headers(request, scope["headers"])
        if self._in_flight > self._in_flight_max:
            raise TooManyRequests(f"The server works on {self._in_flight_max} requests already. Try again in a moment.")
        caller = self._authenticator.authenticate(authorization)
        request.principal = caller.name
        if scope["path"] == "/openapi.json" and scope["method"] == "GET":
            return _Answered(200, self._openapi)
        match = self._route(scope["method"], scope["raw_path"])
        request.endpoint = endpoint = match.endpoint
        request.path = match.path
        call = Call(
            env=self._env,
            caller=caller,
            path=match.path,
            query=None if endpoint.query is None else read_query(scope["query_string"], endpoint.query),
            body=None if endpoint.body is None else await self._body(scope, receive, endpoint),
        )
        if endpoint.patient:
            return await self._answer_patiently(scope, receive, send, endpoint, call, request)
        answer = await endpoint.handler(call)
        if endpoint.answer is None:
            return _Answered(endpoint.status)
        encoded = answer if isinstance(answer, Encoded) else _encode(answer)
        return _Answered(endpoint.status, encoded, endpoint.content_type)

    async def _answer_patiently(
        self, scope: Scope, receive: Receive, send: Send, endpoint: Endpoint, call: Call, request: RequestAtWork
    ) -> _Answered:
        """Who waits leaves its place to those who have something to do: however many wait, commits go on."""
        if self._patient >= self._patient_max:
            raise TooManyRequests(f"{self._patient_max} requests wait for events already. Try again in a moment.")
        self._in_flight -= 1
        self._patient += 1
        try:
            async with watched(scope, receive) as ending:
                asked = replace(call, ending=ending, last_event_id=_header(scope, b"last-event-id"))
                answer = await endpoint.handler(asked)
                if endpoint.content_type == JSON:
                    await _respond(scope, send, endpoint.status, _encode(answer), id=request.id)
                else:
                    await send_stream(scope, send, answer, content_type=endpoint.content_type, id=request.id)
                return _Answered(endpoint.status, sent=True)
        finally:
            self._patient -= 1
            self._in_flight += 1

    def _read_headers(self, request: RequestAtWork, headers: list[tuple[bytes, bytes]]) -> str | None:
        """The Authorization header, if there is one; others tell more about the request."""
        sent = None
        for name, value in headers:
            if name == b"authorization":
                if sent is not None:
                    raise NotAuthenticated("The Authorization header is sent twice. Send it once.")
                sent = value.decode("latin-1")
            elif name == b"x-request-id":
                self._watch.identify(request, value)
        return sent

    def _route(self, method: str, raw_path: bytes) -> Match:
        """Clients ask for the same tables all day; what was found for a path is remembered, unless it is very long."""
        find = self._remembered_route if len(raw_path) <= ROUTE_BYTES_REMEMBERED_MAX else self._find_route
        return find(method, raw_path)

    def _find_route(self, method: str, raw_path: bytes) -> Match:
        match self._router.find(method, read_segments(raw_path)):
            case Match() as match:
                return match
            case None:
                raise NoSuchEndpoint(unquote(raw_path, errors="replace"))
            case allowed:
                raise MethodNotAllowed(method, allowed)

    async def _body(self, scope: Scope, receive: Receive, endpoint: Endpoint) -> Any:
        body = await read_body(receive, scope["headers"], bytes_max=self._body_bytes_max)
        if endpoint.body is None or not (body or endpoint.body_required):
            return None
        return decode_body(body, endpoint.body)

    async def _refuse(self, scope: Scope, send: Send, request: RequestAtWork, error: TidegateError) -> tuple[str, int]:
        """The name of the face that refused, and the status that it gave."""
        kind = request.error = type(error).__name__
        self._env.measures.errors.at(kind).value += 1
        face = next((face for face in self._faces if scope["path"].startswith(face.root)), self._faces[-1])
        code = face.code_of(type(error))
        headers = [(b"www-authenticate", b"Bearer")] if isinstance(error, NotAuthenticated) else []
        if isinstance(error, MethodNotAllowed):
            headers.append((b"allow", ", ".join(error.allowed).encode()))
        if isinstance(error, TooManyRequests):
            headers.append((b"retry-after", b"1"))
        body = _encode(face.error_body(code, error))
        await _respond(scope, send, code.status, body, headers=headers, id=request.id)
        return face.name, code.status


def _header(scope: Scope, wanted: bytes) -> str | None:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), None)


async def _respond(
    scope: Scope,
    send: Send,
    status: int,
    body: bytes | None,
    *,
    id: bytes | None = None,
    content_type: bytes = JSON,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    described = list(headers)
    if id is not None:
        described.append((b"x-request-id", id))
    if body is not None:
        described += [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    sent = b"" if body is None or scope["method"] == "HEAD" else body
    at_once: WholeAnswer | None = scope.get("extensions", {}).get(WHOLE_ANSWER)
    if at_once is None or not at_once(status, described, sent):
        await send({"type": "http.response.start", "status": status, "headers": described})
        await send({"type": "http.response.body", "body": sent})
