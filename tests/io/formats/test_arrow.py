"""Arrow files that are damaged where Arrow itself doesn't look."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.errors import ResourceError
from shoal.io import open_source
from shoal.io.kafka.values import ArrowValues

TABLE = pa.table({"name": ["a"], "at": pa.array([1], pa.timestamp("us", "Europe/Berlin"))})


def damaged(text: bytes) -> bytes:
    """A stream in which the end of a text is no UTF-8."""
    output = io.BytesIO()
    with pa.ipc.new_stream(output, TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert text in output.getvalue()
    return output.getvalue().replace(text, text[:-1] + b"\xc4")


@pytest.mark.parametrize("text", [b"name", b"Europe/Berlin"], ids=["name", "time zone"])
def test_a_schema_that_is_no_text_is_an_error_of_the_file_or_one_bad_row(
    tmp_path: Path, text: bytes
) -> None:
    data = damaged(text)
    path = tmp_path / "people.arrow"
    path.write_bytes(data)
    with pytest.raises(ResourceError, match="isn't a whole Arrow stream"):
        open_source(path, ["name", "at"])
    rows = ArrowValues(["name", "at"]).read([data], first_row=3)
    assert [(bad.row, bad.reason) for bad in rows.bad] == [(3, "not a whole Arrow stream")]
