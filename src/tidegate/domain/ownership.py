"""Who decides on a table's commits: the file system, or a catalog; and the commits that change that.

A table that belongs to nobody is taken over by an ordinary commit on its file system, and given back by one:

    adopt      protocol + catalogManaged, inCommitTimestamp, vacuumProtocolCheck      metaData + the table's id here
    release    protocol - catalogManaged                                              metaData - that id

Everything else of the table stays what it is. Writers of the file system that come later meet a feature that they
respect. Those that are under way meet another commit with their version, and must not get past it: the stock client
would, since it takes a new feature and a new id for changes that an append can stand beside, and would write the next
version into a log that is no longer its own. So there is one more property, `tidegate.adopted`, which no writer knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, cast

from tidegate.domain.commit_owner import OWNER, OWNER_FEATURE, OWNER_PROPERTIES, OWNER_PROPERTY, is_owner_of
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.frozen import frozen
from tidegate.domain.names import TableId, TableName, Version
from tidegate.domain.protocol import LEAST_CONTRACT, TABLE_ID_PROPERTY
from tidegate.domain.stated_properties import own_properties
from tidegate.domain.table_actions import SHOWN_DOMAINS, TableActions, check_storable, parse_table_actions
from tidegate.domain.tables import TableMetadata

MANAGED_FEATURE: Final = "catalogManaged"
ENGINE: Final = "Tidegate"
COORDINATORS: Final = frozenset({"coordinatedCommits-preview", "managedCommit", "managedCommits-dev"})
"""The older feature: a commit owner decides."""
OWNER_NAMES: Final = OWNER_PROPERTIES | {"delta.managedCommit.commitOwner", "delta.managedCommit.commitOwnerConf"}

KNOWN_FEATURES: Final = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "catalogManaged",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Those that the stock client and this catalog know what to do with."""

_FEATURES_OF_WRITER_VERSIONS: Final[Mapping[int, frozenset[str]]] = {
    2: frozenset({"appendOnly", "invariants"}),
    3: frozenset({"checkConstraints"}),
    4: frozenset({"changeDataFeed", "generatedColumns"}),
    5: frozenset({"columnMapping"}),
    6: frozenset({"identityColumns"}),
}
"""What a writer version below 7 means without saying so."""

ADOPTED_PROPERTY: Final = "tidegate.adopted"
"""The version that made the table a managed one."""
ICT_ENABLED: Final = "delta.enableInCommitTimestamps"
ICT_SINCE_VERSION: Final = "delta.inCommitTimestampEnablementVersion"
ICT_SINCE_TIMESTAMP: Final = "delta.inCommitTimestampEnablementTimestamp"


@frozen
class FoundTable:
    """What lies at a location: the newest version, when it was committed, and what it says of the table as a whole."""

    location: str
    version: Version
    timestamp: int
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]
    domains: Mapping[str, str]
    """By domain its configuration."""


class Change(StrEnum):
    ADOPT = "adopt"
    RELEASE = "release"
    OWN = "own"
    """As its commit owner: the commit that says so is put by the client, not by us."""


class Kept(StrEnum):
    """What the catalog keeps of a table that it gives back."""

    EXTERNAL = "external"
    NOTHING = "nothing"


@frozen
class OwnershipCommit:
    """A commit that is ready to be put into the log, and the table's metadata after it."""

    version: Version
    timestamp: int
    content: bytes
    metadata: TableMetadata


@frozen
class Promise:
    """A change of ownership that is under way. It is written down before the commit is put into the log, and struck out
    together with what the catalog does after it; whoever finds it in between goes on with it:

        the log's file of this version holds the commit      the change has happened: the catalog follows
        there is no such file                                it is put there
        another commit has the version                       it can never happen as written: it is planned anew, or ends
    """

    table_id: TableId
    change: Change
    name: TableName
    location: str
    commit: OwnershipCommit | None
    """None: what has to be published first may not be."""
    kept: Kept
    begun_at: int
    begun_by: str
    awaited: Version | None = None
    """The version that a client is going to put, to make us the commit owner."""

    @property
    def doing(self) -> str:
        match self.change:
            case Change.ADOPT:
                return "adopted"
            case Change.RELEASE:
                return "released"
            case Change.OWN:
                return "registered with its commit owner"

    @property
    def version(self) -> Version | None:
        """Of the commit that makes the change; None before it is planned."""
        return self.awaited if self.commit is None else self.commit.version


@frozen
class AdoptableLocation:
    """Tables at this place, or below it, may be taken over, though it is not in the storage of managed tables."""

    location: str
    added_at: int
    added_by: str


def plan_adoption(found: FoundTable, *, table_id: TableId, txn_id: str, now: int) -> OwnershipCommit:
    """The commit that makes the table ours. Raises InvalidRequest for a table that cannot be.

    A table that has us as its commit owner, by this id, is ours already: then it is managed by the catalog instead.
    """
    if is_owned_as(found, table_id):
        found = _without_owner(found)
    check_adoptable(found)
    version, timestamp = Version(found.version + 1), max(now, found.timestamp + 1)
    configuration = {**_configuration(found), TABLE_ID_PROPERTY: table_id, ADOPTED_PROPERTY: str(version)}
    if configuration.get(ICT_ENABLED, "").lower() != "true":
        configuration |= {ICT_SINCE_VERSION: str(version), ICT_SINCE_TIMESTAMP: str(timestamp)}
    configuration[ICT_ENABLED] = "true"
    protocol = _upgraded(found.protocol)
    metadata = {**found.metadata, "configuration": configuration}
    return _change(found, version, timestamp, protocol, metadata, "ADOPT TABLE", txn_id)


def plan_release(found: FoundTable, *, txn_id: str, now: int) -> OwnershipCommit:
    """The commit that gives the table back to its file system."""
    version, timestamp = Version(found.version + 1), max(now, found.timestamp + 1)
    ours = {TABLE_ID_PROPERTY, ADOPTED_PROPERTY}
    configuration = {key: value for key, value in _configuration(found).items() if key not in ours}
    protocol = {
        **found.protocol,
        "readerFeatures": sorted(_features(found.protocol, "readerFeatures") - {MANAGED_FEATURE}),
        "writerFeatures": sorted(_features(found.protocol, "writerFeatures") - {MANAGED_FEATURE}),
    }
    metadata = {**found.metadata, "configuration": configuration}
    return _change(found, version, timestamp, protocol, metadata, "RELEASE TABLE", txn_id)


def check_adoptable(found: FoundTable) -> None:
    check_unowned(found)
    features = _all_features(found.protocol)
    if owned := COORDINATORS & features:
        name = _configuration(found).get(OWNER_PROPERTY)
        raise InvalidRequest(
            f"{found.location} has a commit owner{_named(name)}: version {found.version} has the feature {min(owned)}. "
            f"Take it from its owner first, with ALTER TABLE ... DROP FEATURE '{min(owned)}'."
        )
    if half := OWNER_NAMES & _configuration(found).keys():
        raise InvalidRequest(
            f"{found.location} has the property {min(half)}, but not the feature of tables with a commit owner: who "
            "reads its log cannot tell who decides on it. Unset that property first."
        )
    if unknown := features - KNOWN_FEATURES:
        raise InvalidRequest(
            f"{found.location} has the feature {min(unknown)!r}, which this catalog does not know. Drop that feature "
            "from the table, or use a newer catalog."
        )
    for name, highest in (("minReaderVersion", 3), ("minWriterVersion", 7)):
        if _version(found.protocol, name) > highest:
            raise InvalidRequest(
                f"{found.location} needs {name} {_version(found.protocol, name)}; this catalog knows versions up to "
                f"{highest}. Use a newer catalog."
            )


def check_unowned(found: FoundTable) -> None:
    """That no catalog decides on its commits."""
    if MANAGED_FEATURE in _all_features(found.protocol):
        id = _configuration(found).get(TABLE_ID_PROPERTY)
        of = f", as the table with id {id}" if id else ""
        raise InvalidRequest(
            f"{found.location} belongs to a catalog already{of}: version {found.version} has the feature "
            f"{MANAGED_FEATURE}. Have that catalog release it first."
        )


def is_commit_of(found: FoundTable, table_id: TableId) -> bool:
    """Whether the log says that the table has this id in a catalog."""
    return _configuration(found).get(TABLE_ID_PROPERTY) == table_id and MANAGED_FEATURE in _features(
        found.protocol, "writerFeatures"
    )


def is_owned_as(found: FoundTable, table_id: TableId) -> bool:
    """Whether the log says that we are the table's commit owner, and know it by this id."""
    features = _features(found.protocol, "writerFeatures")
    return is_owner_of(table_id, features=features, properties=_configuration(found))


def found_metadata(found: FoundTable) -> TableMetadata:
    return metadata_of(_written(found))


def found_actions(found: FoundTable) -> TableActions:
    """What it says of the table as a whole, as a commit would."""
    return parse_table_actions(_written(found), what="the log")


def _written(found: FoundTable) -> bytes:
    return _lines([{"protocol": found.protocol}, {"metaData": found.metadata}, *_domains(found)])


def metadata_of(content: bytes) -> TableMetadata:
    """What a commit that says all of a table makes of it."""
    actions = parse_table_actions(content, what="the log")
    check_storable(actions, what="the log")
    if actions.protocol is None or actions.metadata is None:
        raise InvalidRequest("The log has no protocol or no metadata.")
    return TableMetadata(
        columns=actions.metadata.columns,
        partition_columns=actions.metadata.partition_columns,
        protocol=actions.protocol,
        properties=own_properties(actions.metadata.properties),
        domains={domain: actions.domains[domain] for domain in SHOWN_DOMAINS if domain in actions.domains},
        comment=actions.metadata.description,
        catalog_properties={},
    )


def _change(
    found: FoundTable,
    version: Version,
    timestamp: int,
    protocol: Mapping[str, Any],
    metadata: Mapping[str, Any],
    operation: str,
    txn_id: str,
) -> OwnershipCommit:
    info: dict[str, Any] = {
        "inCommitTimestamp": timestamp,
        "timestamp": timestamp,
        "operation": operation,
        "operationParameters": {},
        "readVersion": found.version,
        "isBlindAppend": False,
        "engineInfo": ENGINE,
        "txnId": txn_id,
    }
    written: list[dict[str, Any]] = [{"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}]
    content = _lines(written)
    return OwnershipCommit(version, timestamp, content, metadata_of(_lines([*written, *_domains(found)])))


def _without_owner(found: FoundTable) -> FoundTable:
    configuration = {key: value for key, value in _configuration(found).items() if key not in OWNER_PROPERTIES}
    writer = sorted(_features(found.protocol, "writerFeatures") - {OWNER_FEATURE})
    return replace(
        found,
        protocol={**found.protocol, "writerFeatures": writer},
        metadata={**found.metadata, "configuration": configuration},
    )


def _named(owner: str | None) -> str:
    if owner == OWNER:
        return f", another {OWNER} than this one or one that this one has not heard of"
    return "" if owner is None else f" called {owner[:100]}"


def _domains(found: FoundTable) -> list[dict[str, Any]]:
    return [
        {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": False}}
        for domain, configuration in found.domains.items()
    ]


def _upgraded(protocol: Mapping[str, Any]) -> dict[str, Any]:
    needed = LEAST_CONTRACT.protocol
    writer = _features(protocol, "writerFeatures") | needed.writer_features
    reader = _features(protocol, "readerFeatures") | needed.reader_features
    if _version(protocol, "minWriterVersion") < needed.min_writer_version:
        for version, meant in _FEATURES_OF_WRITER_VERSIONS.items():
            writer |= meant if version <= _version(protocol, "minWriterVersion") else frozenset()
    if _version(protocol, "minReaderVersion") == 2:
        reader, writer = reader | {"columnMapping"}, writer | {"columnMapping"}
    return {
        **protocol,
        "minReaderVersion": needed.min_reader_version,
        "minWriterVersion": needed.min_writer_version,
        "readerFeatures": sorted(reader),
        "writerFeatures": sorted(writer),
    }


def _configuration(found: FoundTable) -> dict[str, str]:
    return dict(found.metadata.get("configuration") or {})


def _features(protocol: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(cast("list[str]", protocol.get(key) or ()))


def _all_features(protocol: Mapping[str, Any]) -> frozenset[str]:
    return _features(protocol, "readerFeatures") | _features(protocol, "writerFeatures")


def _version(protocol: Mapping[str, Any], key: str) -> int:
    return int(protocol[key])


def _lines(actions: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(action, separators=(",", ":")).encode() + b"\n" for action in actions)
