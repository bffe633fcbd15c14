package io.tidegate.spark;

import io.delta.storage.commit.CommitCoordinatorClient;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.coordinatedcommits.CommitCoordinatorBuilder;
import org.apache.spark.sql.delta.coordinatedcommits.CommitCoordinatorProvider;

/**
 * The commit owner {@code tidegate}, as the stock client finds it: by the name in a table's log.
 *
 * <p>Delta keeps one builder by name in a Java process, for ever. So there is one of these, and what it knows are servers:
 * the log of a table says at which of them its owner is, and a token is sent to none but the one that it was given for.
 */
public final class CommitOwner implements CommitCoordinatorBuilder {
  public static final String NAME = "tidegate";
  static final String ENDPOINT = "endpoint";

  private static final Map<String, Connection> SERVERS = new ConcurrentHashMap<>();
  private static boolean registered;

  /** How to talk to a server: who is asking, and in which schema it lists the tables that it takes over. */
  record Connection(String token, String schema) {}

  /** Makes a server known, or known anew with another token, and the owner known to Delta. */
  public static synchronized void connect(String endpoint, String token, String schema) {
    if (!registered) {
      CommitCoordinatorProvider.registerBuilder(new CommitOwner());
      registered = true;
    }
    if (SERVERS.put(endpoint, new Connection(token, schema)) == null) {
      // What Delta knows of tables, it knew without this owner.
      DeltaLog.clearCache();
    }
  }

  static Connection connection(String endpoint) {
    Connection known = SERVERS.get(endpoint);
    if (known == null) {
      throw new IllegalStateException("The commit owner of this table is the Tidegate server at " + endpoint
          + ", and this session has no token for it: tidegate.spark.commit_owner(spark, \"" + endpoint + "\", token).");
    }
    return known;
  }

  @Override
  public String getName() {
    return NAME;
  }

  @Override
  public CommitCoordinatorClient build(SparkSession spark, scala.collection.immutable.Map<String, String> conf) {
    scala.Option<String> endpoint = conf.get(ENDPOINT);
    if (endpoint.isEmpty()) {
      throw new IllegalArgumentException("The conf of the commit owner " + NAME + " needs an " + ENDPOINT
          + ", the address of the server: {\"" + ENDPOINT + "\": \"http://host:port\"}.");
    }
    return new OwnerClient(endpoint.get().replaceAll("/+$", ""));
  }
}
