"""PySpark on Tidegate: no server code is imported here, and PySpark itself only when a session is asked for."""

from tidegate.spark.commit_owner import commit_owner
from tidegate.spark.session import configure, session
from tidegate.spark.settings import jar_files

__all__ = ["commit_owner", "configure", "jar_files", "session"]
