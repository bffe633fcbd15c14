package io.unitycatalog.spark;

import java.util.Map;
import java.util.Set;

import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** A staged table of Delta's, whose commit may be refused because the name was taken meanwhile: Spark is told so. */
final class ExplainedStagedTable implements StagedTable, SupportsWrite {
  private final RestCatalog catalog;
  private final Identifier ident;
  private final StagedTable table;

  ExplainedStagedTable(RestCatalog catalog, Identifier ident, StagedTable table) {
    this.catalog = catalog;
    this.ident = ident;
    this.table = table;
  }

  @Override
  public void commitStagedChanges() {
    Refusals.explained(catalog, ident, () -> {
      table.commitStagedChanges();
      return null;
    });
  }

  @Override
  public void abortStagedChanges() {
    table.abortStagedChanges();
  }

  @Override
  public String name() {
    return table.name();
  }

  @Override
  public Column[] columns() {
    return table.columns();
  }

  @Override
  public Transform[] partitioning() {
    return table.partitioning();
  }

  @Override
  public Map<String, String> properties() {
    return table.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return ((SupportsWrite) table).newWriteBuilder(info);
  }
}
