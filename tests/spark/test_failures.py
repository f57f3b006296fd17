"""Errors of shards that Spark wraps are restored."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from shoal import errors
from shoal.errors import (
    CheckpointError,
    DataError,
    JobError,
    ParameterError,
    PromiseError,
    ResourceError,
    ShoalError,
)
from shoal.run.state.heading import DamagedError
from shoal.spark.failures import original_error, without_values


def carried(text: str) -> RuntimeError:
    """As Spark tells what a Python worker has said."""
    return RuntimeError(
        "An error occurred while calling o51.save.\n: org.apache.spark.SparkException: Job aborted "
        "due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent failure: "
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "shard.py", line 101, in step\n'
        f"{text}\n\n\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator"
    )


@pytest.mark.parametrize(
    "kind", [DataError, ResourceError, CheckpointError, PromiseError, ShoalError]
)
def test_an_error_of_a_shard_is_restored(kind):
    found = original_error(
        carried(f"shoal.errors.{kind.__name__}: batch-0000000003: age is missing.")
    )
    assert type(found) is kind
    assert str(found) == "batch-0000000003: age is missing."


def test_a_job_error_keeps_its_text_and_its_exit_code():
    error = ParameterError("run.checkpoint.seal", "must say where the key is", fix="Say it")
    found = original_error(carried(f"shoal.errors.ParameterError: {error}"))
    assert isinstance(found, JobError)
    assert str(found) == str(error)
    assert found.exit_code == 2


def failing(error: Exception) -> Iterator[pa.RecordBatch]:
    yield from ()
    raise error


def raised(error: Exception) -> str:
    """What Python prints about the exception of a task."""
    with pytest.raises(ShoalError) as caught:
        list(without_values(failing(error), "epoch 7"))
    return "".join(traceback.format_exception_only(caught.value)).rstrip()


def test_a_damaged_state_of_a_shard_is_told_as_one():
    error = DamagedError(Path("state/state-0000000007"), "the checksum doesn't match")
    found = original_error(carried(raised(error)))
    assert type(found) is CheckpointError
    assert str(found) == str(error)
    # The classes of the package pass as they are.
    job = JobError(errors.Problem("policy.k", "is too small"))
    assert raised(job) == f"shoal.errors.JobError: {job}"


def test_an_unknown_error_of_shoal_is_a_shoal_error():
    found = original_error(carried("shoal.errors.LaterError: something new"))
    assert type(found) is ShoalError
    assert str(found) == "something new"
    # What else the module has isn't an error.
    assert type(original_error(carried("shoal.errors.Problem: odd"))) is ShoalError
    assert not issubclass(errors.Problem, ShoalError)


def test_of_any_other_error_only_the_kind_is_named(monkeypatch):
    monkeypatch.delenv("SHOAL_DEBUG", raising=False)
    ours, foreign = DataError("as it was"), RuntimeError("Job aborted by canary")
    assert original_error(ours) is ours
    error = original_error(foreign)
    assert isinstance(error, ResourceError)
    assert "RuntimeError" in str(error)
    assert "canary" not in str(error)
    monkeypatch.setenv("SHOAL_DEBUG", "1")
    assert original_error(foreign) is foreign
    interrupted = KeyboardInterrupt()
    assert original_error(interrupted) is interrupted
