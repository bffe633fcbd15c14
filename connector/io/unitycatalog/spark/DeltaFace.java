package io.unitycatalog.spark;

import java.util.Map;

import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.types.StructType;

/** Delta REST v1.0, by which Delta itself stages, creates, loads and replaces managed tables. */
final class DeltaFace implements Face {
  private final Rest rest;
  private final String catalog;

  DeltaFace(Rest rest, String catalog) {
    this.rest = rest;
    this.catalog = catalog;
  }

  @Override
  public Map<String, String> toCreate(Identifier ident, Map<String, String> properties) {
    return properties;
  }

  @Override
  public Map<String, String> toReplace(Identifier ident, Map<String, String> properties) {
    return properties;
  }

  @Override
  public Map<String, String> toCreateOrReplace(Identifier ident, Map<String, String> properties) {
    return properties;
  }

  /** Only reached for what is not a Delta table. */
  @Override
  public Table load(Identifier ident) {
    throw new UnsupportedOperationException(name(ident) + " is not a Delta table: it cannot be read here.");
  }

  @Override
  public void create(Identifier ident, StructType schema, String[] partitions, Map<String, String> properties) {
    throw new UnsupportedOperationException("Only Delta can create the managed table " + name(ident) + ".");
  }

  @Override
  public void register(Identifier ident, String location, String comment) {
    rest.call("POST", tables(ident), ExternalTable.describe(ident.name(), location, comment));
  }

  @Override
  public long latestVersion(Identifier ident, CatalogTable table) {
    return rest.get(table(ident)).path("latest-table-version").asLong();
  }

  @Override
  public void checkPlace(String location) {
    rest.get("/delta/v1/temporary-path-credentials?operation=READ_WRITE&location=" + Rest.encode(location));
  }

  @Override
  public void checkWritable(Identifier ident) {
    try {
      rest.get(table(ident) + "/credentials?operation=READ_WRITE");
    } catch (Refusals.Refusal refusal) {
      if (refusal.status == 403) {
        throw refusal;
      }
    }
  }

  @Override
  public void drop(Identifier ident) {
    rest.call("DELETE", table(ident), null);
  }

  @Override
  public void rename(Identifier from, String to) {
    rest.call("POST", table(from) + "/rename", Rest.JSON.createObjectNode().put("new-name", to));
  }

  private String tables(Identifier ident) {
    return "/delta/v1" + Rest.path("catalogs", catalog, "schemas", ident.namespace()[0], "tables");
  }

  private String table(Identifier ident) {
    return tables(ident) + Rest.path(ident.name());
  }

  private String name(Identifier ident) {
    return catalog + "." + ident.namespace()[0] + "." + ident.name();
  }
}
