package io.unitycatalog.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A table in the words of specification v0.1.0, and in Spark's. */
final class UnityTable {
  /** What Spark puts among the properties, and the request has fields for. */
  private static final Set<String> FIELDS = Set.of(
      TableCatalog.PROP_COLLATION, TableCatalog.PROP_COMMENT, TableCatalog.PROP_EXTERNAL, TableCatalog.PROP_LOCATION,
      TableCatalog.PROP_IS_MANAGED_LOCATION, TableCatalog.PROP_OWNER, TableCatalog.PROP_PROVIDER,
      TableCatalog.PROP_TABLE_TYPE);

  private UnityTable() {}

  /** The columns and properties of a request that creates a table. */
  static ObjectNode describe(StructType schema, List<String> partitions, Map<String, String> properties) {
    ObjectNode body = Rest.JSON.createObjectNode();
    ArrayNode columns = body.putArray("columns");
    JsonNode fields = parsed(schema.json()).path("fields");
    for (int position = 0; position < schema.size(); position++) {
      ObjectNode column = column(schema.fields()[position]).put("position", position);
      column.put("type_json", fields.get(position).toString());
      int index = partitions.indexOf(column.path("name").asText());
      columns.add(index < 0 ? column : column.put("partition_index", index));
    }
    ObjectNode told = body.putObject("properties");
    properties.forEach((key, value) -> {
      if (!FIELDS.contains(key) && !key.startsWith(TableCatalog.OPTION_PREFIX)) {
        told.put(key, value);
      }
    });
    return body;
  }

  private static ObjectNode column(StructField field) {
    ObjectNode column = Rest.JSON.createObjectNode();
    column.put("name", field.name()).put("nullable", field.nullable());
    if (field.getComment().isDefined()) {
      column.put("comment", field.getComment().get());
    }
    column.put("type_text", field.dataType().catalogString()).put("type_name", typeName(field.dataType()));
    if (field.dataType() instanceof DecimalType decimal) {
      column.put("type_precision", decimal.precision()).put("type_scale", decimal.scale());
    }
    return column;
  }

  private static String typeName(DataType type) {
    String name = type.typeName().replaceAll("[( ].*", "");
    return switch (name) {
      case "integer" -> "INT";
      case "varchar" -> "STRING";
      case "void" -> "NULL";
      default -> name.toUpperCase(java.util.Locale.ROOT);
    };
  }

  /** A table that was loaded, in the shape in which Delta expects it: all properties are with the storage. */
  static V1Table toSpark(JsonNode table) {
    ArrayNode fields = Rest.JSON.createArrayNode();
    Map<Integer, String> partitions = new TreeMap<>();
    for (JsonNode column : table.path("columns")) {
      fields.add(parsed(column.path("type_json").asText()));
      if (column.path("partition_index").isInt()) {
        partitions.put(column.path("partition_index").asInt(), column.path("name").asText());
      }
    }
    ObjectNode schema = Rest.JSON.createObjectNode().put("type", "struct").set("fields", fields);
    return new V1Table(catalogTable(table, (StructType) DataType.fromJson(schema.toString()), List.copyOf(partitions.values())));
  }

  private static CatalogTable catalogTable(JsonNode table, StructType schema, List<String> partitions) {
    boolean managed = table.path("table_type").asText().equals("MANAGED");
    Seq<String> none = immutable(List.of());
    return new CatalogTable(
        new TableIdentifier(
            table.path("name").asText(),
            Option.apply(table.path("schema_name").asText()),
            Option.apply(table.path("catalog_name").asText())),
        managed ? CatalogTableType.MANAGED() : CatalogTableType.EXTERNAL(),
        storage(table),
        schema,
        Option.apply("delta"),
        immutable(partitions),
        Option.empty(), // buckets
        table.path("owner").asText(""),
        table.path("created_at").asLong(),
        -1L, // last access
        "", // made by which Spark
        empty(), // properties: with the storage
        Option.empty(), // statistics
        Option.empty(), // text of a view
        Option.apply(table.path("comment").asText(null)),
        Option.empty(), // collation
        none, // features that are not supported
        false, // partitions are not kept in the catalog
        true, // case is preserved
        empty(),
        Option.empty()); // text of a view, as it was written
  }

  private static CatalogStorageFormat storage(JsonNode table) {
    Map<String, String> properties = table.path("properties").properties().stream()
        .collect(Collectors.toMap(Map.Entry::getKey, entry -> entry.getValue().asText()));
    return new CatalogStorageFormat(
        Option.apply(CatalogUtils.stringToURI(table.path("storage_location").asText())),
        Option.empty(), Option.empty(), Option.empty(), false,
        scala.collection.immutable.Map.from(CollectionConverters.asScala(properties)));
  }

  private static <T> Seq<T> immutable(List<T> items) {
    return CollectionConverters.asScala(items).toList();
  }

  private static scala.collection.immutable.Map<String, String> empty() {
    return scala.collection.immutable.Map$.MODULE$.empty();
  }

  private static JsonNode parsed(String json) {
    try {
      return Rest.JSON.readTree(json);
    } catch (JsonProcessingException broken) {
      throw new IllegalStateException("The catalog describes a column in what is not JSON.", broken);
    }
  }
}
