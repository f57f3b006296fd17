"""z-anonymity on several shards on Spark publishes what one engine does."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.arrow.pseudonyms import Pseudonym
from shoal.arrow.release import Publish
from shoal.run.core import summary_of
from shoal.run.state.versions import Versions
from shoal.spark.columns import TICK, order_column
from shoal.spark.commits import Commit, Epoch, Plan, shard_folder
from shoal.spark.trace import merge_traces
from shoal.spec.policy import Policy, Window, ZAnonymity
from tests.spark.z.world import Case, one_engine, settled, story, tidy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

N_SHARDS = 3
ORDER = [order_column(0), order_column(1)]


class Cluster:
    """Run the epochs of a job one after another."""

    def __init__(self, spark: SparkSession, folder: File, case: Case, *, traced: bool) -> None:
        self._spark, self._case, self._folder = spark, case, folder
        self.commits, self.shard_job, self.plan = settled(folder, case, N_SHARDS, traced=traced)
        self.public: list[dict[str, Any]] = []
        self.n_out = self.n_in = 0
        self.figures: list[dict[str, Any]] = []

    def run(self, *, repeat: bool = False) -> None:
        for number, rows in enumerate(self._case.batches()):
            epoch = Epoch(
                2 * number, 2 * number - 2 if number else None, 0, False, self._case.at(number),
                self._case.at(number), None, self.n_in, self.n_out, self._case.secret(number).hex(),
            )  # fmt: skip
            found = self.run_one(epoch, rows)
            if repeat:
                assert self.run_one(epoch, rows) == found
            self.public += found
            self.figures = self.commits.figures(epoch, self.plan)
            if self.shard_job.traced:
                merge_traces(
                    self._folder / "trace", self.commits.folder, epoch, self.plan, self.figures
                )
            self.n_out += sum(shard["n_out"] for shard in self.figures)
            self.n_in += rows.num_rows
            self.commits.add_commit(
                epoch, Commit(epoch.at, None, None, 0, self.n_in, self.n_out, {})
            )

    def run_one(self, epoch: Epoch, rows: pa.RecordBatch) -> list[dict[str, Any]]:
        from shoal.spark.z.epoch import run_epoch

        found: list[dict[str, Any]] = []

        def write(public: DataFrame, name: str) -> None:
            assert name == epoch.name
            found.extend(public.toArrow().to_pylist())

        run_epoch(
            self._spark, self.shard_job, epoch, self.plan, self._frame(rows), ORDER, write
        )  # fmt: skip
        return found

    def _frame(self, rows: pa.RecordBatch) -> DataFrame:
        """Return the rows shuffled, with the columns of their order."""
        from pyspark.sql import functions as F  # noqa: N812

        n = rows.num_rows
        table = pa.table(rows)
        table = table.append_column(ORDER[0], pa.array([f"file-{i // 10}" for i in range(n)]))
        table = table.append_column(ORDER[1], pa.array(range(n), pa.int64()))
        shuffled = random.Random(5).sample(range(n), n)
        frame = self._spark.createDataFrame(table.take(pa.array(shuffled, pa.int64())))
        return frame.withColumn(TICK, F.lit(None).cast("boolean"))

    def lines(self) -> list[dict[str, Any]]:
        files = sorted((self._folder / "trace").iterdir())
        found = pa.concat_tables(pq.read_table(file) for file in files).to_pylist()
        return sorted(found, key=lambda line: line["row"])


def summed(cluster: Cluster) -> dict[str, Any]:
    total = summary_of(cluster.shard_job.schema, cluster.shard_job.policy)
    for shard in cluster.figures:
        part = summary_of(cluster.shard_job.schema, cluster.shard_job.policy)
        part.restore(shard["summary"])
        total.merge(part)
    return total.as_dict()


def test_shards_publish_what_one_engine_does_and_a_repetition_the_same(spark, tmp_path):
    case = story(75, cuts=(40,))
    cluster = Cluster(spark, tmp_path, case, traced=True)
    cluster.run(repeat=True)
    one = one_engine(case)
    assert cluster.public == one.public
    assert len(cluster.public) > 20
    assert tidy(cluster.lines()) == tidy(one.lines())
    assert any(line["outcome"] == "quarantined" for line in one.trace)
    totals = summed(cluster)
    assert totals["rows"]["in"] == 75
    assert totals["rows"]["quarantined"] == len(one.bad)
    # Files of epochs that are never repeated are gone.
    state = cluster.commits.folder
    assert len(list(state.glob("driver-*"))) == 2
    assert all(len(list(folder.glob("state-*"))) == 2 for folder in state.glob("shard-*"))


def test_z_adapts_to_the_stream_and_pseudonyms_change(spark, tmp_path):
    policy = Policy(ZAnonymity(2), window=Window(rows=25), missing="maybe")
    publish = Publish(suppressed="root", pseudonym=Pseudonym(20), time=5)
    knobs = {"probability": 0.7, "estimates": 1}
    case = story(60, policy=policy, publish=publish, knobs=knobs, cuts=(28,))
    cluster = Cluster(spark, tmp_path, case, traced=False)
    cluster.run()
    one = one_engine(case)
    assert tidy(cluster.public) == tidy(one.public)
    values: Any = summed(cluster)["values"]
    assert len({line["z"] for line in one.trace if line["z"]}) > 1
    assert values["z"]["now"] == one.estimates[-1][3]
    assert values["window"]["subjects"] == one.estimates[-1][4]
    assert values["window"]["k_anonymous"] == one.estimates[-1][5]
    kept = list(cluster.commits.folder.glob("shard-*/estimate-*"))
    assert {int(file.name.removeprefix("estimate-")) >> 20 for file in kept} == {2}


def test_a_batch_without_rows_leaves_all_states(spark, tmp_path):
    case = dataclasses.replace(story(0), cuts=())
    cluster = Cluster(spark, tmp_path, case, traced=True)
    cluster.run()
    assert cluster.public == []
    assert [shard["n_out"] for shard in cluster.figures] == [0] * N_SHARDS
    assert cluster.figures[0]["latest"] is None


def test_shards_of_another_plan_follow_the_z_in_force(spark, tmp_path):
    policy = Policy(ZAnonymity(2), window=Window(rows=25), missing="maybe")
    knobs = {"probability": 0.7, "estimates": 1}
    # The window is estimated before row 25, and in the second batch not at all.
    case = story(35, policy=policy, knobs=knobs, cuts=(28,))
    cluster = Cluster(spark, tmp_path, case, traced=False)
    first, second = case.batches()
    cluster.run_one(Epoch(0, None, 0, False, 0.0, 0.0, None), first)
    cluster.plan = Plan(2, None, bytes(range(1, 17)).hex(), 3)
    cluster.commits.add_plan(cluster.plan)
    cluster.run_one(Epoch(2, None, 1, False, 10.0, 10.0, None, n_in=28), second)
    of_driver = Versions(cluster.commits.folder, "driver", job=cluster.shard_job.digests, seal=None)
    z = of_driver.load(2).facts["z"]
    assert z > policy.z
    for shard in (3, 4):
        folder = shard_folder(cluster.commits.folder, shard)
        states = Versions(folder, "state", job=cluster.shard_job.digests, seal=None)
        assert states.load(2).arrays["place"]["z"].tolist() == [z]
