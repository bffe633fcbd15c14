"""One transaction, seen as the repositories of its resources."""

from __future__ import annotations

import sqlalchemy as sa

from tidegate.db.alarms import SqlAlarms
from tidegate.db.audit import SqlAudit
from tidegate.db.chains import SqlChains
from tidegate.db.commit_reports import SqlCommitReports
from tidegate.db.constraints import SqlConstraints
from tidegate.db.dropped_tables import SqlDroppedTables
from tidegate.db.events import SqlEvents
from tidegate.db.grants import SqlGrants
from tidegate.db.hot_statements import HotStatements
from tidegate.db.identities import SqlAccessTokens, SqlIdentities
from tidegate.db.inline_commits import SqlInlineCommits
from tidegate.db.known_tables import KnownTables
from tidegate.db.namespaces import SqlCatalogs, SqlMetastore, SqlSchemas
from tidegate.db.ownership import SqlOwnership
from tidegate.db.removals import SqlRemovals
from tidegate.db.rights import SqlRights
from tidegate.db.servers import SqlServers
from tidegate.db.staging_tables import SqlStagingTables
from tidegate.db.subscriptions import SqlSubscriptions
from tidegate.db.tables import SqlTables


class SqlUnitOfWork:
    def __init__(self, connection: sa.Connection, known: KnownTables, hot: HotStatements) -> None:
        self.metastore = SqlMetastore(connection)
        self.catalogs = SqlCatalogs(connection)
        self.schemas = SqlSchemas(connection)
        self.staging_tables = SqlStagingTables(connection)
        self.tables = SqlTables(connection, known, hot)
        self.constraints = SqlConstraints(connection)
        self.audit = SqlAudit(connection)
        self.chains = SqlChains(connection)
        self.inline_commits = SqlInlineCommits(connection)
        self.ownership = SqlOwnership(connection)
        self.commit_reports = SqlCommitReports(connection)
        self.grants = SqlGrants(connection)
        self.rights = SqlRights(connection)
        self.identities = SqlIdentities(connection)
        self.access_tokens = SqlAccessTokens(connection)
        self.events = SqlEvents(connection)
        self.alarms = SqlAlarms(connection)
        self.dropped_tables = SqlDroppedTables(connection)
        self.removals = SqlRemovals(connection)
        self.servers = SqlServers(connection)
        self.subscriptions = SqlSubscriptions(connection)
