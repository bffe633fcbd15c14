package io.unitycatalog.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.delta.storage.commit.uccommitcoordinator.UCCommitCoordinatorClient;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.delta.DeltaConfigs;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.hooks.UpdateCatalog;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Specification v0.1.0. Delta sends and asks for commits by itself and leaves the rest to its catalog: a place for a new
 * table, its creation once version 0 lies there, and loading it.
 */
final class UnityFace implements Face {
  private static final String TABLE_ID = UCCommitCoordinatorClient.UC_TABLE_ID_KEY;
  private static final String CATALOG_MANAGED = "delta.feature.catalogManaged";
  /** What Delta derives from the features that a table has, which a replaced table keeps. */
  private static final List<String> DERIVED = List.of("delta.feature.", "delta.minReaderVersion", "delta.minWriterVersion");

  private final Rest rest;
  private final String catalog;

  UnityFace(Rest rest, String catalog) {
    this.rest = rest;
    this.catalog = catalog;
  }

  @Override
  public Map<String, String> toCreate(Identifier ident, Map<String, String> properties) {
    Map<String, String> managed = managed(properties);
    JsonNode staging = rest.call("POST", "/staging-tables", named(ident));
    managed.put(TableCatalog.PROP_LOCATION, staging.path("staging_location").asText());
    managed.put(TABLE_ID, staging.path("id").asText());
    return managed;
  }

  @Override
  public Map<String, String> toReplace(Identifier ident, Map<String, String> properties) {
    return kept(ident, rest.get(table(ident)), properties);
  }

  @Override
  public Map<String, String> toCreateOrReplace(Identifier ident, Map<String, String> properties) {
    try {
      return toReplace(ident, properties);
    } catch (Refusals.Refusal refusal) {
      if (refusal.type.equals("TABLE_DOES_NOT_EXIST")) {
        return toCreate(ident, properties);
      }
      throw refusal;
    }
  }

  /** Delta finds the place by itself. What the table was told of Delta's settings holds on, as it does in v1.0. */
  private Map<String, String> kept(Identifier ident, JsonNode table, Map<String, String> properties) {
    if (!table.path("table_type").asText().equals("MANAGED")) {
      throw new UnsupportedOperationException(
          name(ident) + " is an external table and cannot be replaced: drop it, and create it anew.");
    }
    Map<String, String> managed = managed(properties);
    table.path("properties").properties().forEach(entry -> {
      if (isSetting(entry.getKey(), entry.getValue().asText())) {
        managed.putIfAbsent(entry.getKey(), entry.getValue().asText());
      }
    });
    return managed;
  }

  private static boolean isSetting(String key, String value) {
    if (!key.startsWith("delta.") || DERIVED.stream().anyMatch(key::startsWith)) {
      return false;
    }
    try {
      DeltaConfigs.validateConfiguration(key, value, false, scala.collection.immutable.Map$.MODULE$.empty());
      return true;
    } catch (Exception notForUsers) {
      return false; // One that Delta keeps for itself, such as the highest column id: it finds it in the log.
    }
  }

  private static Map<String, String> managed(Map<String, String> properties) {
    for (String key : List.of(TABLE_ID, TableCatalog.PROP_IS_MANAGED_LOCATION)) {
      if (properties.containsKey(key)) {
        throw new IllegalArgumentException("The property " + key + " is set by the catalog: leave it out.");
      }
    }
    Map<String, String> managed = new HashMap<>(properties);
    managed.putIfAbsent(CATALOG_MANAGED, "supported");
    managed.put(TableCatalog.PROP_IS_MANAGED_LOCATION, "true");
    return managed;
  }

  @Override
  public Table load(Identifier ident) {
    return UnityTable.toSpark(rest.get(table(ident)));
  }

  @Override
  public void create(Identifier ident, StructType schema, String[] partitions, Map<String, String> properties) {
    post(ident, "MANAGED", properties.get(TableCatalog.PROP_LOCATION), properties.get(TableCatalog.PROP_COMMENT),
        UnityTable.describe(schema, List.of(partitions), properties));
  }

  @Override
  public void register(Identifier ident, String location, String comment) {
    Snapshot log = DeltaLog.forTableWithSnapshot(SparkSession.active(), location)._2();
    post(ident, "EXTERNAL", location, comment, UnityTable.describe(
        log.schema(),
        CollectionConverters.asJava(log.metadata().partitionColumns()),
        CollectionConverters.asJava(UpdateCatalog.updatedProperties(log))));
  }

  private void post(Identifier ident, String type, String location, String comment, ObjectNode description) {
    ObjectNode body = named(ident).setAll(description);
    body.put("table_type", type).put("data_source_format", "DELTA").put("storage_location", location);
    rest.call("POST", "/tables", body.put("comment", comment));
  }

  /** The version does not come with the table: it is asked for with the commits, none of which is wanted. */
  @Override
  public long latestVersion(Identifier ident, CatalogTable table) {
    String id = table.storage().properties().get(TABLE_ID).get();
    String uri = Rest.encode(table.location().toString());
    JsonNode answer = rest.get("/delta/preview/commits?table_id=" + Rest.encode(id) + "&table_uri=" + uri
        + "&start_version=" + Long.MAX_VALUE);
    return answer.path("latest_table_version").asLong();
  }

  @Override
  public void checkPlace(String location) {
    ObjectNode body = Rest.JSON.createObjectNode().put("url", location).put("operation", "PATH_CREATE_TABLE");
    rest.call("POST", "/temporary-path-credentials", body);
  }

  /** Delta hears a refusal of this face at once. */
  @Override
  public void checkWritable(Identifier ident) {}

  @Override
  public void drop(Identifier ident) {
    rest.call("DELETE", table(ident), null);
  }

  @Override
  public void rename(Identifier from, String to) {
    throw new UnsupportedOperationException("A table cannot be renamed over specification v0.1.0: remove spark.sql.catalog."
        + catalog + ".deltaRestApi.enabled=false, and rename " + name(from) + " over Delta REST v1.0.");
  }

  private ObjectNode named(Identifier ident) {
    ObjectNode body = Rest.JSON.createObjectNode();
    return body.put("name", ident.name()).put("catalog_name", catalog).put("schema_name", ident.namespace()[0]);
  }

  private String table(Identifier ident) {
    return "/tables" + Rest.path(name(ident));
  }

  private String name(Identifier ident) {
    return catalog + "." + ident.namespace()[0] + "." + ident.name();
  }
}
