package io.unitycatalog.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.delta.storage.commit.uccommitcoordinator.UCConfigUtils;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What Delta leaves to the catalog behind it: schemas, listing, dropping, renaming, the registration of external tables, and
 * what the {@link Face} of the session leaves to it besides.
 */
final class RestCatalog implements TableCatalog, SupportsNamespaces, FunctionCatalog {
  private static final int PAGES_MAX = 100_000;

  private String name;
  private Rest rest;
  private Face face;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    Map<String, String> given = options.asCaseSensitiveMap();
    this.name = name;
    this.rest = new Rest(name, given);
    this.face = UCConfigUtils.isDeltaRestApiEnabled(given) ? new DeltaFace(rest, name) : new UnityFace(rest, name);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    return new String[] {"default"};
  }

  // ---- schemas

  @Override
  public String[][] listNamespaces() {
    return Refusals.explainedNamespace(this, new String[0], () ->
        pages("/schemas?catalog_name=" + Rest.encode(name), "schemas")
            .map(schema -> new String[] {schema.path("name").asText()})
            .toArray(String[][]::new));
  }

  @Override
  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length == 0) {
      return listNamespaces();
    }
    loadSchema(namespace);
    return new String[0][];
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    JsonNode schema = loadSchema(namespace);
    Map<String, String> metadata = propertiesOf(schema);
    putText(metadata, SupportsNamespaces.PROP_COMMENT, schema.path("comment"));
    putText(metadata, SupportsNamespaces.PROP_LOCATION, schema.path("storage_location"));
    putText(metadata, SupportsNamespaces.PROP_OWNER, schema.path("owner"));
    return metadata;
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    ObjectNode body = Rest.JSON.createObjectNode();
    body.put("name", schemaName(namespace)).put("catalog_name", name);
    ObjectNode properties = body.putObject("properties");
    metadata.forEach((key, value) -> {
      switch (key) {
        case SupportsNamespaces.PROP_COMMENT -> body.put("comment", value);
        case SupportsNamespaces.PROP_LOCATION -> body.put("storage_root", value);
        case SupportsNamespaces.PROP_OWNER -> { } // Spark names the user of its process; the catalog knows who is calling.
        default -> properties.put(key, value);
      }
    });
    Refusals.explainedNamespace(this, namespace, () -> rest.call("POST", "/schemas", body));
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) throws NoSuchNamespaceException {
    Map<String, String> properties = propertiesOf(loadSchema(namespace));
    ObjectNode body = Rest.JSON.createObjectNode();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty set) {
        setProperty(body, properties, set);
      } else if (change instanceof NamespaceChange.RemoveProperty remove) {
        properties.remove(remove.property());
      } else {
        throw new UnsupportedOperationException("A schema cannot be changed by " + change + ".");
      }
    }
    body.set("properties", Rest.JSON.valueToTree(properties));
    Refusals.explainedNamespace(this, namespace, () -> rest.call("PATCH", schemaPath(namespace), body));
  }

  private static void setProperty(ObjectNode body, Map<String, String> properties, NamespaceChange.SetProperty set) {
    switch (set.property()) {
      case SupportsNamespaces.PROP_COMMENT -> body.put("comment", set.value());
      case SupportsNamespaces.PROP_LOCATION, SupportsNamespaces.PROP_OWNER -> throw new UnsupportedOperationException(
          "The " + set.property() + " of a schema cannot be changed.");
      default -> properties.put(set.property(), set.value());
    }
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    Refusals.explainedNamespace(
        this, namespace, () -> rest.call("DELETE", schemaPath(namespace) + "?force=" + cascade, null));
    return true;
  }

  private JsonNode loadSchema(String[] namespace) {
    return Refusals.explainedNamespace(this, namespace, () -> rest.get(schemaPath(namespace)));
  }

  // ---- tables

  @Override
  public Identifier[] listTables(String[] namespace) {
    return Refusals.explainedNamespace(this, namespace, () ->
        pages("/tables?catalog_name=" + Rest.encode(name) + "&schema_name=" + Rest.encode(schemaName(namespace)), "tables")
            .map(table -> Identifier.of(namespace, table.path("name").asText()))
            .toArray(Identifier[]::new));
  }

  @Override
  public Table loadTable(Identifier ident) {
    return Refusals.explained(this, ident, () -> checked(ident).load(ident));
  }

  /** Reached when version 0 is written: for external tables, and for managed ones that Delta does not create by itself. */
  @Override
  public Table createTable(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return Refusals.explained(this, ident, () -> {
      String location = properties.get(TableCatalog.PROP_LOCATION);
      if (location == null || Boolean.parseBoolean(properties.get(TableCatalog.PROP_IS_MANAGED_LOCATION))) {
        checked(ident).create(ident, CatalogV2Util.v2ColumnsToStructType(columns), partitionColumns(partitions), properties);
      } else {
        checked(ident).register(ident, location, properties.get(TableCatalog.PROP_COMMENT));
      }
      return null; // Delta loads it again.
    });
  }

  private static String[] partitionColumns(Transform[] partitions) {
    return Stream.of(partitions)
        .filter(transform -> transform.name().equals("identity"))
        .map(transform -> transform.references()[0].fieldNames()[0])
        .toArray(String[]::new);
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) {
    return loadTable(ident);
  }

  @Override
  public boolean dropTable(Identifier ident) {
    return Refusals.explained(this, ident, () -> {
      try {
        checked(ident).drop(ident);
        return true;
      } catch (Refusals.Refusal refusal) {
        if (refusal.status == 404) {
          return false;
        }
        throw refusal;
      }
    });
  }

  @Override
  public boolean purgeTable(Identifier ident) {
    throw new UnsupportedOperationException(
        "DROP TABLE ... PURGE is not supported: drop " + fullName(ident) + " without PURGE.");
  }

  @Override
  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException {
    if (!schemaName(from.namespace()).equals(schemaName(withoutCatalog(to.namespace())))) {
      throw new UnsupportedOperationException(
          "A table keeps its schema: " + fullName(from) + " cannot be renamed to " + to + ".");
    }
    try {
      checked(from).rename(from, to.name());
    } catch (Refusals.Refusal refusal) {
      // What exists already is the new name, what does not exist is the old one.
      Refusals.explained(this, refusal.status == 409 ? Identifier.of(from.namespace(), to.name()) : from, () -> {
        throw refusal;
      });
    }
  }

  // ---- functions: there are none, which is not an error when Spark looks for one

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
    throw new NoSuchFunctionException(ident);
  }

  // ---- names and paths

  Face face() {
    return face;
  }

  private Face checked(Identifier ident) {
    schemaName(ident.namespace());
    return face;
  }

  String address() {
    return rest.address();
  }

  String fullName(Identifier ident) {
    return String.join(".", qualified(ident.namespace())) + "." + ident.name();
  }

  Identifier qualified(Identifier ident) {
    return Identifier.of(qualified(ident.namespace()), ident.name());
  }

  String[] qualified(String[] namespace) {
    return Stream.concat(Stream.of(name), Stream.of(namespace)).toArray(String[]::new);
  }

  private String[] withoutCatalog(String[] namespace) {
    boolean qualified = namespace.length == 2 && namespace[0].equals(name);
    return qualified ? new String[] {namespace[1]} : namespace;
  }

  /** Names have three parts, catalog.schema.table. A name of more parts or fewer names nothing. */
  void requireOneSchema(Identifier ident) throws NoSuchTableException {
    if (ident.namespace().length != 1) {
      throw new NoSuchTableException(qualified(ident));
    }
  }

  private String schemaName(String[] namespace) {
    if (namespace.length != 1) {
      throw Refusals.unchecked(new NoSuchNamespaceException(qualified(namespace)));
    }
    return namespace[0];
  }

  private String schemaPath(String[] namespace) {
    return "/schemas" + Rest.path(name + "." + schemaName(namespace));
  }

  // ---- answers

  private Stream<JsonNode> pages(String path, String field) {
    List<JsonNode> items = new ArrayList<>();
    String token = "";
    for (int page = 0; page < PAGES_MAX; page++) {
      JsonNode answer = rest.get(path + (token.isEmpty() ? "" : "&page_token=" + Rest.encode(token)));
      answer.path(field).forEach(items::add);
      token = answer.path("next_page_token").asText("");
      if (token.isEmpty() || token.equals("null")) {
        return items.stream();
      }
    }
    throw new IllegalStateException("The catalog's list of " + field + " has no end.");
  }

  private static Map<String, String> propertiesOf(JsonNode schema) {
    Map<String, String> properties = new HashMap<>();
    schema.path("properties").properties().forEach(entry -> properties.put(entry.getKey(), entry.getValue().asText()));
    return properties;
  }

  private static void putText(Map<String, String> metadata, String key, JsonNode value) {
    if (value.isTextual()) {
      metadata.put(key, value.asText());
    }
  }
}
