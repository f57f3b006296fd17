"""The worked examples of FAST and IDEA as plain data, for a twin and for an engine alike.

What a picture shows that isn't in the text (FAST's Figure 2, IDEA's Figures 1 and 2) is assumed.
Rows that the papers leave out ("⋮") are invented, so that the groups that they keep are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema
from shoal.engine import Codes
from shoal.spec.hierarchy import Domain, Hierarchy

__all__ = ["EXAMPLES", "FIGURE_1", "IDEA_STREAM", "TABLE_2_BEGIN", "TABLE_2_END", "Example"]

#: What is published: the outcome, and the label of each side (None: missing in the whole group).
Published = tuple[str, tuple[str | None, ...] | None]


@dataclass(frozen=True)
class Example:
    """A stream without sensitive values, and what must have become of its rows.

    Values are numbers, labels, or None where missing; a row is (subject, values). Rows that aren't
    in ``expected`` are still held when the last one has come: there is no flush.
    """

    algorithms: Sequence[str]
    domains: Mapping[str, Domain]
    k: int
    delay_rows: int
    rows: Sequence[tuple[str, tuple[Any, ...]]]
    expected: Mapping[str, Published]
    knobs: Mapping[str, Any] = field(default_factory=dict)
    missing: str = "quarantine"

    def values(self, subject: str) -> list[float]:
        """The codes of the first row of somebody."""
        values = next(values for name, values in self.rows if name == subject)
        return [
            math.nan if value is None
            else float(value) if isinstance(domain, Range)
            else float(domain.leaves.index(value))
            for domain, value in zip(self.domains.values(), values, strict=True)
        ]  # fmt: skip

    def codes(self) -> Codes:
        """The whole stream for an engine; subjects are numbered as they come."""
        n = len(self.rows)
        return Codes(
            np.array([self.values(subject) for subject, _ in self.rows]),
            np.arange(n),
            np.empty((n, 0), np.int64),
            np.full(n, np.nan),
        )

    def schema(self) -> Schema:
        quasi = [Quasi(name, domain) for name, domain in self.domains.items()]
        return Schema(subject="person", quasi=quasi)

    def policy(self) -> Policy:
        # A policy without gaps needs no word about them.
        gaps = {} if self.missing == "quarantine" else {"missing": self.missing}
        return Policy(KAnonymity(self.k), delay=Delay(rows=self.delay_rows), **gaps)

    def published(
        self,
        outcome: str,
        lo: Sequence[float | None] | None,
        hi: Sequence[float | None] | None,
    ) -> Published:
        """A decision in the words of ``expected``."""
        if lo is None or hi is None:
            return outcome, None
        return outcome, tuple(
            None if low is None or high is None
            else f"{low:g}-{high:g}" if isinstance(domain, Range)
            else domain.label(int(low), int(high))
            for domain, low, high in zip(self.domains.values(), lo, hi, strict=True)
        )  # fmt: skip


# -- FAST ------------------------------------------------------------------------------------------

#: Figure 2 is a picture. That PhDs are no staff follows from C_new: 26 is nearer to 45 than 39.
UNIVERSITY_PERSON = Hierarchy.from_dict(
    {
        "University-Person": {
            "Student": ["Bachelor", "Master", "PhD"],
            "Staff": ["Academic", "Non-Academic"],
        }
    }
)
#: Suppressed is [15-95] in Table 2.
UNIVERSITY: dict[str, Domain] = {"age": Range(15, 95), "job": UNIVERSITY_PERSON}

#: The first three rows, all at their expiry: id3 is left alone.
TABLE_2_BEGIN = Example(
    algorithms=["fast"],
    domains=UNIVERSITY,
    k=2,
    delay_rows=2,
    knobs={"workers": 1, "block": 3, "loss": "lm"},
    rows=[("id1", (22, "Bachelor")), ("id2", (24, "Master")), ("id3", (37, "Non-Academic"))],
    expected={
        "id1": ("group", ("22-24", "Student")),
        "id2": ("group", ("22-24", "Student")),
        # The paper suppresses id3 here; it can wait for its deadline, in case somebody comes.
    },
)

#: Its last three rows: id_n reuses a group, the others have time and wait for the next round.
TABLE_2_END = Example(
    algorithms=["fast"],
    domains=UNIVERSITY,
    k=2,
    delay_rows=4,
    knobs={"workers": 1, "block": 3, "loss": "lm", "kept": 50, "joins": "alone"},
    rows=[
        ("id1", (22, "Bachelor")), ("id2", (24, "Master")), ("a", (31, "Academic")),
        ("b", (39, "Non-Academic")), ("c", (80, "PhD")), ("d", (80, "PhD")),
        ("e", (44, "Academic")), ("f", (46, "Non-Academic")), ("g", (80, "PhD")),
        ("id_n", (45, "Academic")), ("id_n+1", (26, "Non-Academic")), ("id_n+2", (39, "PhD")),
    ],
    expected={
        "id1": ("group", ("22-24", "Student")),
        "id2": ("group", ("22-24", "Student")),
        "a": ("group", ("31-39", "Staff")),
        "b": ("group", ("31-39", "Staff")),
        "c": ("group", ("80-80", "PhD")),
        "d": ("group", ("80-80", "PhD")),
        "e": ("group", ("44-46", "Staff")),
        "f": ("group", ("44-46", "Staff")),
        "g": ("reuse", ("80-80", "PhD")),
        "id_n": ("reuse", ("44-46", "Staff")),
    },
)  # fmt: skip


# -- IDEA ------------------------------------------------------------------------------------------

#: Figure 3: two leaves and five, two of them under Secondary; the others are assumed.
GENDER = Hierarchy.from_dict({"Gender": ["Female", "Male"]})
EDUCATION = Hierarchy.from_dict(
    {
        "Education": {
            "Primary-school": None,
            "Secondary": ["Mid-school", "High-school"],
            "University": ["Bachelor", "Master"],
        }
    }
)

#: Examples 1 to 3. t1 is clustered in its own partition, t2 across two: with t8, and t7 of P2.
IDEA_STREAM = Example(
    algorithms=["idea"],
    domains={
        "age": Range(0, 100), "hours": Range(0, 100), "gender": GENDER, "education": EDUCATION,
    },
    k=3,
    delay_rows=7,
    knobs={"loss": "lm"},
    missing="maybe",
    rows=[
        ("t1", (None, None, "Male", "Mid-school")),
        ("t2", (30, 40, "Male", "Bachelor")),
        ("t3", (None, None, "Female", "High-school")),
        ("t4", (None, None, "Male", "High-school")),
        ("t5", (None, None, "Female", "Master")),
        ("t6", (50, 20, None, "Primary-school")),
        ("t7", (32, 41, None, "Bachelor")),
        ("t8", (31, 42, "Male", "Master")),
        ("t9", (None, None, "Male", "Bachelor")),
    ],
    expected={
        "t1": ("group", (None, None, "Gender", "Secondary")),
        "t3": ("group", (None, None, "Gender", "Secondary")),
        "t4": ("group", (None, None, "Gender", "Secondary")),
        "t2": ("group", ("30-32", "40-42", "Male", "University")),
        "t7": ("group", ("30-32", "40-42", "Male", "University")),
        "t8": ("group", ("30-32", "40-42", "Male", "University")),
    },
)  # fmt: skip


def _figure_1(missing: str, gender: str) -> Example:
    box = ("25-28", gender)
    return Example(
        algorithms=["fads", "idea", "k-varp", "iot"],
        domains={"age": Range(0, 100), "gender": GENDER},
        k=3,
        delay_rows=2,
        missing=missing,
        rows=[("a", (25, "Male")), ("b", (28, None)), ("c", (27, "Male"))],
        expected=dict.fromkeys("abc", ("group", box)),
    )


#: One gap: with extended match it spoils a's and c's values, with maybe match it doesn't.
FIGURE_1 = {"maybe": _figure_1("maybe", "Male"), "extended": _figure_1("extended", "Gender")}

EXAMPLES: dict[str, Example] = {
    "FAST, Table 2, first rows": TABLE_2_BEGIN,
    "FAST, Table 2, last rows": TABLE_2_END,
    "IDEA, Examples 1 to 3": IDEA_STREAM,
    "IDEA, Figure 1, maybe": FIGURE_1["maybe"],
    "IDEA, Figure 1, extended": FIGURE_1["extended"],
}
