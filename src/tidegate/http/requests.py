"""Reading a request: its path, its query and its body, each with an error that says what to change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, cast
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from tidegate.domain.errors import InvalidRequest, MalformedRequest
from tidegate.http.faces import BodyTooLarge


def read_segments(raw_path: bytes) -> list[str]:
    try:
        segments = [unquote_to_bytes(segment).decode() for segment in raw_path.strip(b"/").split(b"/")]
    except UnicodeDecodeError:
        raise MalformedRequest("The path is not percent-encoded UTF-8.") from None
    if any("\0" in segment for segment in segments):
        raise InvalidRequest("The path holds a NUL character. Remove it.")
    return segments


def read_query(query_string: bytes, type: type) -> Any:
    try:
        pairs = parse_qsl(query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
    except (UnicodeDecodeError, ValueError):
        raise MalformedRequest("The query is not percent-encoded UTF-8, or has more than 50 parameters.") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        raise InvalidRequest("A query parameter is given twice. Give each one once.")
    if any("\0" in value for value in parameters.values()):
        raise InvalidRequest("A query parameter holds a NUL character. Remove it.")
    try:
        return cast("Any", msgspec.convert(parameters, type, strict=False))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"The query parameters are not right: {error}.") from None


async def read_body(receive: Any, headers: Sequence[tuple[bytes, bytes]], *, bytes_max: int) -> bytes:
    for name, value in headers:
        if name == b"content-length" and value.isdigit() and int(value) > bytes_max:
            raise BodyTooLarge(bytes_max)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise MalformedRequest("The client went away before its request was complete.")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > bytes_max:
            raise BodyTooLarge(bytes_max)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def decode_form(body: bytes, type: type) -> Any:
    """Of what is wrong nothing is quoted: forms hold secrets."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=50)
        fields = dict(pairs)
        if len(fields) == len(pairs):
            return cast("Any", msgspec.convert(fields, type))
    except (ValueError, msgspec.ValidationError):
        pass
    raise MalformedRequest("The body is not a form with the fields that are needed, each of them once.") from None


def decode_body(body: bytes, type: type) -> Any:
    if not body:
        raise MalformedRequest("The request has no body. Send a JSON object.")
    try:
        decoded = _decoder(type).decode(body)
    except msgspec.ValidationError as error:
        raise MalformedRequest(f"The request does not have the right shape: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedRequest(f"The request body is not JSON: {error}.") from None
    except RecursionError:
        raise MalformedRequest("The request body is nested too deeply.") from None
    if b"\\u0000" in body and _holds_nul(body):
        raise InvalidRequest("A text in the request holds a NUL character, which cannot be stored. Remove it.")
    return decoded


@cache
def _decoder(type: type) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type)


def _holds_nul(body: bytes) -> bool:
    """Whether a text does: in the bytes, `\\u0000` may as well follow an escaped backslash."""
    try:
        waiting: list[object] = [json.loads(body)]
    except (ValueError, RecursionError):
        # Something that no field of the request asks for was passed over before; here it is read, and cannot be.
        raise MalformedRequest("The request body holds a number or a nesting that cannot be read.") from None
    while waiting:
        node = waiting.pop()
        if isinstance(node, str) and "\0" in node:
            return True
        if isinstance(node, dict):
            waiting += [*cast("dict[str, object]", node).keys(), *cast("dict[str, object]", node).values()]
        elif isinstance(node, list):
            waiting += cast("list[object]", node)
    return False
