"""Checks of calls of an engine: cuts, snapshots, seeds, codes, inputs, and messages."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import numpy as np

from shoal.engine.base import Anonymizer, Engine
from shoal.engine.kernels.arrays import Any1, Ints
from shoal.engine.space import Codes
from shoal.errors import ShoalError
from shoal.spec.hierarchy import Hierarchy
from shoal.testing.checks.published import judge
from shoal.testing.require import require
from shoal.testing.streams import Stream, batch, difference, joined, moves, play

__all__ = [
    "check_batching",
    "check_canary",
    "check_inputs",
    "check_relabelled",
    "check_resume",
    "check_seeded",
]

#: Canaries: numbers that occur nowhere else.
PERSON, ILLNESS, KEY = 7_919_000_000_123, 6_006_130_000_457, 5_003_110_000_271


def check_batching(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that the decisions are the same, to the last bit, however the stream is cut."""
    whole = play(anonymizer, stream)
    for cuts in (stream.cuts, stream.row_by_row()):
        differs = difference(whole, play(anonymizer, stream, cuts=cuts))
        require(differs is None, f"'{differs}' depends on how the stream is cut into batches")


def check_resume(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that an engine restored from a file decides as the old one does, to the last bit."""
    for cut in sorted({0, *stream.cuts, len(stream)}):
        first = stream.start(anonymizer)
        todo = list(moves(stream, (*stream.cuts, cut)))
        while todo[0].end <= cut and todo[0].verb != "flush":
            todo.pop(0).make(first, stream.codes)
        snapshot = first.snapshot()
        n_held = first.n_held
        read = _written_and_read(snapshot)
        continued = joined([move.make(first, stream.codes) for move in todo])
        for name, array in snapshot.items():
            require(
                array.tobytes() == read[name].tobytes(),
                f"the array '{name}' of a snapshot changed when the engine continued",
            )
        second = stream.start(anonymizer, seed=b"another seed")
        second.restore(read)
        require(second.n_held == n_held, "a restored engine holds another number of rows")
        resumed = joined([move.make(second, stream.codes) for move in todo])
        differs = difference(continued, resumed)
        require(differs is None, f"'{differs}' differs after resuming before row {cut}")


def _written_and_read(snapshot: dict[str, Any1]) -> dict[str, Any1]:
    """Write a snapshot to a file of plain arrays, and read it."""
    for name, array in snapshot.items():
        require(not array.dtype.hasobject, f"the array '{name}' of a snapshot holds objects")
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **snapshot)
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def check_seeded(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that one seed has one result, and that another seed keeps the promise too."""
    once, again = (play(anonymizer, stream, seed=b"one") for _ in range(2))
    differs = difference(once, again)
    require(differs is None, f"'{differs}' differs between two runs with one seed")
    judge(anonymizer, stream, play(anonymizer, stream, seed=b"another"))


def check_relabelled(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that other codes for subjects, open sensitive values and keys change nothing."""
    sensitive = stream.codes.sensitive.copy()
    for j, attribute in enumerate(stream.schema.sensitive):
        if attribute.domain is None:
            sensitive[:, j] = _renamed(sensitive[:, j])
    codes = stream.codes._replace(
        subjects=_renamed(stream.codes.subjects),
        sensitive=sensitive,
        keys=_with_keys(stream.codes.keys, _renamed),
    )
    renamed = Stream(stream.schema, stream.policy, codes, stream.ticks, stream.cuts)
    differs = difference(play(anonymizer, stream), play(anonymizer, renamed))
    require(differs is None, f"'{differs}' depends on the codes of subjects, values or keys")


def _renamed(codes: Ints) -> Ints:
    """Return other codes for the same values, in another order, also negative and huge ones."""
    distinct, places = np.unique(codes, return_inverse=True)
    names = (len(distinct) // 2 - np.arange(len(distinct))) * 7_919_000_000_000_003
    renamed: Ints = names[places.reshape(-1)]
    return renamed


def _numbered(keys: Ints) -> Ints:
    """Return canaries for keys."""
    places: Ints = np.unique(keys, return_inverse=True)[1].reshape(-1)
    return places + KEY


def _with_keys(keys: Ints, name: Callable[[Ints], Ints]) -> Ints:
    """Return cells with other keys, none of them 0; missing cells stay missing."""
    renamed = name(keys.reshape(-1)).reshape(keys.shape)
    renamed[renamed == 0] = 1
    return np.where(keys == 0, 0, renamed)


def check_inputs(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that an engine neither changes the arrays that it is given nor keeps them.

    Nor may it change what it has returned: rows would be published in the boxes of later ones.
    Arrays are writable and contiguous, as those of a codec are: for read-only ones every kernel
    would be compiled again.
    """
    engine = stream.start(anonymizer)
    given, copies = [], []
    for move in moves(stream, stream.cuts):
        original = batch(stream.codes, move.begin, move.end)
        part = copy.deepcopy(original)
        decided = move._replace(begin=0, end=move.end - move.begin).make(engine, part)
        given.append(decided)
        copies.append(copy.deepcopy(decided))
        for name, array, before in zip(Codes._fields, part, original, strict=True):
            require(
                array.tobytes() == before.tobytes(),
                f"the engine changed '{name}' of its input",
            )
            array[...] = 0
    for decided, copied in zip(given, copies, strict=True):
        differs = difference(decided, copied)
        require(differs is None, f"'{differs}' of former decisions changes with later calls")
    differs = difference(play(anonymizer, stream, cuts=stream.cuts), joined(given))
    require(differs is None, f"'{differs}' changes when a batch is overwritten after its push")


def check_canary(anonymizer: Anonymizer, stream: Stream) -> None:
    """Check that no value of a row shows in a repr or message of an engine.

    Decisions hold boxes, which are made of values; but no subject, sensitive value or key.
    """
    people = np.arange(len(stream)) % 5 + PERSON
    sensitive = stream.codes.sensitive.copy()
    for j, attribute in enumerate(stream.schema.sensitive):
        # The codes of a hierarchy are those of its leaves.
        if not isinstance(attribute.domain, Hierarchy):
            sensitive[:, j] = ILLNESS
    keys = _with_keys(stream.codes.keys, _numbered)
    codes = stream.codes._replace(subjects=people, sensitive=sensitive, keys=keys)
    engine = stream.start(anonymizer)
    said, decisions = [], []
    for move in moves(stream, stream.cuts):
        decisions.append(move.make(engine, codes))
        said += [repr(engine), str(engine), _refusal(engine)]
    text = "\n".join(said)
    decided = repr([array.tolist() for array in joined(decisions)])
    for what, canaries in (
        ("a subject or a sensitive value", {*people.tolist(), ILLNESS}),
        ("a key", {*keys[keys != 0].tolist()}),
    ):
        for canary in map(str, canaries):
            require(canary not in text, f"{what} shows in a repr or error")
            require(canary not in decided, f"{what} shows in decisions")
    for array in (codes.values, codes.times):
        for value in set(array[~np.isnan(array)].tolist()):
            require(repr(value) not in text, "a quasi value or a time shows in a repr or error")


def _refusal(engine: Engine) -> str:
    """Return the message of an engine about a snapshot that isn't its own."""
    try:
        engine.restore(engine.snapshot() | {"foreign": np.zeros(1)})
    except ShoalError as error:
        return str(error)
    raise AssertionError("an engine takes the snapshot of another one")
