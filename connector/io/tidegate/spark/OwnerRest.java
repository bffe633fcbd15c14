package io.tidegate.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Calls to the commit owner's server. All of them may be sent twice: each names what it is about, and the server knows it
 * again. So one that fails on its way is sent again, with growing pauses, for about a minute.
 */
final class OwnerRest {
  static final ObjectMapper JSON = new ObjectMapper();

  private static final String ROOT = "/api/tidegate/v1";
  private static final int ATTEMPTS_MAX = 20;
  private static final long PAUSE_MS_FIRST = 100;
  private static final long PAUSE_MS_MAX = 5_000;
  private static final Duration ANSWER_MAX = Duration.ofSeconds(60);
  /** After that nothing is sent again: a server that says nothing at all is not waited for twenty times. */
  private static final Duration AGAIN_MAX = Duration.ofSeconds(75);
  private static final HttpClient HTTP = HttpClient.newBuilder()
      .version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(10)).build();

  private final String endpoint;

  OwnerRest(String endpoint) {
    this.endpoint = endpoint;
  }

  /** The server's no, in its words. */
  static final class Refused extends RuntimeException {
    final int status;
    /** The latest version, where the refusal says so; else -1. */
    final long latest;

    Refused(int status, String message, long latest) {
      super(message);
      this.status = status;
      this.latest = latest;
    }
  }

  static String encode(String value) {
    return URLEncoder.encode(value, StandardCharsets.UTF_8).replace("+", "%20");
  }

  JsonNode get(String path) {
    return call(request(path).GET());
  }

  JsonNode post(String path, JsonNode body) {
    return call(request(path).POST(HttpRequest.BodyPublishers.ofString(body.toString())));
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(endpoint + ROOT + path))
        .timeout(ANSWER_MAX)
        .header("Authorization", "Bearer " + CommitOwner.connection(endpoint).token())
        .header("Content-Type", "application/json");
  }

  private JsonNode call(HttpRequest.Builder request) {
    HttpResponse<String> answer = send(request.build());
    JsonNode body;
    try {
      body = JSON.readTree(answer.body());
    } catch (IOException notJson) {
      throw new Refused(answer.statusCode(), "What answers at " + endpoint + " is no Tidegate server.", -1);
    }
    if (answer.statusCode() >= 300) {
      String message = body.path("message").asText("the commit owner at " + endpoint + " answered " + answer.statusCode());
      throw new Refused(answer.statusCode(), message, body.path("conflict").path("latest_version").asLong(-1));
    }
    return body;
  }

  private HttpResponse<String> send(HttpRequest request) {
    long until = System.nanoTime() + AGAIN_MAX.toNanos();
    for (int attempt = 1; ; attempt++) {
      boolean last = attempt == ATTEMPTS_MAX;
      try {
        HttpResponse<String> answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        if (!isPassing(answer.statusCode()) || last || System.nanoTime() > until) {
          return answer;
        }
      } catch (IOException failure) {
        if (last || System.nanoTime() > until) {
          throw new Refused(0, "The commit owner at " + endpoint + " does not answer. A commit that was sent may have "
              + "happened: look at the table before you write again.", -1);
        }
      } catch (InterruptedException stopped) {
        throw interrupted(stopped);
      }
      pause(attempt);
    }
  }

  /** Too much to do, a server that restarts, or an outcome that is not known: asked again, it is. */
  private static boolean isPassing(int status) {
    return status == 429 || status >= 500;
  }

  private static void pause(int attempt) {
    long longest = Math.min(PAUSE_MS_MAX, PAUSE_MS_FIRST << Math.min(attempt - 1, 10));
    try {
      // Not all clients of a server that restarts should come back in the same moment.
      Thread.sleep(longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2 + 1));
    } catch (InterruptedException stopped) {
      throw interrupted(stopped);
    }
  }

  private static RuntimeException interrupted(InterruptedException stopped) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("Interrupted while waiting for the commit owner.", stopped);
  }
}
