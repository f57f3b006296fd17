"""Read the values of Arrow columns, of any type, as text, numbers, times or categories.

Different spellings of one value become one value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.engine.kernels.arrays import Any1, Bools, Floats, Ints
from shoal.engine.kernels.columns import look_up
from shoal.engine.kernels.hashing import hash_strings
from shoal.spec.hierarchy import Domain, Hierarchy, Range

__all__ = [
    "EXACT",
    "Complain",
    "as_numbers",
    "as_times",
    "canonical",
    "cast_each",
    "dictionary_indices",
    "in_order",
    "in_range",
    "is_bytes_kind",
    "is_missing",
    "is_number",
    "is_text_kind",
    "label_text",
    "leaf_codes",
    "one_text",
    "plain",
    "quasi_codes",
    "text_hashes",
    "words",
]

#: Called with a mask of rows that can't be used and the reason; the first reason for a row counts.
Complain: TypeAlias = Callable[[Bools, str], None]

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(?i:nan|inf|infinity)$"
ZONE = r"[0-9]([zZ]|[+-][0-9]{2}:?[0-9]{2})$"
#: Whole numbers up to this one are exact as floats.
EXACT = 2.0**53
#: The most digits of a decimal that a float represents.
FINEST = 15


def is_text_kind(kind: Any) -> bool:
    """Whether an Arrow type is text of any kind."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_bytes_kind(kind: Any) -> bool:
    """Whether an Arrow type is bytes of any kind."""
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def plain(column: Any) -> Any:
    """Return a column without dictionary, with any kind of text as ``string``."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if is_text_kind(column.type) and not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    return column


def one_text(column: Any) -> Any:
    """Return values as text, one text for all types and spellings of a value; dictionaries stay.

    7, 7.0 and " 7" are one value, and so are the two ways that Unicode has to write é. Merging too
    much here makes groups larger; merging too little would count one person as two.
    """
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, one_text(column.dictionary))
    kind = column.type
    if is_bytes_kind(kind):
        return column.cast(pa.binary())
    if pa.types.is_floating(kind):
        return number_text(column.cast(pa.float64()))
    text = label_text(column)
    if pc.any(pc.match_substring(text, ".")).as_py():
        text = pc.replace_substring_regex(text, r"^([+-]?[0-9]+)\.0*$", r"\1")
        text = pc.replace_substring_regex(text, r"^([+-]?[0-9]*\.[0-9]*[1-9])0+$", r"\1")
    return text


def label_text(column: Any) -> Any:
    """Return values as text, one text for what reads the same; dictionaries stay.

    Numbers in a text column stay text: 1.10 and 1.1 may be two versions, and neither is changed.
    """
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, label_text(column.dictionary))
    if is_bytes_kind(column.type):
        return words(column)
    if pa.types.is_floating(column.type):
        return number_text(column.cast(pa.float64()))
    text = plain(column)
    if not pa.types.is_string(text.type):
        text = text.cast(pa.string())
    if not pc.all(pc.fill_null(pc.string_is_ascii(text), True)).as_py():
        # Invisible characters go first: one may stand between a letter and its accent.
        text = pc.replace_substring_regex(text, r"\p{Cf}", "")
        text = pc.utf8_normalize(text, form="NFC")
    return pc.utf8_trim_whitespace(text)


def is_number(text: Any) -> Any:
    """Return which texts are numbers; a missing one isn't."""
    text = pc.utf8_trim_whitespace(plain(text).cast(pa.string()))
    return pc.fill_null(pc.match_substring_regex(text, NUMBER), False)


def category_text(column: Any) -> Any:
    """Return categories as text, without white space around them."""
    text = one_text(column) if not is_text_kind(column.type) else plain(column)
    return pc.utf8_trim_whitespace(text) if pa.types.is_string(text.type) else text.cast("string")


def number_text(column: Any) -> Any:
    """Return floats as text: whole ones without a point, NaN as null."""
    numbers = np.asarray(pc.fill_null(column, np.nan))
    whole = np.isfinite(numbers) & (numbers == np.floor(numbers)) & (np.abs(numbers) <= EXACT)
    texts = column.cast(pa.string())
    as_int = pa.array(np.where(whole, numbers, 0.0).astype(np.int64)).cast(pa.string())
    texts = pc.if_else(pa.array(whole), as_int, texts)
    return pc.if_else(pa.array(np.isnan(numbers)), pa.scalar(None, pa.string()), texts)


def words(column: Any) -> Any:
    """Return any values as text, for the trace; bytes in hexadecimal digits."""
    column = plain(column)
    if is_bytes_kind(column.type):
        return pa.array([None if v is None else v.hex() for v in column.to_pylist()], pa.string())
    return column.cast(pa.string())


def is_missing(column: Any) -> Bools:
    """Return which values are null, or text or bytes with nothing in them."""
    kind = column.type
    missing: Bools = nulls_of(column)
    if pa.types.is_dictionary(kind):
        empty = is_missing(column.dictionary)
        return missing | empty[dictionary_indices(column)] if empty.any() else missing
    if is_text_kind(kind):
        blank = pc.equal(pc.utf8_trim_whitespace(plain(column)), "")
    elif is_bytes_kind(kind):
        blank = pc.equal(pc.binary_length(column.cast(pa.binary())), 0)
    else:
        return missing
    return missing | np.asarray(pc.fill_null(blank, True), np.bool_)


def nulls_of(column: Any) -> Bools:
    """Return which values are null."""
    if column.null_count == 0 and not pa.types.is_null(column.type):
        return np.zeros(len(column), np.bool_)
    return np.asarray(column.is_null(), np.bool_)


def dictionary_indices(column: Any) -> Ints:
    """Return the indices of a dictionary column; a null has index 0."""
    indices = column.indices.cast(pa.int64())
    return np.asarray(pc.fill_null(indices, 0) if indices.null_count else indices)


def cast_each(column: Any, kind: Any) -> tuple[Any, Bools]:
    """Cast a column; return it and a mask of the values that don't fit (they become null)."""
    misfits = np.zeros(len(column), np.bool_)
    try:
        return column.cast(kind), misfits
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = []
        for i, value in enumerate(column):
            try:
                values.append(value.cast(kind).as_py())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                misfits[i] = True
                values.append(None)
        return pa.array(values, kind), misfits


def as_numbers(column: Any, name: str, missing: Bools, complain: Complain) -> Floats:
    """Return values as numbers, NaN where they are missing; complain of other values."""
    column = plain(column)
    kind = column.type
    if pa.types.is_string(kind):
        text = pc.utf8_trim_whitespace(column)
        try:
            column = text.cast(pa.float64())
        except pa.ArrowInvalid:
            is_number = pc.fill_null(pc.match_substring_regex(text, NUMBER), False)
            complain(~np.asarray(is_number) & ~missing, f"{name} isn't a number")
            column = pc.if_else(is_number, text, pa.scalar(None, text.type)).cast(pa.float64())
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = as_seconds(column)
    elif pa.types.is_boolean(kind) or not is_numeric_kind(kind):
        complain(~missing, f"{name} isn't a number")
        return np.full(len(column), np.nan)
    column = column.cast(pa.float64(), safe=False)
    numbers = np.array(pc.fill_null(column, np.nan) if column.null_count else column)
    given = ~nulls_of(column)
    complain(given & ~missing & ~np.isfinite(numbers), f"{name} isn't a finite number")
    return numbers


def in_order(numbers: Floats) -> Ints:
    """Return integers with the same order and equality as these floats."""
    # Adding 0.0 makes -0.0 to 0.0: the integer of -0.0 would be the code of a missing value.
    bits = (numbers + 0.0).view(np.int64)
    # The bits of a float are its sign and its magnitude, so negative ones are in reverse order.
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def is_numeric_kind(kind: Any) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def as_seconds(column: Any) -> Any:
    """Return dates and timestamps as seconds since 1970."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    return pc.divide(micros.cast(pa.float64(), safe=False), 1e6)


def quasi_codes(
    column: Any, name: str, domain: Domain, missing: Bools, complain: Complain
) -> Floats:
    """Return values as numbers or codes of leaves, NaN where they are missing."""
    if isinstance(domain, Hierarchy):
        codes = leaf_codes(column, domain, np.float64)
        complain((codes < 0) & ~missing, f"{name} has a category that its hierarchy lacks")
        return np.where(missing, np.nan, codes) if missing.any() else codes
    return in_range(as_numbers(column, name, missing, complain), name, domain, complain)


def in_range(numbers: Floats, name: str, domain: Range, complain: Complain) -> Floats:
    """Return the same numbers; complain of those out of their range."""
    complain((numbers < domain.lo) | (numbers > domain.hi), f"{name} is out of its range")
    return numbers


def leaf_codes(column: Any, hierarchy: Hierarchy, kind: type = np.int64) -> Any1:
    """Return the code of each category, -1 where the hierarchy has no such leaf."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    labels = category_text(column.dictionary).to_pylist()
    codes = [-1 if (code := hierarchy.code(label or "")) is None else code for label in labels]
    places = column.indices.cast(pa.int32())
    if places.null_count:
        # After all labels there is one more entry, for these.
        places = pc.fill_null(places, len(labels))
    found: Any1 = np.empty(len(column), kind)
    look_up(np.array([*codes, -1], kind), np.array(places), found)
    return found


def as_times(column: Any, name: str, complain: Complain) -> Floats:
    """Return times in seconds since 1970, or the plain numbers; complain of other values."""
    missing = is_missing(column)
    complain(missing, f"{name} is missing")
    column = plain(column)
    if not pa.types.is_string(column.type):
        return as_numbers(column, name, missing, complain)
    # Each value is read on its own, so that no row changes how another one is read.
    text = pc.utf8_trim_whitespace(column)
    nothing = pa.scalar(None, pa.string())
    is_number = pc.fill_null(pc.match_substring_regex(text, NUMBER), False)
    has_zone = pc.fill_null(pc.match_substring_regex(text, ZONE), False)
    numbers = pc.if_else(is_number, text, nothing).cast(pa.float64())
    clock = pc.if_else(pc.or_(is_number, has_zone), nothing, text)
    zoned = pc.if_else(pc.and_(has_zone, pc.invert(is_number)), text, nothing)
    local, wrong = cast_each(pc.if_else(pa.array(missing), nothing, clock), pa.timestamp("us"))
    universal, wrong_too = cast_each(zoned, pa.timestamp("us", "UTC"))
    complain((wrong | wrong_too) & ~missing, f"{name} isn't a time")
    seconds = pc.coalesce(numbers, as_seconds(local), as_seconds(universal))
    found = np.array(pc.fill_null(seconds, np.nan))
    complain(np.asarray(is_number) & ~np.isfinite(found), f"{name} isn't a finite number")
    return found


def canonical(column: Any, name: str, domain: Domain | None, complain: Complain) -> Any:
    """Return the values of a sensitive attribute, each in one spelling.

    Where the policy limits shares of values, a value must be published as it is counted: otherwise
    each of its spellings could be more frequent than allowed. Values that are different but equal
    as floats are complained of.
    """
    kind, missing = column.type, is_missing(column)
    if pa.types.is_floating(kind):
        numbers = np.asarray(pc.fill_null(column, np.nan), np.float64)
        # Adding 0.0 makes -0.0 to 0.0.
        return pa.array(numbers + 0.0, mask=missing | np.isnan(numbers)).cast(kind)
    if is_text_kind(kind):
        text = plain(column)
        if isinstance(domain, Range):
            text = number_text(pa.array(numbers_of(text, missing)))
        else:
            text = (
                pc.utf8_trim_whitespace(text) if isinstance(domain, Hierarchy) else one_text(text)
            )
        return pc.if_else(pa.array(missing), pa.scalar(None, pa.string()), text.cast(pa.string()))
    if isinstance(domain, Range):
        complain(_too_fine(column) & ~missing, f"{name} is told more finely than numbers can be")
    return column


def numbers_of(text: Any, missing: Bools) -> Floats:
    """Return text as numbers, NaN where it is none, without complaint."""
    return as_numbers(text, "", missing, lambda rows, reason: None)


def _too_fine(column: Any) -> Bools:
    """Return which integers, decimals and times are the same float as another value."""
    kind = column.type
    if pa.types.is_integer(kind):
        whole = column.cast(pa.float64(), safe=False)
        return np.asarray(pc.fill_null(pc.greater(pc.abs(whole), EXACT), False))
    if pa.types.is_decimal(kind):
        digits = [
            0 if value is None else len(value.normalize().as_tuple().digits)
            for value in column.to_pylist()
        ]
        return np.array(digits, np.int64) > FINEST
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        odd: Bools = np.asarray(pc.fill_null(column.cast(pa.int64()), 0)) % 1000 != 0
        return odd
    return np.zeros(len(column), np.bool_)


def text_hashes(key: Ints, text: Any) -> Ints:
    """Hash each text under a key; a null is hashed as empty text, a dictionary once.

    >>> text_hashes(np.array([1, 2]), pa.array(["a", "b", "a"]))[[0, 2]].tolist()
    [6620902175538682955, 6620902175538682955]
    """
    if pa.types.is_dictionary(text.type):
        hashes = text_hashes(key, text.dictionary)
        return hashes[dictionary_indices(text)]
    text = pc.fill_null(text.cast(pa.large_binary()), b"")
    _, offsets, data = text.buffers()
    begin = text.offset
    cuts = np.frombuffer(offsets, np.int64)[begin : begin + len(text) + 1].copy()
    raw = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return hash_strings(key, cuts, raw)
