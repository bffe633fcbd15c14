"""What this package asks of a Spark session where PySpark itself is not fully typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def sql(spark: SparkSession, statement: str) -> DataFrame:
    return cast("Any", spark).sql(statement)


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    return cast("Any", spark).createDataFrame([], schema)


def column_list(spark: SparkSession, schema: StructType) -> str:
    """The columns for a CREATE TABLE. All may be NULL: that no row of now has one is not a promise."""
    java_schema = cast("Any", spark)._jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    return java_schema.asNullable().toDDL()


def delete_folder(spark: SparkSession, folder: str) -> None:
    """Wherever Spark keeps checkpoints, there is a Hadoop file system for it."""
    untyped = cast("Any", spark)
    path = untyped._jvm.org.apache.hadoop.fs.Path(folder)
    path.getFileSystem(untyped._jsc.hadoopConfiguration()).delete(path, True)
