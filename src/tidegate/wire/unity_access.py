"""Credentials and permissions of the Unity Catalog API: their JSON."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PrivilegeName = Literal[
    "CREATE CATALOG",
    "USE CATALOG",
    "CREATE SCHEMA",
    "USE SCHEMA",
    "CREATE TABLE",
    "SELECT",
    "MODIFY",
    "MODIFY METADATA",
    "MAINTAIN",
    "MANAGE",
    "CREATE FUNCTION",
    "EXECUTE",
    "CREATE VOLUME",
    "READ VOLUME",
    "CREATE MODEL",
    "CREATE EXTERNAL LOCATION",
    "READ FILES",
    "WRITE FILES",
    "CREATE EXTERNAL TABLE",
    "CREATE EXTERNAL VOLUME",
    "CREATE MANAGED STORAGE",
    "CREATE STORAGE CREDENTIAL",
]


class GenerateTableCredential(Struct, frozen=True):
    table_id: str
    operation: Literal["READ", "READ_WRITE"]


class GeneratePathCredential(Struct, frozen=True):
    url: str
    operation: Literal["PATH_READ", "PATH_READ_WRITE", "PATH_CREATE_TABLE"]


class AwsCredentials(Struct, frozen=True):
    access_key_id: str
    secret_access_key: str
    session_token: str


class AzureUserDelegationSas(Struct, frozen=True):
    sas_token: str


class GcpOauthToken(Struct, frozen=True):
    oauth_token: str


class TemporaryCredentials(Struct, frozen=True):
    """Those of the store that the location is on; for local files none, and no end."""

    aws_temp_credentials: AwsCredentials | None
    azure_user_delegation_sas: AzureUserDelegationSas | None
    gcp_oauth_token: GcpOauthToken | None
    expiration_time: int | None
    url: str


class PermissionsQuery(Struct, frozen=True):
    principal: str | None = None


class PermissionsChange(Struct, frozen=True):
    principal: str
    add: list[PrivilegeName] = []
    remove: list[PrivilegeName] = []


class UpdatePermissions(Struct, frozen=True):
    changes: list[PermissionsChange]


class PrivilegeAssignment(Struct, frozen=True):
    principal: str
    privileges: list[PrivilegeName]


class PermissionsList(Struct, frozen=True):
    privilege_assignments: list[PrivilegeAssignment]
