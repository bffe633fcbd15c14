package io.unitycatalog.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.delta.storage.commit.uccommitcoordinator.UCConfigUtils;
import io.unitycatalog.client.auth.TokenProvider;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Calls to the catalog's REST API, for one catalog of the session.
 *
 * <p>A connection that could not be made is tried again, with growing pauses; a call that may have arrived only if it
 * changes nothing. So a catalog that restarts within ten seconds or more goes unnoticed, and nothing is done twice.
 */
final class Rest {
  static final ObjectMapper JSON = new ObjectMapper();

  private static final int ATTEMPTS_MAX = 12;
  private static final int ASKED_MAX = 6;
  private static final int FIRST_PAUSES_LEFT_OUT = 3;
  private static final long PAUSE_MS_FIRST = 100;
  private static final long PAUSE_MS_MAX = 3_000;
  private static final Duration CONNECT_MAX = Duration.ofSeconds(10);
  private static final Duration ANSWER_MAX = Duration.ofSeconds(60);

  /** One for all catalogs of all sessions: it keeps its connections. */
  private static final HttpClient HTTP =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT_MAX).build();

  private final String root;
  private final TokenProvider tokens;

  Rest(String catalog, Map<String, String> options) {
    String uri = options.get(UCConfigUtils.URI_KEY);
    String prefix = "spark.sql.catalog." + catalog;
    if (uri == null || uri.isBlank()) {
      throw new IllegalArgumentException("Set " + prefix + ".uri to the address of the catalog server.");
    }
    if (!UCConfigUtils.hasAuthConfig(options)) {
      throw new IllegalArgumentException("Set " + prefix + ".token, or " + prefix + ".auth.type with its settings.");
    }
    root = uri.replaceAll("/+$", "") + "/api/2.1/unity-catalog";
    tokens = TokenProvider.create(UCConfigUtils.extractAuthConfig(options));
  }

  String address() {
    return root;
  }

  /** Each part is one name, whatever characters it has. */
  static String path(String... parts) {
    StringBuilder path = new StringBuilder();
    for (String part : parts) {
      path.append('/').append(encode(part));
    }
    return path.toString();
  }

  static String encode(String value) {
    return URLEncoder.encode(value, StandardCharsets.UTF_8).replace("+", "%20");
  }

  JsonNode get(String path) {
    return call("GET", path, null);
  }

  JsonNode call(String method, String path, JsonNode body) {
    HttpResponse<String> answer = send(method, request(method, path, body));
    if (answer.statusCode() >= 300) {
      throw Refusals.parse(answer.statusCode(), answer.body());
    }
    try {
      return JSON.readTree(answer.body());
    } catch (IOException notJson) {
      throw new Refusals.Refusal(answer.statusCode(), "", "what answers at " + root + " is no catalog: it sent no JSON");
    }
  }

  private HttpRequest request(String method, String path, JsonNode body) {
    HttpRequest.BodyPublisher content =
        body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body.toString());
    return HttpRequest.newBuilder(URI.create(root + path))
        .timeout(ANSWER_MAX)
        .header("Authorization", "Bearer " + tokens.accessToken())
        .header("Content-Type", "application/json")
        .method(method, content)
        .build();
  }

  private HttpResponse<String> send(String method, HttpRequest request) {
    for (int attempt = 1; ; attempt++) {
      try {
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (!isPassing(answer.statusCode(), method) || attempt == ATTEMPTS_MAX) {
          return answer;
        }
      } catch (IOException failure) {
        if (attempt == ATTEMPTS_MAX || !maySendAgain(failure, method)) {
          throw Refusals.unreachable(root, failure);
        }
      } catch (InterruptedException stopped) {
        throw interrupted(stopped);
      }
      pause(attempt);
    }
  }

  /** For what Delta asks the catalog by itself, and gives up on after a second or two. Only for calls that change nothing. */
  static <T> T patiently(Callable<T> ask) throws Exception {
    for (int attempt = 1; ; attempt++) {
      try {
        return ask.call();
      } catch (Exception failure) {
        if (attempt == ASKED_MAX || Refusals.find(failure, ConnectException.class) == null) {
          throw failure;
        }
      }
      pause(attempt + FIRST_PAUSES_LEFT_OUT);
    }
  }

  private static boolean isPassing(int status, String method) {
    return method.equals("GET") && (status == 502 || status == 503 || status == 504);
  }

  private static boolean maySendAgain(IOException failure, String method) {
    boolean nothingWasSent = failure instanceof ConnectException || failure instanceof HttpConnectTimeoutException;
    return nothingWasSent || method.equals("GET");
  }

  private static void pause(int attempt) {
    long longest = Math.min(PAUSE_MS_MAX, PAUSE_MS_FIRST << (attempt - 1));
    try {
      // Not all clients of a server that restarts should come back in the same moment.
      Thread.sleep(longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2 + 1));
    } catch (InterruptedException stopped) {
      throw interrupted(stopped);
    }
  }

  private static RuntimeException interrupted(InterruptedException stopped) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("Interrupted while waiting for the catalog.", stopped);
  }
}
