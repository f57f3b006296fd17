"""The job that is soaked, as a file, and the messages that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from shoal.datasets import census
from shoal.io.kafka.payloads import payloads_for
from shoal.io.kafka.settings import KafkaSettings
from shoal.spec.hierarchy import Hierarchy, Range

__all__ = ["Messages", "SoakJob", "write_job"]

SEED = 2011
#: A mark in the templates, after each person's number: where the turn goes.
TURN = b'@"'


@dataclass(frozen=True)
class SoakJob:
    """What the job promises, and how rows come and go."""

    k: int = 100
    delay: int = 10_000
    message_rows: int = 1000
    #: How many different messages there are, before all people are replaced by others.
    n_templates: int = 200
    every: float = 10.0


def write_job(
    folder: Path, job: SoakJob, *, address: str, source: str, sink: str, name: str
) -> Path:
    """Write the job and its hierarchies; give the path of the job.

    Each row carries where it came from, so that whoever reads the output can tell that it came
    once. Rows that can't be published leave as well, without that, so that all can be counted.
    """
    schema = census(1).schema
    lines = ["[schema]", f'subject = "{schema.subject}"', "", "[schema.quasi]"]
    lines += [
        f"{quasi.name} = {_domain(folder, quasi.name, quasi.domain)}" for quasi in schema.quasi
    ]
    lines += ["", "[schema.sensitive]"]
    for sensitive in schema.sensitive:
        assert isinstance(sensitive.domain, Hierarchy)
        lines.append(f"{sensitive.name} = {_domain(folder, sensitive.name, sensitive.domain)}")
    lines.append(
        f"""
[schema.keep]
columns = ["message", "line"]

[policy]
k = {job.k}
delay = {{ rows = {job.delay} }}

[algorithm]
name = "castle"

[publish]
suppressed = "root"

[input]
kafka = "{address}"
topic = "{source}"

[output]
kafka = "{address}"
topic = "{sink}"
rows = {job.message_rows}

[output.settings]
"compression.type" = "lz4"

[run]
name = "{name}"
checkpoint = {{ folder = "state", every = {job.every} }}
"""
    )
    path = folder / "soak.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _domain(folder: Path, name: str, domain: Range | Hierarchy) -> str:
    if isinstance(domain, Range):
        return f"{{ range = [{domain.lo:g}, {domain.hi:g}], step = {domain.step:g} }}"
    rows = []
    for leaf in domain.leaf_nodes:
        path, node = [domain.labels[leaf]], leaf
        while node:
            node = domain.parents[node]
            path.append(domain.labels[node])
        rows.append(";".join(path))
    (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return f"{{ hierarchy = {json.dumps(f'{name}.csv')} }}"


class Messages:
    """An endless stream of messages, each with its number, at next to no cost.

    Templates are rendered once. In every turn through them all people are new ones.
    """

    def __init__(self, job: SoakJob) -> None:
        n_rows = job.n_templates * job.message_rows
        table = census(n_rows, seed=SEED).table().drop_columns(["arrived_at", "visit"])
        people = [f"{person}@" for person in table["person_id"].to_pylist()]
        table = table.set_column(0, "person_id", pa.array(people))
        lines = np.tile(np.arange(job.message_rows), job.n_templates)
        table = table.append_column("message", pa.array(np.zeros(n_rows, np.int64)))
        table = table.append_column("line", pa.array(lines))
        [batch] = table.combine_chunks().to_batches()
        settings = KafkaSettings("nowhere:0", "templates", rows=job.message_rows)
        cut = payloads_for(settings, batch.schema).cut(batch, 0)
        self._templates = [payload.data for payload in cut]

    def __iter__(self) -> Iterator[bytes]:
        number = 0
        while True:
            turn, place = divmod(number, len(self._templates))
            data = self._templates[place].replace(TURN, b'-%d"' % turn)
            yield data.replace(b'"message": 0', b'"message": %d' % number)
            number += 1
