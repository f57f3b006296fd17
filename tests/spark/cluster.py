"""A cluster of Spark's on this machine alone: executors in processes of their own."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import shoal

MASTER = "local-cluster[2,1,2048]"


def started(folder: Path, *, zone: str = "UTC") -> SparkSession:
    """Start one, which keeps its files in a folder."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.executorEnv.PYTHONPATH": str(Path(shoal.__file__).parents[1]),
        "spark.executorEnv.NUMBA_DISABLE_JIT": os.environ.get("NUMBA_DISABLE_JIT", "0"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": zone,
        # Otherwise readers other than Spark don't see that these are instants.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    builder = SparkSession.builder.master(MASTER).appName("tests")
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # What fails on purpose would fill the screen.
    session.sparkContext.setLogLevel("OFF")
    return session


def logs_of(session: SparkSession) -> Path:
    """Where executors write what they say, and all that their workers say."""
    return Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId


def ended(session: SparkSession) -> None:
    """Stop it, and leave nothing behind."""
    logs = logs_of(session)
    session.stop()
    shutil.rmtree(logs, ignore_errors=True)
