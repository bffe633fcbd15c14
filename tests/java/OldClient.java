import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.delta.storage.commit.Commit;
import io.delta.storage.commit.CommitFailedException;
import io.delta.storage.commit.GetCommitsResponse;
import io.delta.storage.commit.actions.AbstractMetadata;
import io.delta.storage.commit.actions.AbstractProtocol;
import io.delta.storage.commit.uccommitcoordinator.UCClient;
import io.delta.storage.commit.uccommitcoordinator.UCTokenBasedRestClient;
import io.unitycatalog.client.auth.TokenProvider;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/** The client of specification v0.1.0 that comes with Delta, driven line by line: a JSON request in, a JSON answer out. */
public final class OldClient {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    TokenProvider token = TokenProvider.create(Map.of("type", "static", "token", arguments[1]));
    try (UCClient client = new UCTokenBasedRestClient(arguments[0], token, Map.of("Test", "1"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        System.out.println(answer(client, JSON.readTree(line)));
        System.out.flush();
      }
    }
  }

  private static ObjectNode answer(UCClient client, JsonNode request) {
    ObjectNode answer = JSON.createObjectNode();
    try {
      switch (request.path("call").asText()) {
        case "metastore" -> answer.put("metastore", client.getMetastoreId());
        case "create" -> create(client, request);
        case "commit" -> commit(client, request);
        case "commits" -> commits(client, request, answer);
        default -> throw new IllegalArgumentException(request.toString());
      }
    } catch (CommitFailedException failed) {
      answer.put("failed", failed.getMessage());
      answer.put("retryable", failed.getRetryable()).put("conflict", failed.getConflict());
    } catch (Exception error) {
      answer.put("failed", error.getMessage()).put("kind", error.getClass().getSimpleName());
    }
    return answer;
  }

  private static void create(UCClient client, JsonNode request) throws Exception {
    List<UCClient.ColumnDef> columns = new ArrayList<>();
    for (JsonNode column : request.path("columns")) {
      columns.add(new UCClient.ColumnDef(
          column.path("name").asText(), column.path("type_name").asText(), column.path("type_text").asText(),
          column.path("type_json").asText(), column.path("nullable").asBoolean(), column.path("position").asInt()));
    }
    client.finalizeCreate(
        request.path("name").asText(), "main", "default", request.path("location").asText(), columns,
        new Protocol(), map(request.path("properties")), request.path("timestamp").asLong(), List.of());
  }

  private static void commit(UCClient client, JsonNode request) throws Exception {
    client.commit(
        request.path("id").asText(), URI.create(request.path("location").asText()), null,
        Optional.ofNullable(request.get("info")).map(OldClient::proposed),
        Optional.ofNullable(request.get("published")).map(JsonNode::asLong),
        Optional.empty(), Optional.ofNullable(request.get("metadata")).map(Metadata::new),
        Optional.empty(), Optional.empty(), List.of(), Optional.empty());
  }

  private static Commit proposed(JsonNode info) {
    Path file = new Path("file:///staged/" + info.path("file_name").asText());
    long modified = info.path("file_modification_timestamp").asLong();
    FileStatus status = new FileStatus(info.path("file_size").asLong(), false, 0, 0, modified, file);
    return new Commit(info.path("version").asLong(), status, info.path("timestamp").asLong());
  }

  private static void commits(UCClient client, JsonNode request, ObjectNode answer) throws Exception {
    GetCommitsResponse found = client.getCommits(
        request.path("id").asText(), URI.create(request.path("location").asText()), null,
        Optional.ofNullable(request.get("start")).map(JsonNode::asLong),
        Optional.ofNullable(request.get("end")).map(JsonNode::asLong));
    ArrayNode files = answer.putArray("files");
    found.getCommits().forEach(commit -> files.add(commit.getFileStatus().getPath().toString()));
    answer.put("latest", found.getLatestTableVersion());
  }

  private static Map<String, String> map(JsonNode node) {
    Map<String, String> map = new HashMap<>();
    node.properties().forEach(entry -> map.put(entry.getKey(), entry.getValue().asText()));
    return map;
  }

  /** Not sent by this client. */
  private static final class Protocol implements AbstractProtocol {
    @Override public int getMinReaderVersion() { return 3; }
    @Override public int getMinWriterVersion() { return 7; }
    @Override public Set<String> getReaderFeatures() { return Set.of(); }
    @Override public Set<String> getWriterFeatures() { return Set.of(); }
  }

  /** Of this, the client sends description and configuration. */
  private record Metadata(JsonNode node) implements AbstractMetadata {
    @Override public String getId() { return "id"; }
    @Override public String getName() { return null; }
    @Override public String getDescription() { return node.path("description").asText(null); }
    @Override public String getProvider() { return "parquet"; }
    @Override public Map<String, String> getFormatOptions() { return Map.of(); }
    @Override public String getSchemaString() { return node.path("schema").asText(null); }
    @Override public List<String> getPartitionColumns() { return List.of(); }
    @Override public Map<String, String> getConfiguration() { return map(node.path("configuration")); }
    @Override public Long getCreatedTime() { return 0L; }
  }
}
