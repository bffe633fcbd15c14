"""The application: bare ASGI, because a catalog answers small requests all day and every layer shows.

Who is calling is asked before anything else; only `/health` opens without a token, and the endpoint that gives tokens.
Every answer that is not a success has the error body of the face that was called.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from tidegate.domain.access_ports import Authenticator
from tidegate.domain.errors import InternalFailure, NotAuthenticated, TidegateError, TooManyRequests
from tidegate.domain.privileges import Principal
from tidegate.http.endpoints import JSON, Call, Encoded, Endpoint, Match, Router
from tidegate.http.faces import Face, MethodNotAllowed, NoSuchEndpoint
from tidegate.http.failed_logins import FailedLogins
from tidegate.http.openapi import openapi_document
from tidegate.http.protocol import WHOLE_ANSWER, WholeAnswer
from tidegate.http.requests import decode_body, decode_form, read_body, read_query, read_segments
from tidegate.http.streams import Receive, Scope, Send, send_stream, watched
from tidegate.http.watch import NONE, Watch
from tidegate.services.environment import Environment
from tidegate.telemetry.current import RequestAtWork

Hook = Callable[[], Awaitable[None]]

NOBODY = Principal("")
"""Who calls an open endpoint: no user has this name, and nothing is granted to it."""
ROUTES_REMEMBERED_MAX = 4096
ROUTE_BYTES_REMEMBERED_MAX = 500

log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


_NOT_TO_BE_KEPT = ((b"cache-control", b"no-store"),)


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
        failed_logins: FailedLogins | None = None,
        ask_again_seconds: float = 2.0,
    ) -> None:
        self._env = env
        self._watch = watch or Watch(env.measures)
        self._authenticator = authenticator
        self._router = Router([*endpoints, *besides])
        self._open = frozenset(endpoint.template for endpoint in (*endpoints, *besides) if endpoint.open)
        self._remembered_route = lru_cache(maxsize=ROUTES_REMEMBERED_MAX)(self._find_route)
        self._faces = faces
        self._openapi = _encode(openapi_document(endpoints))
        self._body_bytes_max = body_bytes_max
        self._in_flight_max = in_flight_max
        self._in_flight = 0
        self._patient_max = patient_max
        self._patient = 0
        self._failed_logins = failed_logins
        self._ask_again_seconds = ask_again_seconds
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
        face, refused = NONE, None
        client: tuple[str, int] | None = scope.get("client")
        request.address = None if client is None else client[0]
        try:
            answer = await self._dispatch(scope, receive, send, request)
            status = answer.status
            if not answer.sent:
                headers = _NOT_TO_BE_KEPT if scope["path"] in self._open else ()
                await _respond(
                    scope, send, status, answer.body, id=request.id, content_type=answer.content_type, headers=headers
                )
        except TidegateError as error:
            refused = error
            if isinstance(error, NotAuthenticated):
                await self._slow_down(scope)
            face, status = await self._refuse(scope, send, request, error)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            refused = InternalFailure()
            face, status = await self._refuse(scope, send, request, refused)
        self._env.audit.decided(request, refused)
        self._watch.end(request, face, status)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send, request: RequestAtWork) -> _Answered:
        authorization = self._read_headers(request, scope["headers"])
        if self._in_flight > self._in_flight_max:
            raise TooManyRequests(f"The server works on {self._in_flight_max} requests already. Try again in a moment.")
        open = scope["path"] in self._open
        caller = NOBODY if open else await self._authenticator.authenticate(authorization)
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
            authorization=authorization if open else None,
        )
        if endpoint.patient:
            return await self._answer_patiently(scope, receive, send, endpoint, call, request)
        answer = await endpoint.handler(call)
        if endpoint.answer is None:
            return _Answered(endpoint.status)
        encoded = answer if isinstance(answer, Encoded) else _encode(answer)
        return _Answered(endpoint.status, encoded, endpoint.content_type)

    async def _slow_down(self, scope: Scope) -> None:
        """Who waits for a refusal leaves its place to those who have something to do."""
        authorization = _header(scope, b"authorization")
        if authorization is None or self._failed_logins is None:
            return
        client = scope.get("client")
        pause = self._failed_logins.pause(client[0] if client else "", authorization)
        if pause > 0:
            self._in_flight -= 1
            self._failed_logins.waiting += 1
            try:
                await asyncio.sleep(pause)
            finally:
                self._failed_logins.waiting -= 1
                self._in_flight += 1

    async def _answer_patiently(
        self, scope: Scope, receive: Receive, send: Send, endpoint: Endpoint, call: Call, request: RequestAtWork
    ) -> _Answered:
        """Who waits leaves its place to those who have something to do: however many wait, commits go on."""
        if self._patient >= self._patient_max:
            raise TooManyRequests(f"{self._patient_max} requests wait for events already. Try again in a moment.")
        self._in_flight -= 1
        self._patient += 1
        try:
            async with watched(scope, receive) as ending, self._welcome(scope, ending):
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

    @contextlib.asynccontextmanager
    async def _welcome(self, scope: Scope, ending: asyncio.Future[None]) -> AsyncGenerator[None]:
        """As long as the caller's token is good: what goes on for a while ends soon after it has been revoked."""
        authorization = _header(scope, b"authorization")

        async def ask_again() -> None:
            while not ending.done():
                await asyncio.sleep(self._ask_again_seconds)
                try:
                    await self._authenticator.authenticate(authorization)
                except NotAuthenticated:
                    if not ending.done():
                        ending.set_result(None)
                except TidegateError:
                    continue  # nobody can tell at the moment

        asking = asyncio.create_task(ask_again())
        try:
            yield
        finally:
            asking.cancel()

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
        return decode_form(body, endpoint.body) if endpoint.form else decode_body(body, endpoint.body)

    async def _refuse(self, scope: Scope, send: Send, request: RequestAtWork, error: TidegateError) -> tuple[str, int]:
        """The name of the face that refused, and the status that it gave."""
        kind = request.error = type(error).__name__
        self._env.measures.errors.at(kind).value += 1
        face = next((face for face in self._faces if scope["path"].startswith(face.root)), self._faces[-1])
        code = face.code_of(type(error))
        headers = [(b"www-authenticate", face.challenge)] if isinstance(error, NotAuthenticated) else []
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
