"""Jobs of z-anonymity that are killed and started again."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from shoal.audit import Report, audit
from shoal.job import Job
from tests.crashes.world import FilesJob, read_all

ROTATE = 25
#: Windows in seconds, levels, gaps, late rows, and a z that follows the stream.
EVENTS = """\
[schema]
subject = "who"
time = "at"
[schema.quasi]
page = {}
area = { path = "*", levels = 3 }
[schema.keep]
columns = ["note"]
[policy]
z = 3
window = { seconds = 30 }
lateness = 4
missing = "maybe"
[algorithm]
name = "z-anonymity"
probability = 0.8
estimates = 4
[bad_rows]
limit = 0.2
[publish]
time = 5
"""
PSEUDONYM = f"pseudonym = {{ rotate = {ROTATE} }}\n"


def events(n_rows: int, seed: int = 1) -> pa.Table:
    """What some people did, one row a second; now and then a row is late or lacks something."""
    draw = random.Random(seed)
    areas = ["it*to*centro", "it*to*lingotto", "it*mi", "fr"]
    rows = []
    for i in range(n_rows):
        who = draw.randrange(14)
        # For a while everybody has a page of few, so that z has to move.
        page = f"page-{who // 2 if i // 60 % 2 else draw.randrange(4)}"
        rows.append(
            {
                "who": f"person-{who}",
                "page": None if i % 17 == 3 else page,
                "area": draw.choice(areas),
                "note": f"row-{i}",
                "at": float(i) - (9.0 if i % 13 == 12 else draw.random()),
            }
        )
    return pa.Table.from_pylist(rows)


@dataclass
class EventsJob(FilesJob):
    """A job of z-anonymity, with a trace or with pseudonyms."""

    named: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        publish = PSEUDONYM if self.named else ""
        run = f"seed = 7\ncheckpoint = {{ folder = 'state', every = {self.every} }}\n"
        self.job.write_text(f"{EVENTS}{publish}[run]\n{run}")

    @property
    def command(self) -> list[str]:
        """What is run; a trace would undo the pseudonyms."""
        words = super().command
        if self.named:
            at = words.index("--trace")
            del words[at : at + 2]
        return words

    @property
    def renamed(self) -> bytes:
        """What it has published, with pseudonyms numbered as they come: keys are random."""
        names: dict[bytes, bytes] = {}
        return re.sub(
            rb"\b[0-9a-f]{32}\b",
            lambda found: names.setdefault(found[0], b"name-%d" % len(names)),
            self.published,
        )

    def judge(self) -> Report:
        """The audit of all of it."""
        job = Job.load(self.job)
        return audit(
            job.schema, job.policy, self.rows, trace=self.trace, original=self.table, time=5
        )

    @property
    def rows(self) -> pa.Table:
        """What it has published, as rows."""
        return read_all(self.folder / self.output.rstrip("/"))

    def check_names(self) -> None:
        """Each subject has one pseudonym in a period, and nobody else has it."""
        clock, latest = {}, float("-inf")
        for row in self.table.to_pylist():
            if row["at"] >= latest - 4:
                latest = max(latest, row["at"])
                clock[row["note"]] = row["who"], latest // ROTATE
        owners, names = defaultdict(set), defaultdict(set)
        for row in self.rows.to_pylist():
            mine = clock[row["note"]]
            owners[row["pseudonym"]].add(mine)
            names[mine].add(row["pseudonym"])
        assert len(names) > 5
        assert {len(found) for found in [*owners.values(), *names.values()]} == {1}


def bytes_under(folder: Path) -> bytes:
    """All bytes of all files in a folder."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
