"""A Spark that tells everything it can be made to tell, for those who look for a secret in it.

Its log is at DEBUG, settings and events are logged, and each statement's rows go to the standard output.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import tidegate.spark
from tests.spark import sessions

LOG4J = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c: %m%n%ex
logger.sql.name = org.apache.spark.sql
logger.sql.level = debug
logger.unity.name = io.unitycatalog
logger.unity.level = debug
logger.delta.name = io.delta
logger.delta.level = debug
"""

STATEMENTS = [
    "CREATE SCHEMA main.talk COMMENT 'c'",
    "CREATE TABLE main.talk.t (id INT) TBLPROPERTIES ('team' = 'sea')",
    "INSERT INTO main.talk.t VALUES (1), (2)",
    "UPDATE main.talk.t SET id = 3 WHERE id = 1",
    "EXPLAIN EXTENDED SELECT * FROM main.talk.t WHERE id > 1",
    "EXPLAIN FORMATTED SELECT * FROM main.talk.t",
    "EXPLAIN EXTENDED INSERT INTO main.talk.t VALUES (4)",
    "EXPLAIN EXTENDED CREATE TABLE main.talk.u AS SELECT 1 AS id",
    "DESCRIBE EXTENDED main.talk.t",
    "DESCRIBE DETAIL main.talk.t",
    "DESCRIBE HISTORY main.talk.t",
    "DESCRIBE SCHEMA EXTENDED main.talk",
    "SHOW TABLE EXTENDED IN main.talk LIKE '*'",
    "SHOW TBLPROPERTIES main.talk.t",
    "SHOW CATALOGS",
    "SET",
    "SET -v",
    "SET spark.sql.catalog.main.token",
    "SELECT * FROM main.talk.missing",
    "CREATE TABLE main.talk.p (id INT) USING PARQUET",
    "ALTER TABLE main.talk.t UNSET TBLPROPERTIES ('delta.checkpointPolicy')",
    "DROP SCHEMA main.talk",
    "DROP SCHEMA main.talk CASCADE",
]


def main(folder: Path) -> None:
    config = folder / "log4j2.properties"
    config.write_text(LOG4J.format(file=folder / "driver.log"))
    (folder / "events").mkdir()
    talkative = {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{config}",
        "spark.logConf": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{folder}/events",
    }
    uri, token = os.environ["TIDEGATE_URI"], os.environ["TIDEGATE_TOKEN"]
    spark = tidegate.spark.session(uri=uri, token=token, master="local[2]", **{**sessions.SMALL, **talkative})
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    print("command line:", Path(f"/proc/{java}/cmdline").read_text())
    for statement in STATEMENTS:
        print(">", statement)
        try:
            print(*spark.sql(statement).collect(), sep="\n")
        except Exception as error:
            print("refused:", error)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
