package io.unitycatalog.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import io.unitycatalog.client.ApiException;
import java.net.ConnectException;
import java.util.concurrent.Callable;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.Option;

/**
 * What the catalog refuses, as the exceptions that Spark has for it.
 *
 * <p>A refusal comes either from {@link Rest} or, wrapped several times, from Delta's own client; both carry the status
 * and the catalog's error. Whatever is not a refusal passes unchanged.
 */
final class Refusals {
  private static final int CAUSES_MAX = 32;

  private Refusals() {}

  /** The catalog's answer to a request that it did not grant. */
  static final class Refusal extends RuntimeException {
    final int status;
    final String type;

    Refusal(int status, String type, String message) {
      super(message);
      this.status = status;
      this.type = type;
    }
  }

  /** Anything that Spark has no exception of its own for: the catalog's message is the message. */
  static class CatalogException extends AnalysisException {
    CatalogException(String message, Throwable cause) {
      super(message, Option.empty(), Option.empty(), Option.apply(cause), Option.empty(),
          scala.collection.immutable.Map$.MODULE$.empty(), new QueryContext[0]);
    }
  }

  /** The token is unknown, or its owner may not do this. */
  static final class PermissionDeniedException extends CatalogException {
    PermissionDeniedException(String message, Throwable cause) {
      super("Permission denied: " + message, cause);
    }
  }

  static <T> T explained(RestCatalog catalog, Identifier ident, Callable<T> work) {
    try {
      return work.call();
    } catch (Exception error) {
      Refusal refusal = find(error);
      if (refusal != null) {
        throw unchecked(explain(catalog, ident, refusal, error));
      }
      if (find(error, ConnectException.class) != null) {
        throw unreachable(catalog.address(), error);
      }
      throw unchecked(error);
    }
  }

  static <T> T explainedNamespace(RestCatalog catalog, String[] namespace, Callable<T> work) {
    return explained(catalog, Identifier.of(namespace, ""), work);
  }

  private static Exception explain(RestCatalog catalog, Identifier ident, Refusal refusal, Exception cause) {
    if (refusal.status == 401 || refusal.status == 403) {
      return new PermissionDeniedException(refusal.getMessage(), cause);
    }
    return switch (refusal.type) {
      case "NoSuchTableException", "TABLE_DOES_NOT_EXIST" -> new NoSuchTableException(catalog.qualified(ident));
      case "AlreadyExistsException", "TABLE_ALREADY_EXISTS" -> new TableAlreadyExistsException(catalog.qualified(ident));
      case "NoSuchSchemaException", "SCHEMA_DOES_NOT_EXIST", "NoSuchCatalogException", "CATALOG_DOES_NOT_EXIST" ->
          new NoSuchNamespaceException(catalog.qualified(ident.namespace()));
      case "SCHEMA_ALREADY_EXISTS" -> new NamespaceAlreadyExistsException(catalog.qualified(ident.namespace()));
      case "FAILED_PRECONDITION" -> new NonEmptyNamespaceException(catalog.qualified(ident.namespace()));
      default -> new CatalogException(refusal.getMessage(), cause);
    };
  }

  static RuntimeException unreachable(String address, Exception failure) {
    return unchecked(new CatalogException(
        "Cannot reach the catalog at " + address + ". Is the server running, and the address right?", failure));
  }

  private static Refusal find(Throwable error) {
    Refusal refusal = find(error, Refusal.class);
    ApiException answer = find(error, ApiException.class);
    if (refusal != null || answer == null || answer.getResponseBody() == null || !isRefusal(answer.getCode())) {
      return refusal;
    }
    return parse(answer.getCode(), answer.getResponseBody());
  }

  static <E extends Throwable> E find(Throwable error, Class<E> kind) {
    Throwable at = error;
    for (int depth = 0; at != null && depth < CAUSES_MAX; depth++, at = at.getCause()) {
      if (kind.isInstance(at)) {
        return kind.cast(at);
      }
    }
    return null;
  }

  private static boolean isRefusal(int status) {
    // 409 and 429 on a commit are Delta's business: it rebases and tries again before anything gets here.
    return status >= 400 && status < 500;
  }

  /** Both faces of the API: {"error": {"type", "message"}} and {"error_code", "message"}. */
  static Refusal parse(int status, String body) {
    try {
      JsonNode answer = Rest.JSON.readTree(body);
      JsonNode error = answer.path("error").isObject() ? answer.path("error") : answer;
      String type = error.path("type").asText(error.path("error_code").asText(""));
      String message = error.path("message").asText("the catalog answered " + status);
      return new Refusal(status, type, message);
    } catch (JsonProcessingException | IllegalArgumentException notOurs) {
      return new Refusal(status, "", "the catalog answered " + status + ", without saying why");
    }
  }

  /** Spark's exceptions are checked ones, and Spark's interfaces do not declare them. */
  static RuntimeException unchecked(Exception error) {
    return Refusals.<RuntimeException>raise(error);
  }

  @SuppressWarnings("unchecked")
  private static <E extends Exception> RuntimeException raise(Exception error) throws E {
    throw (E) error;
  }
}
