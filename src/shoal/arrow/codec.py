"""Turn batches of Arrow rows into `Codes`, and set apart the rows that can't be used.

The codec keeps no dictionary. Subjects and open sensitive values become keyed hashes of their
text, so that ``7``, ``7.0`` and ``"7"`` are one person, whatever type a reader chose, and memory
doesn't grow with the stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow.columns import (
    EXACT,
    Complain,
    as_numbers,
    as_times,
    canonical,
    cast_each,
    in_order,
    in_range,
    is_missing,
    is_number,
    is_text_kind,
    leaf_codes,
    one_text,
    plain,
    quasi_codes,
    text_hashes,
    words,
)
from shoal.arrow.ladders import Ladders
from shoal.engine.kernels.arrays import Bools, Floats, Ints
from shoal.engine.kernels.columns import as_rows
from shoal.engine.space import NO_TABLE, Codes
from shoal.spec.hierarchy import Domain, Hierarchy, Range
from shoal.spec.schema import Schema

__all__ = ["NAMED", "Codec", "Encoded", "words"]


MISSING_CODE = -1
#: The column of the names behind pseudonyms. No column of a user can have this name.
NAMED = "\0named"
#: The type of the published time, unless times are plain numbers.
TIME = pa.timestamp("us", "UTC")
#: Seconds since 1970: the first moment with a year of four digits, and the first after the last.
CALENDAR = (-62_135_596_800.0, 253_402_300_800.0)


class Encoded(NamedTuple):
    """An encoded batch: codes and payload of the good rows, and reasons for the bad ones.

    ``good`` are the indices of the good rows in the batch; ``reasons`` is keyed by such an index;
    ``payload`` has the columns that are published as they are, and the subject if a trace needs it.
    """

    codes: Codes
    payload: dict[str, Any]
    good: Ints
    reasons: dict[int, str]

    def __repr__(self) -> str:
        return f"Encoded({len(self.good)} good rows, {len(self.reasons)} bad ones)"


class Codec:
    """Turn record batches into codes, by the schema.

    Parameters
    ----------
    schema
        The columns, their roles and domains.
    key
        A secret of at least 8 bytes, under which subjects are hashed.
    with_subject
        Whether the payload carries the subject too (for a private trace).
    with_gaps
        Whether a quasi value may be missing (it is NaN then); otherwise such a row is bad.
    complete
        The sensitive attributes that must have a value; elsewhere missing is one more value.
    compared
        The sensitive attributes whose values are published in one spelling each, since their shares
        are compared.
    per_value
        Whether each value is decided on its own: then there are keys of the levels of its ladder
        instead of values, and the payload has the labels of the levels.
    time_step
        If the time is published, the step in seconds it is rounded down to; 0: unrounded.
    named
        Whether the payload carries the names that pseudonyms are made of.
    n_rows, types
        The number of rows before these, and the types of the payload if they are known: those of
        a codec that this one continues.
    observe
        Called with every complaint, those about a row that is bad already included.

    >>> from shoal.spec.schema import Quasi
    >>> schema = Schema(subject="id", quasi=[Quasi("age", Range(0, 120, step=1))], keep=["ward"])
    >>> codec = Codec(schema, key=bytes(8))
    >>> batch = pa.record_batch(
    ...     {"id": ["a", "b", None], "age": ["31", "x", "47"], "ward": ["w1", "w2", "w1"]}
    ... )
    >>> encoded = codec.encode(batch)
    >>> encoded.codes.values, encoded.reasons
    (array([[31.]]), {1: "age isn't a number", 2: 'id is missing'})
    """

    def __init__(
        self,
        schema: Schema,
        *,
        key: bytes,
        with_subject: bool = False,
        with_gaps: bool = False,
        complete: frozenset[str] = frozenset(),
        compared: frozenset[str] = frozenset(),
        per_value: bool = False,
        time_step: float | None = None,
        named: bool = False,
        n_rows: int = 0,
        types: pa.Schema | None = None,
        observe: Complain | None = None,
    ) -> None:
        self._schema = schema
        self._observe = observe
        self._ladders = Ladders(schema, key[:8]) if per_value else None
        self._time_step = time_step
        self._named = named
        self._with_gaps = with_gaps
        self._complete = complete
        self._compared = compared
        self._key = np.frombuffer(key[:8], "<u4").astype(np.int64)
        self._payload = [*schema.payload]
        if time_step is not None and schema.time is not None:
            self._payload.append(schema.time)
        if with_subject and schema.subject is not None:
            self._payload.append(schema.subject)
        self._types: dict[str, Any] = {}
        if types is not None:
            self._types = {name: types.field(name).type for name in self._payload}
        #: The number of good rows so far; it numbers the subjects where each row is one.
        self.n_rows = n_rows

    def __repr__(self) -> str:
        return f"Codec({self._schema!r})"

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """Turn a batch into codes; set apart, with a reason, the rows that can't be used."""
        n = batch.num_rows
        reasons: dict[int, str] = {}

        def complain(rows: Bools, reason: str) -> None:
            if self._observe is not None:
                self._observe(rows, reason)
            if rows.any():
                for row in np.flatnonzero(rows):
                    reasons.setdefault(int(row), reason)

        schema = self._schema
        subjects = np.empty(n, np.int64)
        if schema.subject is not None:
            subjects = self._subjects(batch.column(schema.subject), schema.subject, complain)
        times = np.full(n, np.nan)
        if schema.time is not None:
            times = as_times(batch.column(schema.time), schema.time, complain)
        values, keys, labels = self._quasi(batch, times, complain)
        # Values are counted as they will be published: in the final types of the payload.
        payload = self._fitted(batch, complain, times) | labels
        if self._named:
            assert schema.subject is not None
            payload[NAMED] = one_text(batch.column(schema.subject))
        sensitive = np.empty((n, len(schema.sensitive)), np.int64)
        for j, attribute in enumerate(schema.sensitive):
            column, given = payload[attribute.name], batch.column(attribute.name)
            if attribute.name in self._compared:
                column = canonical(column, attribute.name, attribute.domain, complain)
                payload[attribute.name] = column
            elif pa.types.is_string(column.type) and pa.types.is_dictionary(given.type):
                # The same texts if it has any, and each of them is looked at once.
                is_text = is_text_kind(given.type.value_type) and len(given.dictionary) > 0
                column = given if is_text else column
            sensitive[:, j] = self._sensitive(column, attribute.name, attribute.domain, complain)
        if reasons:
            mask = np.ones(n, np.bool_)
            mask[list(reasons)] = False
            good = np.flatnonzero(mask)
            payload = {name: column.take(pa.array(good)) for name, column in payload.items()}
            values, sensitive = values[good], sensitive[good]
            subjects, times = subjects[good], times[good]
            keys = keys[good] if len(keys) else keys
        else:
            good = np.arange(n)
        if schema.subject is None:
            subjects = np.arange(self.n_rows, self.n_rows + len(good))
        self.n_rows += len(good)
        codes = Codes(values, subjects, sensitive, times, keys)
        return Encoded(codes, payload, good, dict(sorted(reasons.items())))

    def _quasi(
        self, batch: pa.RecordBatch, times: Floats, complain: Complain
    ) -> tuple[Floats, Ints, dict[str, Any]]:
        """Encode the quasi attributes: as values, or as keys of levels with their labels."""
        if self._ladders is not None:
            keys, labels = self._ladders.encode(batch, self._with_gaps, complain)
            return np.empty((batch.num_rows, 0)), keys, labels
        columns = np.empty((len(self._schema.quasi), batch.num_rows))
        for i, quasi in enumerate(self._schema.quasi):
            if quasi.name == self._schema.time and isinstance(quasi.sided, Range):
                # As a quasi attribute, too, the time is in seconds, however it is written.
                columns[i] = in_range(times, quasi.name, quasi.sided, complain)
                continue
            column = batch.column(quasi.name)
            missing = is_missing(column)
            if not self._with_gaps:
                complain(missing, f"{quasi.name} is missing")
            columns[i] = quasi_codes(column, quasi.name, quasi.sided, missing, complain)
        return as_rows(columns), NO_TABLE, {}

    @property
    def types(self) -> pa.Schema:
        """The columns of the payload, in the types of the first batch; text before it."""
        return pa.schema([(name, self._types.get(name, pa.string())) for name in self._payload])

    def _bind(self, batch: pa.RecordBatch) -> None:
        """Set the types of the payload by those of the first batch."""
        for name in self._payload:
            kind = batch.schema.field(name).type
            if pa.types.is_dictionary(kind):
                kind = kind.value_type
            is_text = pa.types.is_null(kind) or is_text_kind(kind) or name == self._schema.subject
            self._types[name] = pa.string() if is_text else kind
            if name == self._schema.time:
                counted = not pa.types.is_temporal(kind)
                if is_text:
                    counted = bool(np.asarray(is_number(batch.column(name))).any())
                self._types[name] = pa.float64() if counted else TIME

    def _subjects(self, column: Any, name: str, complain: Complain) -> Ints:
        if pa.types.is_floating(column.type):
            large = pc.fill_null(pc.greater(pc.abs(column), EXACT), False)
            complain(np.asarray(large), f"{name} is a fraction too large to tell people apart by")
        text = one_text(column)
        complain(is_missing(text), f"{name} is missing")
        return text_hashes(self._key, text)

    def _sensitive(self, column: Any, name: str, domain: Domain | None, complain: Complain) -> Ints:
        missing = is_missing(column)
        if pa.types.is_floating(column.type):
            # NaN is a missing value, too.
            numbers = np.asarray(pc.fill_null(column, np.nan))
            missing |= np.isnan(numbers)
            # JSON has no infinities: two values, as they were counted, would be published as null.
            complain(np.isinf(numbers), f"{name} isn't a finite number")
        if name in self._complete:
            complain(missing, f"{name} is missing")
        if isinstance(domain, Hierarchy):
            codes = leaf_codes(column, domain)
            complain((codes < 0) & ~missing, f"{name} has a category that its hierarchy lacks")
            return np.where(missing, MISSING_CODE, codes)
        if isinstance(domain, Range):
            numbers = as_numbers(column, name, missing, complain)
            complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
            return np.where(missing, MISSING_CODE, in_order(numbers))
        return np.where(missing, MISSING_CODE, text_hashes(self._key, one_text(column)))

    def _fitted(self, batch: pa.RecordBatch, complain: Complain, times: Floats) -> dict[str, Any]:
        """Return the payload in the types of the first batch."""
        if not self._types:
            self._bind(batch)
        columns = {}
        for name in self._payload:
            column, kind = plain(batch.column(name)), self._types[name]
            if name == self._schema.time:
                if pa.types.is_temporal(kind):
                    strange = (times < CALENDAR[0]) | (times >= CALENDAR[1])
                    complain(strange, f"{name} is beyond what a timestamp can tell")
                column = _rounded(times, self._time_step or 0.0, kind)
            elif name == self._schema.subject:
                # Subjects are text in the trace: their type must not decide anything.
                column = words(column)
            elif column.type != kind:
                column, misfits = cast_each(column, kind)
                complain(misfits, f"{name} isn't of the type it had before ({kind})")
            columns[name] = column
        return columns


def _down(times: Floats, step: float) -> Floats:
    """Return the largest multiple of a step that isn't above each time."""
    per = round(1 / step) if step < 1 and abs(1 / step - round(1 / step)) < 1e-9 else 0
    n = np.floor(times / step)

    def multiple(n: Floats) -> Floats:
        # 3 / 10 is 0.3 where 3 * 0.1 isn't.
        return n / per if per else n * step

    # Rounding errors must not put a multiple of the step on the wrong side of itself.
    n = np.where(multiple(n + 1) <= times, n + 1, n)
    return multiple(np.where(multiple(n) > times, n - 1, n))


def _rounded(times: Floats, step: float, kind: Any) -> Any:
    """Return times as they are published: rounded down to a step, null if not finite."""
    rounded = _down(times, step) if step else times
    lost = ~np.isfinite(rounded)
    if pa.types.is_floating(kind):
        return pa.array(rounded, mask=lost)
    micros = np.round(np.clip(np.where(lost, 0.0, rounded), *CALENDAR) * 1e6)
    return pa.array(micros.astype(np.int64), mask=lost).cast(kind)
