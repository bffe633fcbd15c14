"""The commit owner of a table on a file system: the older way in which a catalog decides on commits.

Such a table says in its log who decides on it. The feature restricts writers only, so that readers of the file system
may go on reading what is published; a writer finds the owner by its name and asks it:

    protocol    writerFeatures: coordinatedCommits-preview, inCommitTimestamp, ...
    metaData    delta.coordinatedCommits.commitCoordinator-preview      tidegate
                delta.coordinatedCommits.commitCoordinatorConf-preview  {"endpoint": "http://..."}     never a secret
                delta.coordinatedCommits.tableConf-preview              {"tableId": "<the table's id here>"}

The text of the RFC calls the same things `managedCommit`, `delta.managedCommit.commitOwner` and `...commitOwnerConf`,
and stages commits in `_commits`. These are the names that the stock client uses; it stages in `_staged_commits`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from tidegate.domain.errors import InvalidRequest
from tidegate.domain.protocol import Protocol, check_domain_features, check_protocol

OWNER: Final = "tidegate"
OWNER_FEATURE: Final = "coordinatedCommits-preview"
OWNER_PROPERTY: Final = "delta.coordinatedCommits.commitCoordinator-preview"
OWNER_CONF_PROPERTY: Final = "delta.coordinatedCommits.commitCoordinatorConf-preview"
TABLE_CONF_PROPERTY: Final = "delta.coordinatedCommits.tableConf-preview"
OWNER_PROPERTIES: Final = frozenset({OWNER_PROPERTY, OWNER_CONF_PROPERTY, TABLE_CONF_PROPERTY})
TABLE_ID_KEY: Final = "tableId"
ENDPOINT_KEY: Final = "endpoint"
_TIMESTAMPS: Final = ("inCommitTimestamp", "delta.enableInCommitTimestamps")


def is_owner_of(table_id: str, *, features: frozenset[str], properties: Mapping[str, str]) -> bool:
    """Whether the log says that we are the commit owner, and that we know the table by this id."""
    return (
        OWNER_FEATURE in features
        and properties.get(OWNER_PROPERTY) == OWNER
        and _table_conf(properties).get(TABLE_ID_KEY) == table_id
    )


def check_owned_contract(
    *, table_id: str, protocol: Protocol, properties: Mapping[str, str], domains: Mapping[str, object]
) -> None:
    """What a table keeps for as long as we are its commit owner."""
    check_protocol(protocol)
    if not is_owner_of(table_id, features=protocol.writer_features, properties=properties):
        raise InvalidRequest(
            f"The log names {OWNER} as the commit owner, with the table's id {table_id}, and this commit would change "
            f"that. Give the table back instead: ALTER TABLE ... DROP FEATURE '{OWNER_FEATURE}'."
        )
    feature, property = _TIMESTAMPS
    if feature not in protocol.writer_features or properties.get(property) != "true":
        raise InvalidRequest(f"A table with a commit owner needs the feature {feature} and {property}=true. Keep them.")
    check_domain_features(protocol, domains)


def check_conf(properties: Mapping[str, str]) -> None:
    """That the conf says where the owner is and nothing else: whoever can read the log can read it."""
    try:
        conf = json.loads(properties.get(OWNER_CONF_PROPERTY, "{}"))
    except ValueError:
        conf = None
    endpoint = cast("dict[str, Any]", conf).get(ENDPOINT_KEY) if isinstance(conf, dict) else None
    if not isinstance(endpoint, str):
        raise InvalidRequest(
            f'{OWNER_CONF_PROPERTY} is a JSON object with the {ENDPOINT_KEY}: {{"{ENDPOINT_KEY}": "http://host:port"}}.'
        )
    if others := cast("dict[str, Any]", conf).keys() - {ENDPOINT_KEY}:
        raise InvalidRequest(
            f"{OWNER_CONF_PROPERTY} holds {min(others)[:100]!r}. Whoever reads the log reads that: leave nothing but "
            f"the {ENDPOINT_KEY} there, and give secrets to those who need them."
        )
    if "@" in endpoint:
        raise InvalidRequest(f"The {ENDPOINT_KEY} in {OWNER_CONF_PROPERTY} holds a user or password. Take them out.")


def gives_back(properties: Mapping[str, str]) -> bool:
    """Whether a commit with these properties takes the table from its owner."""
    return not OWNER_PROPERTIES & properties.keys()


def _table_conf(properties: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        conf = json.loads(properties.get(TABLE_CONF_PROPERTY, "{}"))
    except ValueError:
        return {}
    return cast("dict[str, Any]", conf) if isinstance(conf, dict) else {}
