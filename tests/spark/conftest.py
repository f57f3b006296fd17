"""One cluster for all tests: two executors of one core, started when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.cluster import ended, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A cluster on the loopback alone. In a zone that isn't universal time."""
    session = started(tmp_path_factory.mktemp("spark"), zone="America/New_York")
    yield session
    ended(session)


@pytest.fixture(autouse=True)
def no_query_goes_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that fails leaves no query behind that takes the cluster from the next one."""
    yield
    if "spark" in request.fixturenames:
        for query in request.getfixturevalue("spark").streams.active:
            query.stop()
