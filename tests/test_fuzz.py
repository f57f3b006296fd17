"""A few hundred of the inputs of ``make fuzz``, and those that once were findings."""

from __future__ import annotations

import pytest

from tests.fuzz import TARGETS, fuzz
from tests.fuzz.targets import CANARY, READERS

#: Inputs that crashed once: seed and number, by target.
ONCE = [
    ("arrow file", 0, 397), ("arrow file", 5, 451), ("arrow message", 5, 129), ("job", 11, 4943),
    ("job", 2026, 53433), ("parquet file", 2026, 482),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_changed_inputs_end_well(target: str) -> None:
    assert list(fuzz(target, 60, seed=1)) == []


@pytest.mark.parametrize("target", ["avro message", "protobuf message", "envelope"])
def test_the_input_that_is_changed_is_a_good_one(target: str) -> None:
    good, _ = TARGETS[target]
    rows = READERS[target]().read([good], first_row=0)
    assert rows.bad == []
    assert [name.split()[0] for name in rows.batch["name"].to_pylist()] == [CANARY]


@pytest.mark.parametrize(("target", "seed", "number"), ONCE)
def test_what_was_found_is_corrected(target: str, seed: int, number: int) -> None:
    assert list(fuzz(target, 1, seed, number)) == []


def test_a_crash_is_found_and_the_same_seed_makes_the_same_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[bytes] = []

    def crashes(data: bytes) -> None:
        read.append(data)
        raise ZeroDivisionError

    monkeypatch.setitem(TARGETS, "job", (b"[schema]", crashes))
    first, again = list(fuzz("job", 2, seed=5)), list(fuzz("job", 2, seed=5))
    assert first == again
    assert [finding.what.split()[0] for finding in first] == ["ZeroDivisionError"] * 2
    assert read[:2] == read[2:]
