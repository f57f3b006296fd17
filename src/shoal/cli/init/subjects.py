"""Choose the column of the subject: names, how ids recur, and what is the same in their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.cli.init import words as w
from shoal.cli.init.columns import Column
from shoal.cli.init.meaning import RECURS, Meaning, id_score
from shoal.cli.init.toml import listed
from shoal.metrics.uniqueness import codes_of

__all__ = ["choose_subject", "constant_share", "is_personal", "known_by_attributes"]

#: Forms of contact data that identify one person or a few, and forms that may identify anything.
PERSONAL = ("e-mail", "phone", "national", "IBAN", "cards")
ANY_ID = ("UUID", "hash", "MAC")
#: Attributes of a person are the same in at least this share of the ids, where these are people's.
CONSTANT, VARYING = 0.95, 0.8
#: A column identifies people if this share of its values belongs to one person each, and there are
#: at least this many values for each person.
OF_ONE, VALUES_EACH = 0.9, 0.5
LEAST_VALUES = 50
#: A code is taken for an id of people only if there are so many, each in so many rows.
LEAST_CODES, ROWS_OF_CODE = 12, 3


def choose_subject(
    columns: Sequence[Column], meanings: Mapping[str, Meaning], sample: pa.Table
) -> tuple[Column | None, str]:
    """Return the column that most likely identifies people, if there is one, and why.

    An id that recurs is preferred to one that is different in every row, and one in whose rows
    sex, birth and the like never change to one in whose rows they do: that is the id of a
    household, a doctor or a product.
    """
    stable = [
        column.name
        for column in columns
        if w.STABLE.match(column.name) and 2 <= column.n_distinct < column.n_present / 2
    ]
    best, best_score, why = None, 0.0, ""
    for column in columns:
        meaning = meanings[column.name]
        if not _may_be_subject(column, meaning):
            continue
        score, reason = _score(column, meaning, stable, sample)
        # Of two that are equally likely, the coarser one promises more.
        if score > best_score or (
            best is not None and score == best_score > 0 and column.n_distinct < best.n_distinct
        ):
            best, best_score, why = column, score, reason
    return best, why


def known_by_attributes(
    columns: Sequence[Column], meanings: Mapping[str, Meaning], sample: pa.Table
) -> dict[str, Meaning]:
    """Return columns that are ids of people because sex, birth and the like never change with them.

    Ids of a few people with many rows each look like codes otherwise.
    """
    stable = [column for column in columns if w.STABLE.match(column.name) and column.n_distinct > 1]
    # One attribute of two values could be constant by chance, or by design of a code.
    if len(stable) < 2 and not any(column.n_distinct >= LEAST_CODES for column in stable):
        return {}
    found = {}
    for column in columns:
        is_code = meanings[column.name].sense in ("code", "category", "count", "measurement")
        if not is_code or column in stable or column.n_distinct < LEAST_CODES:
            continue
        is_amount = w.AMOUNT.match(column.name) or (column.kind == "number" and not column.whole)
        if column.rows_each < ROWS_OF_CODE or is_amount:
            continue
        shares = [constant_share(sample[column.name], sample[other.name]) for other in stable]
        if all(share is not None and share >= CONSTANT for share in shares):
            names = listed(other.name for other in stable)
            what = f"each of its {column.n_distinct:,} values always comes with the same {names}"
            found[column.name] = Meaning("person id", what)
    return found


def _may_be_subject(column: Column, meaning: Meaning) -> bool:
    if meaning.sense == "contact":
        if meaning.by_name:
            # People who return under a name or a login are counted by it, rather than by rows.
            return column.rows_each > RECURS and not column.few
        recurs = column.rows_each > RECURS or id_score(column.name) > 0
        forms = (*PERSONAL, *ANY_ID) if recurs else PERSONAL
        return any(form in meaning.reason for form in forms)
    if meaning.sense not in ("person id", "record id"):
        return False
    # "User" with a few values is a kind of user; a bare "id" may be a number within a household.
    named = id_score(column.name)
    many = column.n_distinct > column.n_rows / 10
    return many or (named != 1 and (not column.few or not meaning.by_name))


def _score(
    column: Column, meaning: Meaning, stable: Sequence[str], sample: pa.Table
) -> tuple[float, str]:
    score, reason = id_score(column.name), meaning.reason
    if w.EVENT.match(column.name):
        score -= 2
    if w.SHARED.match(column.name):
        score -= 2
    if not w.EVENT.match(column.name) and not w.SHARED.match(column.name):
        # An id is better than an address, which people change, and that than a name they share.
        contact = 0.05 if meaning.by_name else 0.1
        score = max(score, {"contact": contact, "person id": 0.2}.get(meaning.sense, 0))
    if column.rows_each <= RECURS:
        return score, reason
    # A visit of several rows is one person's: it promises more than rows, if there is nothing else.
    score += 0.5
    if w.EVENT.match(column.name):
        return max(score, 0.1), reason
    shares = {name: constant_share(sample[column.name], sample[name]) for name in stable}
    known = {name: share for name, share in shares.items() if share is not None}
    if known and min(known.values()) >= CONSTANT:
        return score + 2, f"{reason}, always with the same {listed(known)}"
    # A name that several people share comes with one sex, and with several years of birth.
    is_name = meaning.sense == "contact" and meaning.by_name
    if known and (min if is_name else max)(known.values()) < VARYING:
        return score - 3, reason
    return score, reason


def constant_share(ids: Any, values: Any) -> float | None:
    """Return the share of the ids with several rows in which a value is the same in all of them.

    Rows without an id or a value aren't counted; None if no id has two rows.

    >>> constant_share(pa.chunked_array([[1, 1, 2, 2, 3]]), pa.chunked_array([list("ffmfm")]))
    0.5
    """
    who, no_id = codes_of(ids)
    what, no_value = codes_of(values)
    present = ~(no_id | no_value)
    found, first, n_rows = np.unique(who[present], return_inverse=True, return_counts=True)
    width = int(what.max(initial=0)) + 1
    n_values = np.bincount(np.unique(first * width + what[present]) // width, minlength=len(found))
    several = n_rows > 1
    return float(np.mean(n_values[several] == 1)) if several.any() else None


def is_personal(column: Column, values: Any, subjects: Any) -> bool:
    """Return whether the values of a column tell people apart nearly as their ids do."""
    if column.n_distinct < LEAST_VALUES:
        return False
    who, nobody = codes_of(subjects)
    n_people = len(np.unique(who[~nobody]))
    if n_people < LEAST_VALUES or column.n_distinct < VALUES_EACH * n_people:
        return False
    what, missing = codes_of(values)
    present = ~(missing | nobody)
    width = int(who.max(initial=0)) + 1
    owned = np.unique(what[present] * width + who[present]) // width
    n_owners = np.unique(owned, return_counts=True)[1]
    return bool(np.mean(n_owners == 1) >= OF_ONE)
