"""``shoal audit`` takes from the job what the audit of cells must know."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from shoal.cli import audit as command
from shoal.job import auditing
from shoal.spec.policy import Policy, Window, ZAnonymity
from tests.audit.z.world import CellWorld, stream


def judged(
    world: CellWorld, folder: Path, monkeypatch: pytest.MonkeyPatch, *, count: str = "residual"
) -> int:
    """Write the files of a run, and audit them by a job."""
    settings = world.settings
    pseudonym = SimpleNamespace(rotate=settings["rotate"]) if "rotate" in settings else None
    publish = SimpleNamespace(
        numeric="range",
        suppressed=settings.get("suppressed", "drop"),
        pseudonym=pseudonym,
        time=settings.get("time"),
    )
    job = SimpleNamespace(
        schema=world.schema,
        policy=world.policy,
        publish=publish,
        anonymizer=SimpleNamespace(count=count),
        input=None,
        output=None,
        checkpoints=None,
    )
    monkeypatch.setattr(auditing, "job_of", lambda path: (job, path))
    pq.write_table(world.input(), folder / "in.parquet")
    pq.write_table(world.lines(), folder / "trace.parquet")
    out = folder / "out.jsonl"
    out.write_text("".join(json.dumps(row) + "\n" for row in world.published))
    return command.audit(
        Path("job.toml"),
        str(out),
        original=str(folder / "in.parquet"),
        trace=folder / "trace.parquet",
        from_format=None,
        as_json=False,
    )


@pytest.mark.parametrize(
    "settings", [{}, {"pseudonym": True, "rotate": 15.0, "time": 5.0}, {"suppressed": "root"}]
)
def test_a_right_run_is_kept(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = CellWorld(original=stream(4), settings=settings).run()
    assert judged(world, tmp_path, monkeypatch) == 0


def test_the_rule_is_that_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    world = CellWorld(original=stream(4), settings={"count": "plain"}).run()
    assert judged(world, tmp_path, monkeypatch, count="plain") == 0
    assert "plain rule" in capfd.readouterr().out
    assert judged(world, tmp_path, monkeypatch) == 1


@pytest.mark.parametrize("settings", [{}, {"pseudonym": True, "rotate": 15.0, "time": 5.0}])
def test_an_output_without_rows_has_the_columns_of_the_job(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(ZAnonymity(50), window=Window(seconds=10))
    world = CellWorld(policy=policy, original=stream(4), settings=settings).run()
    assert not world.published
    assert judged(world, tmp_path, monkeypatch) == 0
