package io.unitycatalog.spark;

import java.util.Map;

import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.StructType;

/**
 * One of the two REST faces by which a session speaks of its tables: {@link DeltaFace} (v1.0), or {@link UnityFace} (v0.1.0)
 * where {@code deltaRestApi.enabled=false} is set. Delta takes the same setting for its commits.
 */
interface Face {
  /** The properties with which Delta makes a new managed table. */
  Map<String, String> toCreate(Identifier ident, Map<String, String> properties);

  /** The properties with which Delta replaces a managed table. */
  Map<String, String> toReplace(Identifier ident, Map<String, String> properties);

  /** As {@link #toReplace} if the table is there, else as {@link #toCreate}. */
  Map<String, String> toCreateOrReplace(Identifier ident, Map<String, String> properties);

  /** The table, where Delta does not load it by itself. */
  Table load(Identifier ident);

  /** Tells the catalog of a managed table whose version 0 is written, where Delta does not tell it by itself. */
  void create(Identifier ident, StructType schema, String[] partitions, Map<String, String> properties);

  /** Tells the catalog of an external table, whose log is at its place already. */
  void register(Identifier ident, String location, String comment);

  long latestVersion(Identifier ident, CatalogTable table);

  /** Refused unless an external table may be made there, which is asked before anything is written. */
  void checkPlace(String location);

  /** Refused to those who may not write to the table; whatever else is wrong is told by who loads it. */
  void checkWritable(Identifier ident);

  void drop(Identifier ident);

  void rename(Identifier from, String to);
}
