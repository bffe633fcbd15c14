"""Tidegate as the commit owner of tables on file systems, made known to the stock client of a session.

    owner = commit_owner(spark, "http://127.0.0.1:8080", token)
    spark.sql(f"ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES ({owner.properties})")       the owner takes it over
    spark.sql("INSERT INTO delta.`/lake/orders` ...")                                           the owner decides
    spark.sql(f"ALTER TABLE delta.`/lake/orders` DROP FEATURE '{owner.feature}'")               the owner gives it back

The log of the table says where its owner is; the token stays in this process. A session may know several servers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.spark.connection import connection
from tidegate.spark.jars import owner_jars
from tidegate.spark.settings import CONNECTOR_JAR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEATURE = "coordinatedCommits-preview"
OWNER_PROPERTY = "delta.coordinatedCommits.commitCoordinator-preview"
CONF_PROPERTY = "delta.coordinatedCommits.commitCoordinatorConf-preview"
_PROVIDER = "org.apache.spark.sql.delta.coordinatedcommits.CommitCoordinatorProvider"
_OWNER = "io.tidegate.spark.CommitOwner"
_NEEDED_BY_DELTA = "com.amazonaws.services.dynamodbv2.AmazonDynamoDB"


class CommitOwnerUnavailable(RuntimeError):
    """This session cannot be given a commit owner; the message says what to do."""


@dataclass(frozen=True, slots=True)
class CommitOwner:
    endpoint: str
    name: str = "tidegate"
    feature: str = FEATURE

    @property
    def properties(self) -> str:
        """What `SET TBLPROPERTIES`, or `TBLPROPERTIES` of a new table, takes between its parentheses."""
        conf = json.dumps({"endpoint": self.endpoint})
        return f"'{OWNER_PROPERTY}' = '{self.name}', '{CONF_PROPERTY}' = '{conf}'"


def commit_owner(
    spark: SparkSession, uri: str | None = None, token: str | None = None, *, schema: str = "main.default"
) -> CommitOwner:
    """Makes the server at `uri` known as a commit owner; once more for another server, or for another token.

    `uri` and `token` default to TIDEGATE_URI and TIDEGATE_TOKEN. `schema` is where the catalog lists the tables that it
    takes over. Two jars that Delta needs for this, and for nothing else, are fetched at the first time.
    """
    wanted = connection(uri=uri, token=token, catalogs=[schema.partition(".")[0] or "main"])
    if not wanted.token:
        raise ValueError("A commit owner takes a token: pass token=..., or unset TIDEGATE_CLIENT_ID and its secret.")
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise CommitOwnerUnavailable(
            "This session runs in another process (Spark Connect), whose Delta cannot be given an owner from here."
        )
    loader = _loader_of_delta(jvm)
    if not _has(jvm, loader, _NEEDED_BY_DELTA):
        _add(jvm, loader, owner_jars())
    if not _has(jvm, loader, _OWNER):
        _add(jvm, loader, [CONNECTOR_JAR])
    _connect(jvm, loader, wanted.uri, wanted.token, schema)
    return CommitOwner(wanted.uri)


def _loader_of_delta(jvm: Any) -> Any:
    """The class loader that has Delta: what it is to find has to be where it is."""
    try:
        here = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return jvm.java.lang.Class.forName(_PROVIDER, False, here).getClassLoader()
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        raise CommitOwnerUnavailable(
            "This session has no Delta: start it with tidegate.spark.session, or set up its builder with "
            "tidegate.spark.configure."
        ) from None


def _has(jvm: Any, loader: Any, name: str) -> bool:
    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Exception as error:
        if "ClassNotFoundException" not in str(error):
            raise
        return False
    return True


def _add(jvm: Any, loader: Any, jars: list[Path]) -> None:
    """Spark's loader of the jars that a session is started with takes more later; Java's own does not."""
    if not loader.getClass().getName().endswith("MutableURLClassLoader"):
        needed = ",".join(map(str, jars))
        raise CommitOwnerUnavailable(
            f"Delta is part of Spark's own jars here, and jars cannot be added to them later: put {needed} there."
        )
    for jar in jars:
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def _connect(jvm: Any, loader: Any, uri: str, token: str, schema: str) -> None:
    # By reflection: Py4J looks for classes where the first of them came from, which may not know a jar that was added.
    text = jvm.java.lang.Class.forName("java.lang.String")
    types = _array(jvm, "java.lang.Class", [text, text, text])
    values = _array(jvm, "java.lang.Object", [uri, token, schema])
    try:
        owner = jvm.java.lang.Class.forName(_OWNER, True, loader)
        owner.getMethod("connect", types).invoke(None, values)
    except Exception as error:
        if "already registered" not in str(error):
            raise
        raise CommitOwnerUnavailable(
            "Another commit owner is called tidegate in this Java process already: start a new one."
        ) from None


def _array(jvm: Any, of: str, values: list[Any]) -> Any:
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName(of), len(values))
    for index, value in enumerate(values):
        array[index] = value
    return array
