"""Admission: a commit is looked at before it is ratified, and says the same as the request that proposes it.

    the file                                   the request              decided
    commitInfo, add, add                       add-commit               admitted
    commitInfo, metaData with a new column     add-commit               400: line 2, metaData.schemaString
    commitInfo, add                            add-commit, set-columns  400: the staged commit has no metaData
    commitInfo, metaData with a new column     add-commit, set-columns  admitted: it says so itself

So nobody changes a table's metadata without saying so, and who says so can be asked whether they may. Results are
compared, not spellings: what the file makes of the table, and what the request makes of it. Two things are let through,
because the stock client does so and they are harmless: the mark of row tracking, which moves with the data and is told
late or not at all, and a metaData that leaves everything as it was. The comment is not compared: it may change in the
catalog alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tidegate.domain.clustering import physical_name
from tidegate.domain.columns import log_schema
from tidegate.domain.commit_contents import STAGED, CommitContent, read_content, timestamp_of
from tidegate.domain.commit_policies import Admission, policies_of
from tidegate.domain.commits import Commit
from tidegate.domain.desired_metadata import metadata_actions
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.json_values import same_json
from tidegate.domain.protocol import CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN, Protocol
from tidegate.domain.stated_properties import own_properties
from tidegate.domain.table_actions import without_name
from tidegate.domain.tables import Table, TableMetadata
from tidegate.domain.updates import Action, RemoveDomainMetadata, SetDomainMetadata, apply_metadata, find

KNOWN_FEATURES: Final = frozenset(
    {
        *("allowColumnDefaults", "appendOnly", "catalogManaged", "changeDataFeed", "checkConstraints"),
        *("checkpointProtection", "clustering", "collations", "collations-preview", "columnMapping"),
        *("deletionVectors", "domainMetadata", "generatedColumns", "geospatial", "geospatial-preview"),
        *("icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV1", "icebergWriterCompatV3"),
        *("identityColumns", "inCommitTimestamp", "inCommitTimestamp-preview", "invariants"),
        *("materializePartitionColumns", "rowTracking", "timestampNtz", "typeWidening", "typeWidening-preview"),
        *("v2Checkpoint", "vacuumProtocolCheck", "variantShredding", "variantShredding-preview"),
        *("variantType", "variantType-preview"),
    }
)
"""What a commit may add to a table's protocol. What a table has from its creation, it has."""

MAPPING_MODE: Final = "delta.columnMapping.mode"


def must_look(table: Table) -> bool:
    """Whether a commit of this table is not decided on before somebody has read it."""
    policies = policies_of(table.metadata)
    return policies.admission is Admission.FULL or policies.need_content


def admit_staged(content: bytes, commit: Commit) -> CommitContent:
    """What a staged file says, if it is what is proposed as far as that can be told without its table."""
    if len(content) != commit.file_size:
        raise InvalidRequest(
            f"The staged file {commit.file_name} has {len(content)} bytes, but {commit.file_size} are proposed "
            "(file-size). Write it whole before you propose it."
        )
    read = read_content(content, what=STAGED)
    timestamp = timestamp_of(read)
    if timestamp != commit.timestamp:
        raise InvalidRequest(
            f"{read.where('commitInfo', 'commitInfo.inCommitTimestamp')} is {timestamp}, but {commit.timestamp} is "
            "proposed (timestamp). Send what the file says."
        )
    txn_id = read.info.get("txnId")
    if not isinstance(txn_id, str) or not txn_id:
        raise InvalidRequest(
            f"{read.where('commitInfo', 'commitInfo.txnId')} is missing. Give every commit one of its own."
        )
    return read


def not_staged(commit: Commit) -> InvalidRequest:
    return InvalidRequest(f"The staged file {commit.file_name} is not there. Write it before you propose it.")


def check_admission(
    content: CommitContent, actions: Sequence[Action], *, before: TableMetadata, after: TableMetadata
) -> None:
    """That the content makes of the metadata `before` what the request makes of it, which is `after`."""
    if after is not before or _speaks_of_table(content):
        _check_features(content, before.protocol)
        learned = apply_metadata(before, metadata_actions(before, None, content.says), in_log=True)
        _check_protocols(content, declared=after.protocol, said=learned.protocol)
        _check_metadata(content, declared=after, said=learned)
        _check_domains(content, actions, declared=after, said=learned)
    if after.properties.get(MAPPING_MODE, "none") != "none":
        _check_column_names(content, after)


def _speaks_of_table(content: CommitContent) -> bool:
    """Of more than the mark of row tracking, which most commits move."""
    says = content.says
    return (
        says.metadata is not None
        or says.protocol is not None
        or CLUSTERING_DOMAIN in says.domains
        or bool(says.removed_domains)
    )


def _check_features(content: CommitContent, before: Protocol) -> None:
    if content.says.protocol is None:
        return
    unknown = content.says.protocol.features() - before.features() - KNOWN_FEATURES
    if unknown:
        where = content.where("protocol", "protocol.writerFeatures")
        raise InvalidRequest(
            f"{where} names the feature {min(unknown)[:100]!r}, which this catalog does not know. "
            "It cannot tell whether the table stays sound with it. Leave it out."
        )


def _check_protocols(content: CommitContent, *, declared: Protocol, said: Protocol) -> None:
    for field, ours, theirs in (
        ("minReaderVersion", declared.min_reader_version, said.min_reader_version),
        ("minWriterVersion", declared.min_writer_version, said.min_writer_version),
        ("readerFeatures", sorted(declared.reader_features), sorted(said.reader_features)),
        ("writerFeatures", sorted(declared.writer_features), sorted(said.writer_features)),
    ):
        if ours != theirs:
            raise _differs(content, "protocol", f"protocol.{field}", declared=ours, said=theirs)


def _check_metadata(content: CommitContent, *, declared: TableMetadata, said: TableMetadata) -> None:
    if declared.columns != said.columns and not same_json(log_schema(declared.columns), log_schema(said.columns)):
        ours, theirs = declared.columns.names(), said.columns.names()
        if ours == theirs:
            ours, theirs = [], []  # their types or their metadata: too much to repeat
        raise _differs(content, "metaData", "metaData.schemaString", declared=ours, said=theirs)
    if declared.partition_columns != said.partition_columns:
        ours, theirs = list(declared.partition_columns), list(said.partition_columns)
        raise _differs(content, "metaData", "metaData.partitionColumns", declared=ours, said=theirs)
    ours, theirs = own_properties(declared.properties), own_properties(said.properties)
    for key in sorted({*ours, *theirs}):
        if ours.get(key) != theirs.get(key):
            field = f"metaData.configuration[{key[:200]!r}]"
            raise _differs(content, "metaData", field, declared=ours.get(key), said=theirs.get(key))


def _check_domains(
    content: CommitContent, actions: Sequence[Action], *, declared: TableMetadata, said: TableMetadata
) -> None:
    """The clustering always, and every domain that the request speaks of. What users keep in theirs is their own.

    The stock client that lost a race writes a later mark of row tracking into its file, and goes on to tell the one
    that it told before: a mark in the file is what counts.
    """
    updates = find(actions, SetDomainMetadata)
    removals = find(actions, RemoveDomainMetadata)
    told: Mapping[str, object] = {} if updates is None else updates.updates
    for domain in sorted({CLUSTERING_DOMAIN, *told}):
        if domain == ROW_TRACKING_DOMAIN and domain in content.says.domains:
            continue
        in_file = content.says.domains.get(domain, said.domains.get(domain))
        if not same_json(without_name(declared.domains.get(domain)), without_name(in_file)):
            raise _domain_differs(content, domain, declared=declared.domains.get(domain), said=in_file)
    for domain in () if removals is None else removals.domains:
        if domain not in content.says.removed_domains and (domain in said.domains or domain in content.says.domains):
            raise _domain_differs(content, domain, declared=None, said=said.domains.get(domain))
    if ROW_TRACKING_DOMAIN in content.says.removed_domains and ROW_TRACKING_DOMAIN in declared.domains:
        raise _domain_differs(content, ROW_TRACKING_DOMAIN, declared=declared.domains[ROW_TRACKING_DOMAIN], said=None)


def _check_column_names(content: CommitContent, metadata: TableMetadata) -> None:
    """With column mapping files name columns by other names than users do; what is not so named reads as NULL.

    Only what is surely wrong is refused: no name is one of the files', and one is a user's. A file that was written
    before a column was dropped may have names that nobody knows any more.
    """
    physical = {physical_name(field) for field in metadata.columns.fields}
    names = content.files.column_names()
    if names & physical:
        return
    logical = names & {field.name for field in metadata.columns.fields}
    if logical:
        field = next(one for one in metadata.columns.fields if one.name in logical)
        raise InvalidRequest(
            f"A file that {content.what} adds names the column {field.name!r} (add.stats, add.partitionValues). The "
            f"table has column mapping: in its files that column is called {physical_name(field)!r}, and every reader "
            "would find NULLs. Write the files with these names, or create the table with "
            f"{MAPPING_MODE}=none for clients that cannot."
        )


def _domain_differs(content: CommitContent, domain: str, *, declared: object, said: object) -> InvalidRequest:
    action = f"domainMetadata {domain}"
    return _differs(content, action, f"domainMetadata {domain[:100]!r}", declared=declared, said=said)


def _differs(content: CommitContent, action: str, field: str, *, declared: object, said: object) -> InvalidRequest:
    kind = action.partition(" ")[0]
    values = "" if declared == said else f": the request leads to {_short(declared)}, the commit to {_short(said)}"
    if action in content.lines:
        return InvalidRequest(
            f"{content.where(action, field)} is not what the request says{values}. Declare in the request all that "
            "the commit changes, and send what the file says."
        )
    return InvalidRequest(
        f"The request changes {field}, but {content.what} has no such {kind}{values}. Write into the commit what the "
        "request declares."
    )


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 200 else text[:200] + "..."
