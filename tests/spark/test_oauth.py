"""A Spark job that has a client secret and no token: the stock client gets its tokens by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.servers import ServerProcess
from tests.test_machine_tokens import make_secret
from tidegate.spark.connection import connection
from tidegate.spark.settings import catalog_settings

CATALOG = "by_secret"
UNITY = "/api/2.1/unity-catalog"


@pytest.fixture
def talkative(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that tells who sent each request."""
    server = ServerProcess(tmp_path, settings={"log_requests": "all", "log_format": "json"}).start()
    yield server
    assert server.stop() == 0


def test_stock_spark_gets_its_tokens_for_a_client_secret(spark: SparkSession, talkative: ServerProcess) -> None:
    with talkative.http() as http:
        assert http.post(f"{UNITY}/catalogs", json={"name": CATALOG}).status_code == 200
        assert http.post(f"{UNITY}/schemas", json={"name": "s", "catalog_name": CATALOG}).status_code == 200
        secret = make_secret(http, "spark_job")["token"]
    wanted = connection(uri=talkative.url, token=None, catalogs=CATALOG, client_id="spark_job", client_secret=secret)
    for name, value in catalog_settings(wanted).items():
        spark.conf.set(name, value)
    with pytest.raises(PySparkException) as refused:  # nothing was granted to it
        spark.sql(f"SELECT * FROM {CATALOG}.s.t")
    requests = [json.loads(line) for line in talkative.log if line.startswith("{")]
    answered = [(line["path"], line["status"]) for line in requests if line.get("path", "").endswith("/oauth/token")]
    assert answered and {status for _, status in answered} == {200}
    assert [line for line in requests if line.get("principal") == "spark_job"]
    assert not [line for line in requests if line.get("status") == 401]
    assert secret not in str(refused.value)
    assert secret not in "".join(talkative.log)
