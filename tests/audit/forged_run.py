"""An honest run from the command line, to be forged: its tables as lists, and the way back."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.world import people, read, shoal, write, write_job

FORMATS = ("csv", "jsonl", "parquet", "arrow")
K = 4
SCHEMA = """\
subject = "person"
time = "at"
[schema.quasi]
age = { range = [0, 120], step = 5 }
town = { hierarchy = "town.csv" }
[schema.sensitive]
illness = {}
[schema.keep]
columns = ["ward"]
"""
#: The leaves under each label of the hierarchy.
TOWNS = {
    "any": {"berlin", "dresden", "bonn", "koeln"},
    "east": {"berlin", "dresden"},
    "west": {"bonn", "koeln"},
}


@dataclass
class Run:
    """Output, trace and original of a run; ``published`` is in the order of the output."""

    published: list[dict[str, Any]]
    trace: list[dict[str, Any]]
    original: list[dict[str, Any]]

    def copy(self) -> Run:
        return copy.deepcopy(self)

    def groups(self) -> dict[int, list[dict[str, Any]]]:
        """The lines of rows released in groups, by group, in the order of the output."""
        found: dict[int, list[dict[str, Any]]] = {}
        for line in self.in_order():
            if line["outcome"] == "group":
                found.setdefault(line["group"], []).append(line)
        return found

    def in_order(self) -> list[dict[str, Any]]:
        """The lines of published rows in the order of the output."""
        return sorted((x for x in self.trace if x["seq"] is not None), key=lambda x: x["seq"])

    def reorder(self, lines: list[dict[str, Any]]) -> None:
        """Publish these lines, and no others, in this order."""
        self.published = [self.published[line["seq"]] for line in lines]
        chosen = {id(line) for line in lines}
        for line in self.trace:
            if id(line) not in chosen:
                line["seq"] = None
        for seq, line in enumerate(lines):
            line["seq"] = seq

    def shown(self, line: dict[str, Any]) -> dict[str, Any]:
        return self.published[line["seq"]]

    def covers(self, line: dict[str, Any], box: dict[str, Any]) -> bool:
        """Whether the box of a published row covers the original of a line."""
        row = self.original[line["row"]]
        low, high = map(float, box["age"].strip("[]").split(", "))
        return low <= row["age"] <= high and row["town"] in TOWNS.get(box["town"], {box["town"]})

    def recount(self) -> None:
        """Count the arrivals of rows that aren't quarantined anew, and move the moments along."""
        valid = sorted((x for x in self.trace if x["arrived"] is not None), key=lambda x: x["row"])
        place = {line["arrived"]: i for i, line in enumerate(valid)}
        n_before = max(place) + 1
        for line in self.trace:
            if line["arrived"] is not None:
                line["arrived"] = place[line["arrived"]]
            if line["published"] is not None:
                moment = line["published"]
                while moment not in place and moment < n_before:
                    moment += 1
                line["published"] = place.get(moment, len(valid))


def honest_run(folder: Path, monkeypatch: pytest.MonkeyPatch, *, publish: str = "") -> Run:
    """Run castle over made-up people; a few rows can't be used."""
    table = people(400, n_people=200)
    ages = [None if i % 97 == 5 else age for i, age in enumerate(table["age"].to_pylist())]
    table = table.set_column(1, "age", pa.array(ages))
    policy = f"k = {K}\ndelay = {{ rows = 60 }}"
    job = write_job(folder, schema=SCHEMA, policy=policy, publish=publish)
    source = write(table, folder / "in.parquet")
    out, trace = folder / "out.parquet", folder / "trace.parquet"
    assert shoal(monkeypatch, "run", job, "-i", source, "-o", out, "--trace", trace, "-q") == 0
    lines = pq.read_table(trace).to_pylist()
    return Run(read(out).to_pylist(), lines, table.to_pylist())


@dataclass
class Auditor:
    """Writes a run to files of one format, and calls ``shoal audit`` on them."""

    folder: Path
    form: str
    monkeypatch: pytest.MonkeyPatch
    capfd: pytest.CaptureFixture[str]

    @property
    def out(self) -> Path:
        return self.folder / f"forged.{self.form}"

    def write(self, run: Run) -> None:
        write(pa.Table.from_pylist(run.published), self.out)
        write(pa.Table.from_pylist(run.original), self.folder / f"original.{self.form}")
        pq.write_table(pa.Table.from_pylist(run.trace), self.folder / "lines.parquet")

    def audit(self, run: Run | None = None) -> tuple[int, str]:
        """The exit code and the report; without a run, of the files that are there."""
        if run is not None:
            self.write(run)
        self.capfd.readouterr()
        code = shoal(
            self.monkeypatch, "audit", self.folder / "job.toml", self.out,
            "--original", self.folder / f"original.{self.form}",
            "--trace", self.folder / "lines.parquet",
        )  # fmt: skip
        return code, self.capfd.readouterr().out
