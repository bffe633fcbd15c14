package io.unitycatalog.spark;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;

/**
 * Holds Delta to what the catalog has ratified.
 *
 * <p>Delta lists the log's folder and takes a file beyond the latest ratified version for a part of the table. Whoever put
 * it there did so past the catalog, so that nothing may be read from the table until it is gone. The order makes the check
 * free of races: Delta has read its version first, the catalog is asked afterwards, and versions only rise. The catalog is
 * asked once for every new version that Delta comes with, not for every read.
 */
final class RatifiedVersions {
  private static final int TABLES_MAX = 10_000;

  /** By the place of the table, which is never another table's. */
  private static final Map<String, Long> KNOWN = Collections.synchronizedMap(
      new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Long> eldest) {
          return size() > TABLES_MAX;
        }
      });

  private RatifiedVersions() {}

  static Table checked(RestCatalog catalog, Identifier ident, Table table) {
    if (table instanceof DeltaTableV2 delta && delta.catalogTable().isDefined() && isManaged(delta.catalogTable().get())) {
      check(catalog, ident, delta, delta.catalogTable().get());
    }
    return table;
  }

  private static void check(RestCatalog catalog, Identifier ident, DeltaTableV2 table, CatalogTable known) {
    String location = known.location().toString();
    long read = table.initialSnapshot().version();
    if (read <= KNOWN.getOrDefault(location, -1L)) {
      return;
    }
    long ratified = catalog.face().latestVersion(ident, known);
    KNOWN.put(location, ratified);
    if (read > ratified) {
      DeltaLog.invalidateCache(SparkSession.active(), new Path(location));
      throw new Refusals.Refusal(0, "", catalog.fullName(ident) + " cannot be used: its log has a version " + read
          + ", and the catalog has ratified versions up to " + ratified + " only. Somebody wrote to " + location
          + "/_delta_log past the catalog: remove what lies there beyond version " + ratified + ".");
    }
  }

  private static boolean isManaged(CatalogTable table) {
    return table.tableType().equals(CatalogTableType.MANAGED());
  }
}
