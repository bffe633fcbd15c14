"""The OpenAPI 3.1 document, made from the endpoints and their wire types: it cannot say anything else than they do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate import __version__
from tidegate.http.endpoints import Endpoint

_REF = "#/components/schemas/{name}"
_ANY_OBJECT = {"application/json": {"schema": {"type": "object"}}}
_BESIDES: dict[str, Any] = {
    "/health": {
        "operationId": "health",
        "summary": "Whether the server serves. Needs no token.",
        "security": [],
        "responses": {"200": {"description": "It does.", "content": _ANY_OBJECT}},
    },
    "/openapi.json": {
        "operationId": "openapi",
        "summary": "This document.",
        "responses": {
            "200": {"description": "Done.", "content": _ANY_OBJECT},
            "401": {"description": "UNAUTHENTICATED", "content": _ANY_OBJECT},
        },
    },
    "/metrics": {
        "operationId": "metrics",
        "summary": "The numbers of this server, and those that all servers of its database share, for Prometheus.",
        "responses": {
            "200": {"description": "Done.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            "401": {"description": "UNAUTHENTICATED", "content": _ANY_OBJECT},
            "403": {"description": "PERMISSION_DENIED", "content": _ANY_OBJECT},
        },
    },
}
"""Served beside the faces."""


def openapi_document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    types = _wire_types(endpoints)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {path: {"get": operation} for path, operation in _BESIDES.items()}
    for endpoint in endpoints:
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = _operation(endpoint, by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tidegate",
            "version": __version__,
            "description": "A managing catalog for catalog-managed Delta tables.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _wire_types(endpoints: Sequence[Endpoint]) -> list[type]:
    found: dict[type, None] = {}
    for endpoint in endpoints:
        for type in (endpoint.body, endpoint.query, endpoint.answer, endpoint.face.error_type):
            if type is not None:
                found[type] = None
    return list(found)


def _operation(endpoint: Endpoint, by_type: dict[type, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.face.name],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": _responses(endpoint, by_type),
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": endpoint.body_required,
            "content": _json(by_type[endpoint.body]),
        }
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    if endpoint.query is None:
        return []
    components = msgspec.json.schema_components([endpoint.query], ref_template=_REF)[1]
    schema = components[endpoint.query.__name__]
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(described)}
        for name, described in schema["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """In a query, what is optional is left out rather than null."""
    choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema


def _responses(endpoint: Endpoint, by_type: dict[type, Any]) -> dict[str, Any]:
    face = endpoint.face
    success: dict[str, Any] = {"description": "Done."}
    if endpoint.answer is not None:
        success["content"] = {endpoint.content_type.decode(): {"schema": by_type[endpoint.answer]}}
    responses: dict[str, Any] = {str(endpoint.status): success}
    codes: dict[int, dict[str, None]] = defaultdict(dict)
    for error in endpoint.all_errors():
        code = face.code_of(error)
        codes[code.status][code.code] = None
    for status, names in sorted(codes.items()):
        answer: dict[str, Any] = {"description": " or ".join(names)}
        if endpoint.method != "HEAD":
            answer["content"] = _json(by_type[face.error_type])
        responses[str(status)] = answer
    return responses


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
