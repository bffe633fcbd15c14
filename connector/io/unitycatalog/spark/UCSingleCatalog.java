package io.unitycatalog.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.BiFunction;

import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.delta.catalog.DeltaCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The catalog that Spark is pointed at: {@code spark.sql.catalog.main=io.unitycatalog.spark.UCSingleCatalog} with
 * {@code .uri} and {@code .token}.
 *
 * <p>The class is Delta's own catalog. Delta stages, creates, loads and commits tables over REST by itself, but only for
 * a catalog class of exactly this name whose delegate lives in a package under {@code io.unitycatalog}. What Delta
 * leaves to the delegate is in {@link RestCatalog}. Here is only what a user must not have to know: tables without a
 * format are Delta tables, and what the catalog refuses arrives as the exception that Spark has for it.
 */
public class UCSingleCatalog extends DeltaCatalog {
  private RestCatalog rest;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    rest = new RestCatalog();
    rest.initialize(name, options);
    super.initialize(name, options);
    setDelegateCatalog(rest);
  }

  @Override
  public Table loadTable(Identifier ident) {
    return explained(ident, () ->
        RatifiedVersions.checked(rest, ident, Rest.patiently(() -> super.loadTable(ident))));
  }

  /**
   * The table, for a statement that writes to it. Who may only read it hears so before any work is done: Delta takes a
   * refusal of its commit for a broken network, and would try again for minutes.
   */
  @Override
  public Table loadTable(Identifier ident, Set<TableWritePrivilege> privileges) {
    if (!privileges.isEmpty()) {
      explained(ident, () -> {
        rest.face().checkWritable(ident);
        return null;
      });
    }
    return loadTable(ident);
  }

  @Override
  public boolean tableExists(Identifier ident) {
    return explained(ident, () -> Rest.patiently(() -> super.tableExists(ident)));
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) {
    return explained(ident, () -> super.alterTable(ident, changes));
  }

  @Override
  public Table createTable(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    Map<String, String> checked = asDelta(ident, properties, rest.face()::toCreate);
    return explained(ident, () -> super.createTable(ident, columns, partitions, checked));
  }

  @Override
  public StagedTable stageCreate(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    Map<String, String> checked = asDelta(ident, properties, rest.face()::toCreate);
    return staged(ident, () -> super.stageCreate(ident, columns, partitions, checked));
  }

  @Override
  public StagedTable stageReplace(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    Map<String, String> checked = asDelta(ident, properties, rest.face()::toReplace);
    return staged(ident, () -> super.stageReplace(ident, columns, partitions, checked));
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier ident, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    Map<String, String> checked = asDelta(ident, properties, rest.face()::toCreateOrReplace);
    return staged(ident, () -> super.stageCreateOrReplace(ident, columns, partitions, checked));
  }

  /** The properties of a table that may be made: a Delta table, managed or at a place that is free. */
  private Map<String, String> asDelta(
      Identifier ident, Map<String, String> properties, BiFunction<Identifier, Map<String, String>, Map<String, String>> managed) {
    String provider = properties.getOrDefault(TableCatalog.PROP_PROVIDER, "delta");
    if (!provider.equalsIgnoreCase("delta")) {
      throw new UnsupportedOperationException(
          "Cannot create " + rest.fullName(ident) + " as a table of format " + provider + ": the catalog " + name()
              + " holds Delta tables. Say USING DELTA in SQL and format(\"delta\") on a writer, or set"
              + " spark.sql.sources.default=delta.");
    }
    Map<String, String> checked = new HashMap<>(properties);
    checked.put(TableCatalog.PROP_PROVIDER, "delta");
    if (!properties.containsKey(TableCatalog.PROP_LOCATION)) {
      return explained(ident, () -> managed.apply(ident, checked));
    }
    return explained(ident, () -> {
      // Delta writes version 0 before it registers the table: a place that is refused must be refused before that.
      rest.face().checkPlace(properties.get(TableCatalog.PROP_LOCATION));
      return checked;
    });
  }

  private StagedTable staged(Identifier ident, Callable<StagedTable> stage) {
    return new ExplainedStagedTable(rest, ident, explained(ident, stage));
  }

  private <T> T explained(Identifier ident, Callable<T> work) {
    return Refusals.explained(rest, ident, () -> {
      rest.requireOneSchema(ident);
      return work.call();
    });
  }
}
