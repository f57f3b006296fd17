"""``shoal run`` with min-delay and the R-tree family: from the job file to the audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.world import SCHEMA, people, read, shoal, write, write_job

Monkey = pytest.MonkeyPatch
#: So few samples that plain Python has no trouble with them.
KNOBS = {
    "min-delay": "",
    "tree-basic": "",
    "tree-density": "samples = 20\nsampled = 60",
    "tree-full": "samples = 20\nsampled = 60\nalpha = 0.01",
}
TIMED = 'time = "at"\n' + SCHEMA
#: A schema, a policy and a knob.
BOUNDS = {
    "rows": (SCHEMA, "delay = { rows = 40 }", ""),
    "seconds": (TIMED, "delay = { seconds = 30 }", ""),
    "capacity": (SCHEMA, "", "capacity = 40"),
    "both": (TIMED, "delay = { rows = 60, seconds = 50 }", "capacity = 30"),
    "instants": (TIMED, "delay = { rows = 60 }", "instant = 2.0"),
}
UNKNOWN = ("min-delay", "instants")


def job_for(folder: Path, name: str, bound: str, promise: str = "k = 3\nl = 2") -> Path:
    """A job with one of the algorithms."""
    schema, delay, knob = BOUNDS[bound]
    path = write_job(
        folder, schema=schema, policy=f"{promise}\n{delay}", algorithm=f"{knob}\n{KNOBS[name]}"
    )
    path.write_text(path.read_text().replace("'castle'", f"'{name}'"))
    return path


@pytest.mark.parametrize(
    ("name", "bound"),
    # The minimum delay method knows no instants.
    [(name, bound) for name in KNOBS for bound in BOUNDS if (name, bound) != UNKNOWN],
)
def test_what_is_promised_is_kept(
    name: str, bound: str, tmp_path: Path, monkeypatch: Monkey, capfd: pytest.CaptureFixture[str]
) -> None:
    job, n = job_for(tmp_path, name, bound), 200
    data = write(people(n, n_people=80), tmp_path / "in.csv")
    out, trace = tmp_path / "out.csv", tmp_path / "trace.parquet"
    words = ("run", job, "-i", data, "-o", out, "--trace", trace, "-q")
    assert shoal(monkeypatch, *words) == 0, capfd.readouterr()
    judged = ("audit", job, out, "--original", data, "--trace", trace)
    assert shoal(monkeypatch, *judged) == 0, capfd.readouterr()
    assert read(out).num_rows > 0.9 * n
    lines = read(trace)
    assert lines.num_rows == n
    waited = max(
        published - arrived
        for arrived, published in zip(
            lines["arrived"].to_pylist(), lines["published"].to_pylist(), strict=True
        )
    )
    assert 2 < waited <= {"rows": 40, "both": 60, "instants": 60}.get(bound, n)


@pytest.mark.parametrize("name", [name for name in KNOBS if name != "min-delay"])
def test_instants_in_seconds_publish_between_rows(
    name: str, tmp_path: Path, monkeypatch: Monkey
) -> None:
    """Rows come on the second; what is due by the clock leaves between two of them."""
    job = job_for(tmp_path, name, "instants", "k = 2")
    data = write(people(150, n_people=150), tmp_path / "in.csv")
    out, trace = tmp_path / "out.csv", tmp_path / "trace.parquet"
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", out, "--trace", trace, "-q") == 0
    seconds = read(trace)["published_s"].to_pylist()
    assert sum(not second.is_integer() for second in seconds) > 50


@pytest.mark.parametrize("name", [name for name in KNOBS if name != "min-delay"])
def test_instants_in_seconds_without_a_time_are_refused(
    name: str, tmp_path: Path, monkeypatch: Monkey, capfd: pytest.CaptureFixture[str]
) -> None:
    job = job_for(tmp_path, name, "instants")
    job.write_text(job.read_text().replace('time = "at"\n', ""))
    data = write(people(20), tmp_path / "in.csv")
    words = ("run", job, "-i", data, "-o", tmp_path / "out.csv", "-q")
    assert shoal(monkeypatch, *words) == 2
    said = capfd.readouterr().err
    assert "neither a time column nor a delay in seconds is set" in said
    assert "Set schema.time or policy.delay.seconds" in said


@pytest.mark.parametrize("name", KNOBS)
def test_a_job_without_any_bound_is_refused(
    name: str, tmp_path: Path, monkeypatch: Monkey, capfd: pytest.CaptureFixture[str]
) -> None:
    job = job_for(tmp_path, name, "rows")
    job.write_text(job.read_text().replace("delay = { rows = 40 }", ""))
    data = write(people(20), tmp_path / "in.csv")
    assert shoal(monkeypatch, "run", job, "-i", data, "-o", tmp_path / "out.csv", "-q") == 2
    assert "nothing bounds it" in capfd.readouterr().err
