"""Jobs on a cluster, from end to end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.errors import CheckpointError
from shoal.metrics import Summary
from shoal.spark.driver import MOST_LEAD
from tests.run.test_pipeline import Story
from tests.spark.streams import OnSpark, put, spread, wait_until
from tests.spark.world import COLUMNS, by_row, job_of, unsharded
from tests.world import SCHEMA, people

TABLE = people(900, n_people=300).select(COLUMNS)
POLICY = "k = 4\nl = 2\ndelay = { rows = 60 }"
OUT = "[output]\npath = 'out'\n"


def on_spark(spark, folder: Path, table: pa.Table = TABLE, n_files: int = 3, **options) -> OnSpark:
    options = {"policy": POLICY, "more": OUT} | options
    spread(table, folder / "in", n_files)
    return OnSpark(spark, job_of(folder, **options), folder, table)


def totals(summary: Summary) -> dict[str, int]:
    return {
        "n_in": summary.n_in,
        "published": summary.n_published,
        "suppressed": summary.suppression.count,
        "quarantined": summary.n_quarantined,
        "held": summary.n_held,
    }


def counted(lines) -> dict[str, int]:
    """The same from a trace."""
    outcomes = Counter(line["outcome"] for line in lines)
    return {
        "n_in": len(lines),
        "published": outcomes["group"] + outcomes["reuse"],
        "suppressed": outcomes["suppressed"],
        "quarantined": outcomes["quarantined"],
        "held": 0,
    }


def timed(table: pa.Table) -> pa.Table:
    """Rows whose times are Spark's, as the time of the stream and as a column that is kept."""
    seconds = pa.array([1_700_000_000 + i // 2 for i in range(len(table))])
    times = seconds.cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC"))
    return table.append_column("at", times).append_column("seen", times)


TIMED = 'time = "at"\n' + SCHEMA.replace('["ward"]', '["ward", "seen"]')


@pytest.mark.parametrize(
    ("name", "table", "options"),
    [
        (
            "castle",
            timed(TABLE),
            {"schema": TIMED, "policy": POLICY.replace("}", ", seconds = 25 }")},
        ),
        ("fads", TABLE, {}),
        pytest.param("tide", TABLE, {}, marks=pytest.mark.nightly),
    ],
    ids=["castle", "fads", "tide"],
)
def test_one_shard_is_a_run_on_its_own_row_for_row(spark, tmp_path, name, table, options):
    run = on_spark(spark, tmp_path, table, name=name, **options)
    publishing = run.to_end()
    story = Story(run.job.pipeline, table).execute()
    assert run.public == story.output.to_pylist()
    assert unsharded(run.lines) == by_row(story.trace.table.to_pylist())
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *(f"batch-000000000{i}" for i in range(3)), "batch-0000000002-end"
    }  # fmt: skip
    assert totals(publishing.summary) == totals(story.run.summary)


@pytest.mark.story
def test_several_shards_lose_and_double_nothing(spark, tmp_path):
    run = on_spark(spark, tmp_path)
    run.job = job_of(tmp_path, policy=POLICY, more=f"{OUT}[spark]\nshards = 2\ninterval = 0.2\n")
    publishing = run.publish()
    wait_until(lambda: publishing.summary.n_in == 900, publishing)
    publishing.stop(drain=True)
    assert publishing.wait()
    lines = run.lines
    assert sorted(line["row"] for line in lines) == list(range(900))
    published = [line["seq"] for line in lines if line["seq"] is not None]
    assert sorted(published) == list(range(len(run.public)))
    assert {line["shard"] for line in lines} == {0, 1}
    report = run.judge()
    assert report.verdict == "kept", str(report)
    assert totals(publishing.summary) == counted(lines)


class Notes:
    """What an observer remembers from one run to the next."""

    kept: object = None

    def state(self) -> dict[str, object]:
        return {"kept": self.kept}

    def restore(self, state: object) -> None:
        assert isinstance(state, dict)
        self.kept = state["kept"]


class OtherNotes(Notes):
    """Of an observer that can't read what there was, such as one with a wrong key."""

    def restore(self, state: object) -> None:
        pass


def test_several_shards_lose_and_double_nothing_and_migrate(spark, tmp_path):
    run = on_spark(spark, tmp_path)
    run.job = job_of(tmp_path, policy=POLICY, more=f"{OUT}[spark]\nshards = 2\ninterval = 0.2\n")
    seen: list[int] = []
    before, after = Notes(), Notes()
    publishing = run.publish(watch=lambda summary: seen.append(summary.n_in), memory=before)
    wait_until(lambda: publishing.summary.n_in == 900, publishing)
    before.kept = "what was shown after the last batch"
    publishing.stop()
    assert sorted(set(seen)) == [300, 600, 900]
    held = publishing.summary.n_held
    assert held > 0
    assert publishing.saved.n_bytes > 0
    assert len(run.lines) == 900 - held
    # Another number of shards isn't begun with unseen.
    with pytest.raises(CheckpointError, match=r"has 2 shards and is to have 3.*--migrate"):
        run.publish(shards=3, memory=OtherNotes())
    more = people(600, seed=2, n_people=200).select(COLUMNS)
    run.table = pa.concat_tables([TABLE, more])
    spread(more, tmp_path / "in", 2, first=3)
    publishing = run.publish(shards=3, migrate=True, memory=after)
    assert after.kept == before.kept
    wait_until(lambda: publishing.summary.n_in == 1500, publishing)
    publishing.stop(drain=True)
    assert publishing.wait()
    lines = run.lines
    assert sorted(line["row"] for line in lines) == list(range(1500))
    published = [line["seq"] for line in lines if line["seq"] is not None]
    assert sorted(published) == list(range(len(run.public)))
    assert {line["shard"] for line in lines} == set(range(5))
    assert {line["shard"] for line in lines if line["row"] < 900} == {0, 1}
    report = run.judge()
    assert report.verdict == "kept", str(report)
    assert totals(publishing.summary) == counted(lines)
    assert publishing.summary.groups.count == len({line["group"] for line in lines} - {None})
    # What was published stays as it was.
    assert (tmp_path / "out" / "batch-0000000002-end").is_dir()


def test_a_pause_of_the_input_doesnt_hold_rows(spark, tmp_path):
    delay, interval, n_rows = 3.0, 0.5, 60
    table = people(3 * n_rows, n_people=3 * n_rows).select(COLUMNS)
    run = on_spark(
        spark, tmp_path, table, publish="suppressed = 'root'",
        policy=f"k = 4\ndelay = {{ rows = 10000, seconds = {delay}, clock = 'wall' }}",
        more=f"{OUT}[spark]\nshards = 2\ninterval = {interval}\n",
    )  # fmt: skip
    for path in (tmp_path / "in").iterdir():
        path.unlink()
    publishing = run.publish()
    for i in range(3):
        put(table.slice(i * n_rows, n_rows), tmp_path / "in", i)
        # Nothing more comes until these are out.
        wait_until(lambda n=(i + 1) * n_rows: is_out(publishing.summary, n), publishing)
    # Batches go on, one a second; none is begun once it is to stop.
    publishing._driver.stop_after_batch(lambda: None)
    assert publishing.wait()
    # Who goes on to the end of what is there finds the same sources.
    run.to_end()
    lines = run.lines
    assert len(lines) == len(table)
    waited = [
        max(line["published_s"] - line["arrived_s"] for line in lines if line["row"] // n_rows == i)
        for i in range(3)
    ]
    # A machine that is busy can make rows late once, and not each time.
    assert min(waited) <= delay + 2 * interval
    # What is due leaves before the next epoch is through, but nothing much earlier.
    assert min(waited) >= (1 - MOST_LEAD) * delay


def is_out(summary: Summary, n_rows: int) -> bool:
    """Whether this many rows have come, and all have left."""
    return summary.n_in == n_rows and summary.n_held == 0
