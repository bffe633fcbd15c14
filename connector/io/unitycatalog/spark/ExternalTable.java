package io.unitycatalog.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Set;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.actions.DomainMetadata;
import org.apache.spark.sql.delta.actions.Metadata;
import org.apache.spark.sql.delta.actions.Protocol;
import scala.jdk.javaapi.CollectionConverters;

/** The registration of an external table: what its log says of it, in the words of Delta REST v1.0. */
final class ExternalTable {
  private ExternalTable() {}

  static ObjectNode describe(String name, String location, String comment) {
    Snapshot snapshot = DeltaLog.forTableWithSnapshot(SparkSession.active(), location)._2();
    Metadata metadata = snapshot.metadata();
    ObjectNode body = Rest.JSON.createObjectNode();
    body.put("name", name).put("location", location).put("table-type", "EXTERNAL");
    body.put("comment", comment);
    body.set("columns", parsed(metadata.schemaString()));
    body.set("partition-columns", Rest.JSON.valueToTree(CollectionConverters.asJava(metadata.partitionColumns())));
    body.set("properties", Rest.JSON.valueToTree(CollectionConverters.asJava(metadata.configuration())));
    body.set("protocol", protocol(snapshot.protocol()));
    body.set("domain-metadata", domains(snapshot));
    body.put("last-commit-timestamp-ms", snapshot.timestamp());
    return body;
  }

  private static ObjectNode protocol(Protocol protocol) {
    ObjectNode body = Rest.JSON.createObjectNode();
    body.put("min-reader-version", protocol.minReaderVersion()).put("min-writer-version", protocol.minWriterVersion());
    putFeatures(body, "reader-features", protocol.getReaderFeatures());
    putFeatures(body, "writer-features", protocol.getWriterFeatures());
    return body;
  }

  private static ObjectNode domains(Snapshot snapshot) {
    ObjectNode body = Rest.JSON.createObjectNode();
    for (DomainMetadata domain : CollectionConverters.asJava(snapshot.domainMetadata())) {
      // Delta's own are JSON objects; what others keep there is theirs.
      if (domain.domain().startsWith("delta.") && !domain.removed()) {
        body.set(domain.domain(), parsed(domain.configuration()));
      }
    }
    return body;
  }

  private static void putFeatures(ObjectNode body, String field, Set<String> features) {
    if (features != null && !features.isEmpty()) {
      body.set(field, Rest.JSON.valueToTree(features));
    }
  }

  private static JsonNode parsed(String json) {
    try {
      return Rest.JSON.readTree(json);
    } catch (JsonProcessingException broken) {
      throw new IllegalStateException("The metadata in the table's log is not JSON.", broken);
    }
  }
}
