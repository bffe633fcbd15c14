"""Temporary credentials, as the old API asks for them: by a table's id, or for a path."""

from __future__ import annotations

from tidegate.domain import errors
from tidegate.domain.credentials import Credential, CredentialOperation
from tidegate.http.endpoints import Call, Endpoint
from tidegate.http.unity.face import UNITY
from tidegate.services.credentials import credentials_by_id, path_credentials
from tidegate.wire import unity_access as wire


async def of_table(call: Call) -> wire.TemporaryCredentials:
    body: wire.GenerateTableCredential = call.body
    operation = CredentialOperation(body.operation)
    return from_credential(await credentials_by_id(call.env, call.caller, body.table_id, operation))


async def of_path(call: Call) -> wire.TemporaryCredentials:
    body: wire.GeneratePathCredential = call.body
    reading = body.operation == "PATH_READ"
    operation = CredentialOperation.READ if reading else CredentialOperation.READ_WRITE
    return from_credential(await path_credentials(call.env, call.caller, body.url, operation))


def from_credential(credential: Credential) -> wire.TemporaryCredentials:
    config = credential.config
    aws = azure = gcp = None
    if "s3.access-key-id" in config:
        aws = wire.AwsCredentials(
            config["s3.access-key-id"], config["s3.secret-access-key"], config.get("s3.session-token", "")
        )
    if "azure.sas-token" in config:
        azure = wire.AzureUserDelegationSas(config["azure.sas-token"])
    if "gcs.oauth-token" in config:
        gcp = wire.GcpOauthToken(config["gcs.oauth-token"])
    return wire.TemporaryCredentials(aws, azure, gcp, credential.expires_at, credential.prefix)


ENDPOINTS: list[Endpoint] = [
    Endpoint(
        UNITY,
        "POST",
        "/temporary-table-credentials",
        "generateTemporaryTableCredentials",
        "Credentials for the files of a table or of a staging table.",
        of_table,
        body=wire.GenerateTableCredential,
        answer=wire.TemporaryCredentials,
        errors=(errors.InvalidRequest, errors.NoSuchTable),
    ),
    Endpoint(
        UNITY,
        "POST",
        "/temporary-path-credentials",
        "generateTemporaryPathCredentials",
        "Credentials to read at a place, or to write where an external table shall be.",
        of_path,
        body=wire.GeneratePathCredential,
        answer=wire.TemporaryCredentials,
        errors=(errors.InvalidRequest,),
    ),
]
