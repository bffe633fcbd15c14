"""Properties as clients of the Unity Catalog API state them: those of the log and the derived ones, in one map.

The derived ones say what the protocol, the clustering and the last change of metadata are. They are never stored as
properties: a client sends them because the API shows them, and they may not contradict what they were derived from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tidegate.domain.clustering import is_list_of_paths, logical_paths, physical_paths
from tidegate.domain.errors import InvalidRequest
from tidegate.domain.json_values import check_texts, same_json
from tidegate.domain.protocol import CLUSTERING_DOMAIN, TABLE_ID_PROPERTY, Protocol
from tidegate.domain.tables import FEATURE_PREFIX, TableMetadata, is_derived_property, protocol_properties

CLUSTERING_PROPERTY: Final = "clusteringColumns"
LAST_VERSION_PROPERTY: Final = "delta.lastUpdateVersion"
LAST_TIMESTAMP_PROPERTY: Final = "delta.lastCommitTimestamp"

_READER_FEATURES: Final = frozenset(
    {
        *("catalogManaged", "columnMapping", "deletionVectors", "geospatial", "timestampNtz", "typeWidening"),
        *("typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview"),
        *("variantShredding", "variantShredding-preview"),
    }
)
"""The features that readers must know too: a property names a feature without saying so."""


def own_properties(stated: Mapping[str, str]) -> dict[str, str]:
    """Without those that the catalog derives."""
    return {k: v for k, v in stated.items() if not is_derived_property(k) and k != CLUSTERING_PROPERTY}


def check_table_id(stated: Mapping[str, str], table_id: str) -> None:
    if stated.get(TABLE_ID_PROPERTY) != table_id:
        raise InvalidRequest(f"The properties must hold {TABLE_ID_PROPERTY}={table_id}, the id of this table. Send it.")


def check_derived(stated: Mapping[str, str], metadata: TableMetadata) -> None:
    """That nothing is stated of the protocol or the clustering which is not so.

    When metadata changed last is left out: it moves with the commits, and clients send back what they were shown.
    """
    known = protocol_properties(metadata.protocol)
    for key, value in stated.items():
        if (key in known or key.startswith(FEATURE_PREFIX)) and known.get(key) != value:
            is_so = f"it is {known[key]}" if key in known else "the table does not have that feature"
            raise InvalidRequest(
                f"The property {key}={value[:100]} contradicts the log: {is_so}. Send what the log says."
            )
    paths = stated_clustering(stated)
    if paths is not None and not same_json(paths, clustering_shown(metadata) or []):
        raise InvalidRequest(
            f"The property {CLUSTERING_PROPERTY} is not what the log says: "
            f"{json.dumps(clustering_shown(metadata))}. Send that, or leave it out."
        )


def stated_clustering(stated: Mapping[str, str]) -> list[list[str]] | None:
    """Paths in the names that users see; None when nothing is stated."""
    text = stated.get(CLUSTERING_PROPERTY)
    if text is None:
        return None
    try:
        paths: Any = json.loads(text)
        check_texts(paths, f"The property {CLUSTERING_PROPERTY}")
    except (ValueError, RecursionError):
        paths = None
    if is_list_of_paths(paths):
        return paths
    raise InvalidRequest(
        f'{CLUSTERING_PROPERTY} is a list of column paths as JSON, such as [["id"],["address","city"]].'
    )


def clustering_shown(metadata: TableMetadata) -> list[list[str]] | None:
    """The clustering columns in the names that users see; None for a table that is not clustered."""
    domain = metadata.domains.get(CLUSTERING_DOMAIN)
    return None if domain is None else logical_paths(metadata.columns, domain["clusteringColumns"])


def clustering_domain(metadata: TableMetadata, paths: list[list[str]]) -> dict[str, Any]:
    """The domain metadata that says so."""
    return {"clusteringColumns": physical_paths(metadata.columns, paths)}


def stated_protocol(stated: Mapping[str, str]) -> Protocol:
    """For external tables, whose log is not read: as much as the properties say, and else the oldest there is."""
    features = frozenset(
        key.removeprefix(FEATURE_PREFIX) for key, value in stated.items() if key.startswith(FEATURE_PREFIX) and value
    )
    reader = features & _READER_FEATURES
    return Protocol(
        min_reader_version=_version(stated, "delta.minReaderVersion", 3 if reader else 1),
        min_writer_version=_version(stated, "delta.minWriterVersion", 7 if features else 2),
        reader_features=reader,
        writer_features=features,
    )


def _version(stated: Mapping[str, str], key: str, otherwise: int) -> int:
    text = stated.get(key, str(otherwise))
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidRequest(f"The property {key} is a whole number, not {text[:50]!r}.")
    return int(text)
