"""Values that are made to break a program cost one quarantined row each, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.errors import DataError
from shoal.io import open_source
from tests.world import ID_AND_AGE

LONE = json.loads('"\\ud800"')


def endless_dict() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["me"] = found
    return found


def endless_list() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    found.append(found)
    return found


def deep_list() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


HOSTILE = {
    "a dict in itself": endless_dict(),
    "a list in itself": endless_list(),
    "deep nesting": deep_list(),
    "a huge number": 10**400,
    "a lone surrogate": LONE,
    "a set": {1},
    "bytes": b"\xff\x00",
    "an object": object(),
}
JOB = {
    "schema": {"subject": "id", "quasi": {"age": {"range": [0, 120], "step": 1}}},
    "policy": {"k": 2, "delay": {"rows": 100}},
    "algorithm": {"name": "castle"},
    "bad_rows": {"limit": 1},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_value_in_a_dict_costs_one_row(name: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"id": f"p{i}", "age": 20 + i} for i in range(9)]
    rows.insert(4, {"id": "bad", "age": HOSTILE[name]})
    job = JOB | {"bad_rows": {"limit": 1, "file": str(tmp_path / "bad.jsonl")}}
    result = shoal.run(job, input=rows)
    assert result.summary.n_quarantined == 1
    assert result.summary.n_in == 10
    assert len(result.frame) == 9
    (line,) = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert json.loads(line)["row"] == 4


@pytest.mark.parametrize("name", ["a dict in itself", "a list in itself", "deep nesting"])
def test_a_hostile_value_in_a_frame_is_an_error_and_no_crash(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b"], "age": [20, HOSTILE[name]]}, dtype=object)
    with pytest.raises(DataError, match="column age has values of several types"):
        shoal.run(JOB, input=frame)


LINES = [
    "[" * 100_000 + "]" * 100_000,
    '{"id": "p", "age": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"id": "p", "age": ' + "9" * 100_000 + "}",
    '{"id": "p", "age": 1e999999}',
    '{"id": "p", "age": "\\ud800"}',
    '{"id": "p", "age": {"a": {}}}',
    '{"id": "p", "age": NaN}',
    "null",
    "",
    "\0",
    '{"id": "p", "age": 3',
]


@pytest.mark.parametrize("at", range(len(LINES)))
def test_a_hostile_line_costs_one_row_at_most(at: int, tmp_path: Path) -> None:
    good = [json.dumps({"id": f"p{i}", "age": 20 + i}) for i in range(8)]
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join([*good[:4], LINES[at], *good[4:]]) + "\n")
    (tmp_path / "job.toml").write_text(
        f"[schema]\n{ID_AND_AGE}[policy]\nk = 2\ndelay = {{ rows = 100 }}\n"
        "[algorithm]\nname = 'castle'\n[bad_rows]\nlimit = 1\n"
    )
    result = shoal.run(tmp_path / "job.toml", input=path, output=tmp_path / "out.jsonl")
    source = open_source(tmp_path / "out.jsonl")
    assert sum(chunk.batch.num_rows for chunk in source) == 8
    source.close()
    assert result.summary.n_quarantined <= 1
