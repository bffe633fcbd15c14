"""The application: bare ASGI, because a catalog answers small requests all day and every layer shows.

Who is calling is asked before anything else; only `/health` opens without a token. Every answer that is not a success
has the error body of the face that was called.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from tidegate.domain.errors import InternalFailure, NotAuthenticated, TidegateError, TooManyRequests
from tidegate.domain.ports import Authenticator
from tidegate.domain.privileges import Principal
from tidegate.http.endpoints import Call, Endpoint, Match, Router
from tidegate.http.faces import Face, MethodNotAllowed, NoSuchEndpoint
from tidegate.http.openapi import openapi_document
from tidegate.http.requests import decode_body, read_body, read_query, read_segments
from tidegate.services.environment import Environment

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Hook = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class App:
    """`faces` are tried in order: the first whose root a path lies under is the one that answers."""

    def __init__(
        self,
        env: Environment,
        authenticator: Authenticator,
        endpoints: Sequence[Endpoint],
        faces: Sequence[Face],
        *,
        body_bytes_max: int,
        in_flight_max: int,
        on_start: Hook,
        on_stop: Hook,
    ) -> None:
        self._env = env
        self._authenticator = authenticator
        self._router = Router(list(endpoints))
        self._faces = faces
        self._openapi = _encode(openapi_document(endpoints))
        self._body_bytes_max = body_bytes_max
        self._in_flight_max = in_flight_max
        self._in_flight = 0
        self._on_start = on_start
        self._on_stop = on_stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["path"] == "/health" and scope["method"] in {"GET", "HEAD"}:
            await _respond(send, 200, b'{"status":"ok"}', head=scope["method"] == "HEAD")
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
        head = scope["method"] == "HEAD"
        try:
            status, body = await self._dispatch(scope, receive)
            await _respond(send, status, body, head=head)
        except TidegateError as error:
            await self._refuse(scope, send, error)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            await self._refuse(scope, send, InternalFailure())

    async def _dispatch(self, scope: Scope, receive: Receive) -> tuple[int, bytes | None]:
        if self._in_flight > self._in_flight_max:
            raise TooManyRequests(f"The server works on {self._in_flight_max} requests already. Try again in a moment.")
        caller = self._authenticate(scope["headers"])
        if scope["path"] == "/openapi.json" and scope["method"] == "GET":
            return 200, self._openapi
        match = self._route(scope)
        endpoint = match.endpoint
        call = Call(
            env=self._env,
            caller=caller,
            path=match.path,
            query=None if endpoint.query is None else read_query(scope["query_string"], endpoint.query),
            body=None if endpoint.body is None else await self._body(scope, receive, endpoint.body),
        )
        answer = await endpoint.handler(call)
        return endpoint.status, None if endpoint.answer is None else _encode(answer)

    def _authenticate(self, headers: list[tuple[bytes, bytes]]) -> Principal:
        sent = [value for name, value in headers if name == b"authorization"]
        if len(sent) > 1:
            raise NotAuthenticated("The Authorization header is sent twice. Send it once.")
        return self._authenticator.authenticate(sent[0].decode("latin-1") if sent else None)

    def _route(self, scope: Scope) -> Match:
        match self._router.find(scope["method"], read_segments(scope["raw_path"])):
            case Match() as match:
                return match
            case None:
                raise NoSuchEndpoint(scope["path"])
            case allowed:
                raise MethodNotAllowed(scope["method"], allowed)

    async def _body(self, scope: Scope, receive: Receive, type: type) -> Any:
        body = await read_body(receive, dict(scope["headers"]), bytes_max=self._body_bytes_max)
        return decode_body(body, type)

    async def _refuse(self, scope: Scope, send: Send, error: TidegateError) -> None:
        face = next((face for face in self._faces if scope["path"].startswith(face.root)), self._faces[-1])
        code = face.code_of(type(error))
        headers = [(b"www-authenticate", b"Bearer")] if isinstance(error, NotAuthenticated) else []
        if isinstance(error, MethodNotAllowed):
            headers.append((b"allow", ", ".join(error.allowed).encode()))
        if isinstance(error, TooManyRequests):
            headers.append((b"retry-after", b"1"))
        body = _encode(face.error_body(code, error.message))
        await _respond(send, code.status, body, head=scope["method"] == "HEAD", headers=headers)


async def _respond(
    send: Send,
    status: int,
    body: bytes | None,
    *,
    head: bool = False,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    if body is None:
        described = list(headers)
    else:
        length = str(len(body)).encode()
        described = [(b"content-type", b"application/json"), (b"content-length", length), *headers]
    await send({"type": "http.response.start", "status": status, "headers": described})
    await send({"type": "http.response.body", "body": b"" if body is None or head else body})
