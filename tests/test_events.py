"""Events have numbers, booleans and short plain words, and nothing else."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.events import WITHHELD, Raised, event, is_name, plain, plain_fields

CANARY = "CANARY-4711"
LOG = logging.getLogger("shoal.test_events")


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """What was logged below ``shoal``, from the lowest level on."""
    records: list[logging.LogRecord] = []

    class RecordingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler, level = RecordingHandler(), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG)
    yield records
    LOG.removeHandler(handler)
    LOG.setLevel(level)


def test_an_event_has_a_name_and_plain_fields(records):
    event(
        LOG, logging.INFO, "checkpoint saved", number=3, seconds=0.5, sealed=True, why="timer",
        lag=None, bytes=np.int64(7), loss=np.float32(0.5),
    )  # fmt: skip
    (record,) = records
    assert (record.msg, record.levelno, record.filename) == (
        "checkpoint saved", logging.INFO, "test_events.py",
    )  # fmt: skip
    assert record.fields == {
        "number": 3, "seconds": 0.5, "sealed": True, "why": "timer",
        "lag": None, "bytes": 7, "loss": 0.5,
    }  # fmt: skip
    assert type(record.fields["bytes"]) is int
    assert type(record.fields["loss"]) is float


def test_numbers_that_json_cannot_represent_are_none(records):
    event(LOG, logging.INFO, "run stands", loss=math.nan, lag=math.inf)
    assert records[0].fields == {"loss": None, "lag": None}


@pytest.mark.parametrize(
    "value",
    [
        CANARY, "Ada Lovelace", "a@b.de", "x" * 31, "", "7", "12.5.1970", "müller", "a_b",
        "plain\n", b"bytes", ["list"], {"a": 1}, ("t",), object(), Decimal(3), 1j, np.array([1]),
        np.bool_(1), ValueError("x"),
    ],
)  # fmt: skip
def test_other_values_are_refused_even_without_a_handler(value, records):
    LOG.setLevel(logging.CRITICAL)
    with pytest.raises(
        TypeError, match="field value must be a number or a short plain word"
    ) as error:
        event(LOG, logging.INFO, "row read", value=value)
    assert CANARY not in str(error.value)
    assert records == []


@pytest.mark.parametrize(
    "name", ["", CANARY, "Saved", "saved 3", "saved.", "a  b", " a", "a" * 61, "saved %s", None, 3]
)
def test_a_name_is_a_few_words(name, records):
    assert not is_name(name)
    with pytest.raises(TypeError, match="a few lower-case words") as error:
        event(LOG, logging.INFO, name)
    assert CANARY not in str(error.value)
    assert records == []


@pytest.mark.parametrize(
    "key", ["time", "level", "event", "text", "place", CANARY, "Age", "row 1", "a" * 31, "", "a_"]
)
def test_a_key_is_a_word_that_isnt_reserved(key, records):
    with pytest.raises(TypeError, match="a key must be a free lower-case word"):
        event(LOG, logging.INFO, "row read", **{key: 1})
    assert records == []


def test_only_type_and_place_of_an_exception_are_logged(records):
    try:
        int(CANARY)
    except ValueError as error:
        event(LOG, logging.ERROR, "run failed", error=error)
        line = error.__traceback__.tb_lineno
    (record,) = records
    assert record.raised == Raised("ValueError", f"test_events.py:{line}")
    # A handler of someone else, with the formatter that everybody uses.
    assert CANARY not in logging.Formatter("%(message)s").format(record)
    assert CANARY not in repr(vars(record))


def test_the_place_of_an_exception_is_the_innermost():
    try:
        math.fsum(CANARY for _ in iter(lambda: plain_fields(1 / 0), None))
    except ZeroDivisionError as error:
        assert Raised.of(error).place == f"test_events.py:{error.__traceback__.tb_lineno}"
    assert Raised.of(ValueError(CANARY)) == Raised("ValueError", "unknown")


def test_no_record_is_made_below_the_level(records):
    LOG.setLevel(logging.WARNING)
    event(LOG, logging.INFO, "checkpoint saved", number=3)
    assert records == []


def test_a_library_logs_nothing_by_default(capfd):
    event(logging.getLogger("shoal.elsewhere"), logging.ERROR, "run failed")
    assert capfd.readouterr() == ("", "")


def test_fields_of_a_foreign_record():
    assert plain_fields({"number": 3, "who": CANARY, CANARY: 1, 7: 1, "time": 2}) == {
        "number": 3,
        "who": WITHHELD,
    }
    assert plain_fields(CANARY) == plain_fields(None) == {}


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=3,
)


@given(anything)
def test_what_is_plain_is_short_and_of_a_plain_type(value: Any) -> None:
    found = plain(value)
    assert found is None or type(found) in (bool, int, float, str)
    if isinstance(found, str) and found != WITHHELD:
        assert found.replace("-", "").isalpha()
        assert found.isascii()
        assert len(found) <= 30
