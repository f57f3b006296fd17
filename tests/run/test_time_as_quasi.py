"""A quasi attribute that is the time of a row too, however it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal import Hierarchy, KAnonymity, Policy, Quasi, Range, Schema
from shoal.arrow.codec import Codec
from shoal.engine import Space
from tests.world import people, read, shoal, write, write_job

#: A minute past midnight, in 2024.
BEGIN = 1_704_067_260
WRITTEN = [
    pa.array([BEGIN, BEGIN + 90]),
    pa.array([BEGIN + 0.0, BEGIN + 90.0]),
    pa.array([f"{BEGIN}", f" {BEGIN + 90}.0"]),
    pa.array(["2024-01-01 00:01:00", "2024-01-01T00:02:30"]),
    pa.array(["2024-01-01T00:01:00Z", "2024-01-01 01:02:30+01:00"]),
    pa.array(["2024-01-01 00:01:00", f"{BEGIN + 90}"]).dictionary_encode(),
    pa.array([BEGIN, BEGIN + 90], pa.timestamp("s")),
    pa.array([BEGIN * 1000, (BEGIN + 90) * 1000], pa.timestamp("ms", "Europe/Rome")),
]


def schema(low: float = BEGIN - 60, high: float = BEGIN + 3600) -> Schema:
    return Schema(None, [Quasi("age", Range(0, 99)), Quasi("t", Range(low, high))], time="t")


def encode(column: Any, **options: Any) -> Any:
    batch = pa.record_batch({"age": [20.0, 30.0], "t": column})
    return Codec(schema(**options), key=bytes(8), with_gaps=True).encode(batch)


@pytest.mark.parametrize("column", WRITTEN, ids=lambda column: str(column.type))
def test_its_codes_are_the_times_in_seconds(column: Any) -> None:
    encoded = encode(column)
    assert encoded.reasons == {}
    clock = Space(schema(), Policy(KAnonymity(2))).clock
    assert encoded.codes.values[:, clock].tolist() == [BEGIN, BEGIN + 90]
    assert encoded.codes.times.tolist() == [BEGIN, BEGIN + 90]


def test_what_is_out_of_its_range_is_bad_and_so_is_what_is_no_time() -> None:
    late = pa.array(["2024-01-01 00:01:00", "2024-01-01 00:02:30"])
    assert encode(late, high=BEGIN + 60).reasons == {1: "t is out of its range"}
    assert encode(pa.array(["soon", None])).reasons == {0: "t isn't a time", 1: "t is missing"}


def test_a_category_that_is_the_time_stays_a_category() -> None:
    days = Schema(None, [Quasi("t", Hierarchy.flat(["86400", "172800"]))], time="t")
    batch = pa.record_batch({"t": ["172800", "86400"]})
    encoded = Codec(days, key=bytes(8)).encode(batch)
    assert encoded.codes.values.tolist() == [[1.0], [0.0]]
    assert encoded.codes.times.tolist() == [172800.0, 86400.0]


SCHEMA = """\
subject = "person"
time = "at"
[schema.quasi]
age = {{ range = [0, 120], step = 1 }}
at = {{ range = [{low}, {high}], step = 60 }}
"""


@pytest.mark.parametrize(
    ("form", "ending"), [("seconds", "csv"), ("text", "csv"), ("ns", "parquet"), ("s", "parquet")]
)
@pytest.mark.parametrize("loss", ["glm", "uncertainty"])
def test_from_a_file_to_the_audit(
    form: str, ending: str, loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    table = people(80)
    seconds = BEGIN + np.asarray(table["at"]).astype(np.int64)
    times: Any = pa.array(seconds)
    if form != "seconds":
        times = times.cast(pa.timestamp("s"))
    if form == "text":
        times = times.cast(pa.string())
    if form == "ns":
        # Finer than what is counted in.
        times = pa.array(seconds * 10**9 + 1_999, pa.timestamp("ns"))
    table = table.set_column(table.schema.names.index("at"), "at", times)
    job = write_job(
        tmp_path, schema=SCHEMA.format(low=BEGIN, high=BEGIN + 3600),
        policy="k = 3\ndelay = { rows = 100, seconds = 20 }", algorithm=f'loss = "{loss}"',
    )  # fmt: skip
    source = write(table, tmp_path / f"in.{ending}")
    out, trace = tmp_path / "out.csv", tmp_path / "trace.parquet"
    assert shoal(monkeypatch, "run", job, "-i", source, "-o", out, "--trace", trace, "-q") == 0
    labels = read(out)["at"].to_pylist()
    assert len(labels) > 60
    edges = [float(edge) for label in labels for edge in label.strip("[]").split(", ")]
    assert min(edges) >= BEGIN
    assert all(edge == BEGIN or edge % 60 == 0 for edge in edges)
    waited = read(trace)
    late = np.asarray(waited["published_s"]) - np.asarray(waited["arrived_s"])
    assert 0 <= late.min() <= late.max() <= 20
    words = ("audit", job, out, "--original", source, "--trace", trace)
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr().out
