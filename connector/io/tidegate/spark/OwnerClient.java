package io.tidegate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.delta.storage.LogStore;
import io.delta.storage.commit.Commit;
import io.delta.storage.commit.CommitCoordinatorClient;
import io.delta.storage.commit.CommitFailedException;
import io.delta.storage.commit.CommitResponse;
import io.delta.storage.commit.CoordinatedCommitsUtils;
import io.delta.storage.commit.GetCommitsResponse;
import io.delta.storage.commit.TableDescriptor;
import io.delta.storage.commit.TableIdentifier;
import io.delta.storage.commit.UpdatedActions;
import io.delta.storage.commit.actions.AbstractMetadata;
import io.delta.storage.commit.actions.AbstractProtocol;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * What the stock client asks of a table's commit owner, asked of a Tidegate server.
 *
 * <p>A commit is a file beside the log and one request that names it. If no answer comes the request is sent again: the
 * server knows the file, so nothing happens twice. It is the server that copies files into the log, never this client.
 */
final class OwnerClient implements CommitCoordinatorClient {
  private static final String TABLE_ID = "tableId";
  private static final String CONF_PROPERTY = "delta.coordinatedCommits.commitCoordinatorConf-preview";

  private final String endpoint;
  private final OwnerRest rest;

  OwnerClient(String endpoint) {
    this.endpoint = endpoint;
    this.rest = new OwnerRest(endpoint);
  }

  @Override
  public Map<String, String> registerTable(Path logPath, Optional<TableIdentifier> name, long currentVersion,
      AbstractMetadata metadata, AbstractProtocol protocol) {
    checkConf(metadata.getConfiguration().get(CONF_PROPERTY));
    ObjectNode body = OwnerRest.JSON.createObjectNode();
    body.put("location", location(logPath)).put("version", currentVersion);
    body.put("schema", CommitOwner.connection(endpoint).schema());
    return Map.of(TABLE_ID, rest.post("/owned-tables", body).path("table_id").asText());
  }

  @Override
  public CommitResponse commit(LogStore store, Configuration conf, TableDescriptor table, long version,
      Iterator<String> actions, UpdatedActions updated) throws CommitFailedException {
    if (version == 0) {
      throw new CommitFailedException(false, false, "Version 0 is put into the log, whoever owns the table.");
    }
    try {
      long timestamp = updated.getCommitInfo().getCommitTimestamp();
      FileStatus staged = CoordinatedCommitsUtils.writeUnbackfilledCommitFile(
          store, conf, table.getLogPath().toString(), version, actions, UUID.randomUUID().toString());
      ObjectNode body = OwnerRest.JSON.createObjectNode();
      body.put("location", location(table.getLogPath())).put("version", version).put("timestamp", timestamp);
      body.put("file_name", staged.getPath().getName()).put("file_size", staged.getLen());
      body.put("file_modification_timestamp", staged.getModificationTime());
      boolean published = rest.post(path(table, "commits"), body).path("published").asBoolean();
      return new CommitResponse(new Commit(version, published ? inLog(conf, table, version) : staged, timestamp));
    } catch (OwnerRest.Refused refused) {
      boolean lost = refused.status == 409 && refused.latest >= version;
      throw new CommitFailedException(lost, lost, refused.getMessage(), refused);
    } catch (IOException failure) {
      throw new CommitFailedException(false, false, "The commit could not be staged: " + failure.getMessage(), failure);
    }
  }

  @Override
  public GetCommitsResponse getCommits(TableDescriptor table, Long startVersion, Long endVersion) {
    List<Commit> commits = new ArrayList<>();
    Path staged = CoordinatedCommitsUtils.commitDirPath(table.getLogPath());
    long next = startVersion == null ? 0 : startVersion;
    while (true) {
      String range = "&start_version=" + next + (endVersion == null ? "" : "&end_version=" + endVersion);
      JsonNode answer = rest.get(path(table, "commits") + "?location=" + OwnerRest.encode(location(table.getLogPath())) + range);
      answer.path("commits").forEach(one -> commits.add(commit(staged, one)));
      long latest = answer.path("latest_version").asLong();
      long last = endVersion == null ? latest : Math.min(latest, endVersion);
      long reached = commits.isEmpty() ? last : commits.get(commits.size() - 1).getVersion();
      // Answers come in pages; what a page does not have, while others follow, is published by now.
      if (reached >= last || reached < next || answer.path("commits").isEmpty()) {
        return new GetCommitsResponse(commits, latest);
      }
      next = reached + 1;
    }
  }

  @Override
  public void backfillToVersion(LogStore store, Configuration conf, TableDescriptor table, long version,
      Long lastKnownBackfilledVersion) throws IOException {
    ObjectNode body = OwnerRest.JSON.createObjectNode();
    rest.post(path(table, "publish"), body.put("location", location(table.getLogPath())).put("version", version));
  }

  @Override
  public boolean semanticEquals(CommitCoordinatorClient other) {
    return other instanceof OwnerClient client && client.endpoint.equals(endpoint);
  }

  /** Before it is in the log, where whoever can read the table can read it, for ever. */
  private static void checkConf(String conf) {
    try {
      OwnerRest.JSON.readTree(conf).fieldNames().forEachRemaining(key -> {
        if (!key.equals(CommitOwner.ENDPOINT)) {
          throw new IllegalArgumentException("The conf of the commit owner " + CommitOwner.NAME + " holds " + key
              + ". Whoever reads the table's log reads that: leave nothing but the " + CommitOwner.ENDPOINT
              + " there, and give the token to tidegate.spark.commit_owner.");
        }
      });
    } catch (IOException notJson) {
      throw new IllegalArgumentException("The conf of the commit owner " + CommitOwner.NAME + " is no JSON.", notJson);
    }
  }

  private static Commit commit(Path staged, JsonNode one) {
    long modified = one.path("file_modification_timestamp").asLong();
    Path file = new Path(staged, one.path("file_name").asText());
    FileStatus status = new FileStatus(one.path("file_size").asLong(), false, 0, 0, modified, file);
    return new Commit(one.path("version").asLong(), status, one.path("timestamp").asLong());
  }

  private static FileStatus inLog(Configuration conf, TableDescriptor table, long version) throws IOException {
    Path file = CoordinatedCommitsUtils.getBackfilledDeltaFilePath(table.getLogPath(), version);
    return file.getFileSystem(conf).getFileStatus(file);
  }

  private static String path(TableDescriptor table, String what) {
    String id = table.getTableConf().get(TABLE_ID);
    if (id == null) {
      throw new IllegalStateException("The log of " + table.getLogPath() + " names no " + TABLE_ID + " for its commit owner.");
    }
    return "/owned-tables/" + OwnerRest.encode(id) + "/" + what;
  }

  /** As the server spells it: file:///place, whatever the client calls it. */
  private static String location(Path logPath) {
    java.net.URI table = logPath.getParent().toUri();
    return table.getScheme() == null || table.getScheme().equals("file") ? "file://" + table.getPath() : table.toString();
  }
}
