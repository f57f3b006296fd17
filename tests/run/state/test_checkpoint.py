"""Checkpoints as bytes: they come back exactly, and every damage is noticed."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from shoal.errors import CheckpointError
from shoal.run.state import checkpoint as form
from shoal.run.state.checkpoint import FORMAT, MAGIC, checkpoint_bytes, job_of
from shoal.run.state.heading import DamagedError, make_heading
from shoal.run.state.seal import Seal
from shoal.run.state.store import Checkpoint
from tests.examples import examples
from tests.run.state.world import BATCH, JOB, SEAL, SEALS, names, new_store, path, same, small

STREAM = bytes(form._batch_bytes(BATCH))

# -- there and back ------------------------------------------------------------------------------

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
some_arrays = npst.arrays(
    npst.scalar_dtypes() | npst.array_dtypes(npst.scalar_dtypes(), max_size=3),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.dictionaries(st.text(max_size=4), plain, max_size=3),
    st.dictionaries(st.text(max_size=4), some_arrays, max_size=3),
    st.booleans(),
)
def test_all_comes_back_exactly(
    facts: dict[str, Any], arrays: dict[str, Any], sealed: bool
) -> None:
    checkpoint = Checkpoint(3, facts, arrays, {})
    with tempfile.TemporaryDirectory() as name:
        store = new_store(Path(name), SEAL if sealed else None)
        assert store.save(checkpoint) == path(Path(name), 3).stat().st_size
        same(checkpoint, store.load(3))


@SEALS
@pytest.mark.parametrize(
    "batch",
    [
        BATCH,
        BATCH.slice(1, 1),
        BATCH.slice(0, 0),
        pa.record_batch({"n": pa.nulls(3), "l": [[1], None, []], "s": [{"a": "x"}, None, {}]}),
        pa.record_batch({"b": [True, None, False], "t": pa.array([1, 2, 3], pa.timestamp("ns"))}),
        pa.record_batch({}),
    ],
)
def test_batches_come_back_exactly(tmp_path, seal, batch) -> None:
    store = new_store(tmp_path, seal)
    checkpoint = Checkpoint(0, {}, {}, {"one": batch, "two": BATCH})
    store.save(checkpoint)
    same(checkpoint, store.load(0))


def test_records_and_layouts_come_back(tmp_path) -> None:
    kind = np.dtype([("subject", "i8"), ("inner", [("a", "f4"), ("b", "u1", (2,))])])
    arrays = {
        "records": np.zeros(3, kind),
        "none": np.empty(0, kind),
        "big-endian": np.arange(3, dtype=">i4"),
        "by column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "every other": np.arange(10)[::2],
        "no axis": np.array(7),
    }
    store = new_store(tmp_path)
    store.save(Checkpoint(0, {}, arrays))
    same(Checkpoint(0, {}, arrays), store.load(0))


def test_objects_are_never_pickled(tmp_path) -> None:
    store = new_store(tmp_path)
    with pytest.raises(ValueError, match="allow_pickle"):
        store.save(Checkpoint(0, {}, {"objects": np.array([object()])}))
    assert names(tmp_path) == []


def test_a_long_body_is_sealed_in_blocks_that_keep_their_places(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form, "BLOCK_BYTES", 100)
    store = new_store(tmp_path, SEAL)
    store.save(small())
    same(small(), store.load(0))
    data = path(tmp_path, 0).read_bytes()
    begin = len(form.read_checkpoint_heading(path(tmp_path, 0), data, 0).raw)
    step = 100 + SEAL.n_extra
    body = data[begin:-32]
    assert len(body) > 3 * step
    for changed in (
        body[step : 2 * step] + body[:step] + body[2 * step :],
        body[: len(body) // step * step],
        body[:step] + body[:step] + body[2 * step :],
        b"",
    ):
        rebuilt = data[:begin] + changed
        digest = hashlib.blake2b(rebuilt, digest_size=32).digest()
        path(tmp_path, 0).write_bytes(rebuilt + digest)
        with pytest.raises(CheckpointError, match=r"is damaged"):
            store.load(0)


# -- damage ------------------- --------------------------------------------------------------------


@SEALS
def test_no_flipped_bit_and_no_cut_goes_unnoticed(tmp_path, seal) -> None:
    store = new_store(tmp_path, seal)
    store.save(small())
    whole = path(tmp_path, 0).read_bytes()
    for i in range(len(whole)):
        flipped = bytearray(whole)
        flipped[i] ^= 1 << i % 8
        for data in (flipped, whole[:i]):
            path(tmp_path, 0).write_bytes(data)
            with pytest.raises(DamagedError, match="checkpoint-0000000000: is damaged"):
                store.load(0)
    path(tmp_path, 0).write_bytes(whole + b"\0")
    with pytest.raises(DamagedError):
        store.load(0)


def write_body(folder: Path, body: bytes) -> None:
    """Write a checkpoint whose heading and checksum are right."""
    data = make_heading(MAGIC, FORMAT, 0, 1.0, None, {"job": JOB}).raw + body
    path(folder, 0).write_bytes(data + hashlib.blake2b(data, digest_size=32).digest())


@given(st.binary(max_size=40))
def test_a_body_of_anything_is_refused_though_its_checksum_fits(body: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        write_body(Path(name), body)
        with pytest.raises(DamagedError, match="its content can't be read"):
            new_store(Path(name)).load(0)


@pytest.mark.parametrize(
    ("index", "rest"),
    [
        ({"facts": [], "arrays": [], "batches": []}, b""),
        ({"facts": {}, "arrays": [["a", -1]], "batches": []}, b""),
        ({"facts": {}, "arrays": [["a", 10**14]], "batches": []}, b""),
        ({"facts": {}, "arrays": [["a", 3]], "batches": []}, b"abc"),
        ({"facts": {}, "arrays": [], "batches": [["a", 3]]}, b"abc"),
        ({"facts": {}, "arrays": [], "batches": [["a", len(STREAM) + 1]]}, STREAM),
        ({"facts": {}, "arrays": [], "batches": []}, b"abc"),
        ({"facts": {}, "arrays": 7, "batches": []}, b""),
        ({"facts": {}}, b""),
    ],
)
def test_an_index_without_sense_is_refused(tmp_path, index, rest) -> None:
    text = json.dumps(index).encode()
    write_body(tmp_path, len(text).to_bytes(8, "big") + text + rest)
    with pytest.raises(DamagedError, match="its content can't be read"):
        new_store(tmp_path).load(0)


def test_a_pickled_array_is_never_read(tmp_path) -> None:
    """Reading it would run what somebody has written to the folder."""
    output = io.BytesIO()
    np.lib.format.write_array(output, np.array([{"a": 1}]), allow_pickle=True)
    array = output.getvalue()
    text = json.dumps({"facts": {}, "arrays": [["a", len(array)]], "batches": []}).encode()
    write_body(tmp_path, len(text).to_bytes(8, "big") + text + array)
    with pytest.raises(DamagedError, match="its content can't be read"):
        new_store(tmp_path).load(0)


def test_the_blocks_of_a_sealed_body_have_the_size_that_others_expect() -> None:
    """It isn't in the file: another size is another format."""
    assert form.BLOCK_BYTES == 2**26


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path) -> None:
    output = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**59,)}
    np.lib.format.write_array_header_1_0(output, header)
    array = output.getvalue()
    text = json.dumps({"facts": {}, "arrays": [["a", len(array)]], "batches": []}).encode()
    write_body(tmp_path, len(text).to_bytes(8, "big") + text + array)
    with pytest.raises(DamagedError, match="its content can't be read"):
        new_store(tmp_path).load(0)


@pytest.mark.parametrize(
    "facts",
    [
        b"7",
        b"{",
        b'{"version": "1", "key": null, "number": 0, "time": "x", "more": {}}',
        b'{"version": "1", "key": null, "number": 0, "time": 1e300, "more": {}}',
        b'{"version": "1", "key": null, "number": 0, "time": NaN, "more": {}}',
        b'{"version": "1", "key": null, "number": null, "time": 1, "more": {}}',
    ],
)
def test_a_heading_without_sense_is_refused_though_its_checksum_fits(tmp_path, facts) -> None:
    raw = MAGIC + FORMAT.to_bytes(4, "big") + len(facts).to_bytes(4, "big") + facts
    path(tmp_path, 0).write_bytes(raw + hashlib.blake2b(raw, digest_size=16).digest())
    with pytest.raises(DamagedError, match="its heading can't be read"):
        new_store(tmp_path).load(0)


def test_the_heading_says_in_clear_how_often_the_job_has_changed() -> None:
    for changes, said in (([], None), ([{"to": "k"}, {"to": "l"}], 2)):
        pieces = checkpoint_bytes(Checkpoint(3, {"changes": changes}), JOB, 1.0, SEAL)
        heading = form.read_checkpoint_heading(Path("x"), b"".join(map(bytes, pieces)), 3)
        assert heading.more.get("changes") == said


def test_a_heading_without_a_job_is_of_another_job(tmp_path) -> None:
    heading = make_heading(MAGIC, FORMAT, 0, 1.0, None, {})
    assert job_of(heading) == {}


def test_a_forged_heading_breaks_the_seal(tmp_path) -> None:
    """Checksums can be made by anybody; that the heading belongs to the body, only with the key."""
    store = new_store(tmp_path, SEAL, {"policy": "old"})
    store.save(small())
    data = path(tmp_path, 0).read_bytes()
    length = len(form.read_checkpoint_heading(path(tmp_path, 0), data, 0).raw)
    forged = make_heading(MAGIC, FORMAT, 0, 1.0, SEAL, {"job": JOB}).raw + data[length:-32]
    path(tmp_path, 0).write_bytes(forged + hashlib.blake2b(forged, digest_size=32).digest())
    with pytest.raises(DamagedError, match="its seal is broken"):
        new_store(tmp_path, SEAL).load(0)


@SEALS
def test_a_checkpoint_under_another_key_is_the_same(tmp_path, seal) -> None:
    new_store(tmp_path, seal).save(small(2))
    file, new = path(tmp_path, 2), Seal(bytes(range(1, 33)))
    data = file.read_bytes()
    wrong = SEAL if seal is None else None
    with pytest.raises(CheckpointError, match="sealed"):
        list(form.resealed(file, data, 2, wrong, new))
    file.write_bytes(b"".join(form.resealed(file, data, 2, seal, new)))
    same(small(2), new_store(tmp_path, new).load(2))
    with pytest.raises(CheckpointError, match="sealed"):
        new_store(tmp_path, seal).load(2)


def test_what_is_damaged_gets_no_other_key(tmp_path) -> None:
    """Its checksum would be right afterwards."""
    new_store(tmp_path, SEAL).save(small())
    file, new = path(tmp_path, 0), Seal(bytes(range(1, 33)))
    data = bytearray(file.read_bytes())
    data[-40] ^= 1
    with pytest.raises(DamagedError, match="its checksum doesn't match"):
        list(form.resealed(file, bytes(data), 0, SEAL, new))
    data[-32:] = hashlib.blake2b(data[:-32], digest_size=32).digest()
    with pytest.raises(DamagedError, match="its seal is broken"):
        list(form.resealed(file, bytes(data), 0, SEAL, new))


def test_the_pieces_are_the_file(tmp_path) -> None:
    new_store(tmp_path).save(small())
    expected = b"".join(bytes(piece) for piece in checkpoint_bytes(small(), JOB, 86_400.0, None))
    assert path(tmp_path, 0).read_bytes() == expected
