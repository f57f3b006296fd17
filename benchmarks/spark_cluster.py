"""A cluster of Spark's on this machine, and what its processes have used."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine_use import TICKS
from benchmarks.workloads import ROOT
from shoal.cli.spark.command import LOOPBACK, SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["a_session", "seconds_of_tree", "shuffled"]


@contextlib.contextmanager
def a_session(master: str, options: dict[str, str] | None = None) -> Iterator[SparkSession]:
    """A session of Spark whose workers find Shoal and the benchmarks, on the loopback alone."""
    from pyspark.sql import SparkSession

    path = os.pathsep.join(str(folder) for folder in (ROOT, ROOT / "src"))
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path,
    }  # fmt: skip
    settings = SETTINGS | LOOPBACK | {"spark.executorEnv.PYTHONPATH": path} | (options or {})
    builder = SparkSession.builder.master(master).appName("benchmark")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def seconds_of_tree() -> float:
    """Processor seconds of this process and all that it has started, the dead ones too."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        # Of itself, and of its children that have ended.
        spent[pid] = sum(map(int, fields[11:15])) / TICKS
    return sum(spent[pid] for pid in spent if _is_below(pid, os.getpid(), parents))


def _is_below(pid: int, top: int, parents: dict[int, int]) -> bool:
    while pid and pid != top:
        pid = parents.get(pid, 0)
    return pid == top


def shuffled(session: SparkSession) -> int:
    """Bytes that all executors have written for each other so far."""
    store: Any = session.sparkContext._jsc.sc().statusStore()
    executors = store.executorList(False)
    return sum(int(executors.apply(i).totalShuffleWrite()) for i in range(executors.size()))
