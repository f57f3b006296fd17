"""A criterion of your own: no sensitive value is too frequent in a group.

It is the alpha of (alpha, k)-anonymity (Wong et al., KDD 2006). Four things make a criterion:

1. a class, which says what is promised,
2. an anonymizer that enforces it,
3. a checker, with which the audit judges it; it shares no code with the anonymizer,
4. a definition, with which the contract of `shoal.testing.checks` judges the anonymizer.

Run it with `python examples/write_a_criterion.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from write_an_algorithm import FirstCome, FirstComeEngine

from shoal import Delay, KAnonymity, Policy, Quasi, Range, Schema, Sensitive, anonymize
from shoal.audit import Report, Verdict, audit
from shoal.audit.criteria import checks
from shoal.audit.evidence import Evidence
from shoal.audit.report import decide
from shoal.engine.base import Engine
from shoal.engine.space import Space
from shoal.errors import ParameterError
from shoal.spec.policy import Criterion, LDiversity
from shoal.testing.definitions import Group, defines

# -- 1. the promise --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AlphaShare(Criterion):
    """No sensitive value has more than a share alpha of the rows of a group.

    ``attribute`` names one sensitive column; None means every one.
    """

    name: ClassVar[str] = "alpha-share"
    alpha: float
    attribute: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ParameterError("AlphaShare.alpha", "must be above 0 and at most 1")


# -- 2. the anonymizer -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FairShare(FirstCome):
    """First come, first served, in groups where no sensitive value is too frequent."""

    name: ClassVar[str] = "fair-share"
    enforces: ClassVar[tuple[type[Criterion], ...]] = (KAnonymity, LDiversity, AlphaShare)

    def _start(self, space: Space, seed: bytes) -> Engine:
        return FairShareEngine(self, space, seed)


class FairShareEngine(FirstComeEngine):
    """One run of `FairShare`."""

    def _may_leave(self, n: int) -> bool:
        """Return whether the oldest n rows may be published as one group."""
        # The kernels don't know the criterion: the space hands it over as it is. An attribute that
        # is named would have to be looked up; here every column is checked.
        most = min((each.alpha for each in self.space.others), default=1.0)
        largest = (np.unique(column, return_counts=True)[1].max() for column in self._secrets(n))
        return super()._may_leave(n) and all(count <= most * n for count in largest)

    def _secrets(self, n: int) -> list[np.ndarray]:
        return list(self.state.sensitive[:n].T)


# -- 3. the checker of the audit -------------------------------------------------------------------


@checks(AlphaShare)
def check(evidence: Evidence, criterion: AlphaShare) -> list[Verdict]:
    """Judge every box, and every group if there is a trace, for each attribute."""
    return [
        _check_attribute(evidence, criterion, attribute.name)
        for attribute in evidence.schema.sensitive
        if criterion.attribute in (None, attribute.name)
    ]


def _check_attribute(evidence: Evidence, criterion: AlphaShare, attribute: str) -> Verdict:
    title = f"{criterion.name} of {attribute}"
    values = evidence.values(attribute)
    if values is None:
        return Verdict(title, "unverifiable", f"column {attribute} isn't in the output")
    flaws, worst = [], 0.0
    for classes in evidence.classes:
        bounds = zip(classes.starts[:-1], classes.starts[1:], strict=True)
        members = (values[classes.rows[begin:end]] for begin, end in bounds)
        shares = np.array([np.unique(m, return_counts=True)[1].max() / len(m) for m in members])
        worst = max(worst, float(shares.max(initial=0.0)))
        if n := int(np.count_nonzero(shares > criterion.alpha)):
            flaws.append(
                f"{n:,} of {len(shares):,} {classes.kinds} have a value that is too frequent"
            )
    # A group that isn't known can't be judged: without a trace only boxes are.
    doubt = "groups can't be told without a trace" if evidence.trace is None else None
    kept = f"no value has more than {criterion.alpha:g} of the rows of a group"
    return decide(title, flaws, kept=kept, doubt=doubt, figures={"worst_share": worst})


# -- 4. the definition for the contract ------------------------------------------------------------


@defines(AlphaShare, drawn=[AlphaShare(1.0), AlphaShare(0.6), AlphaShare(0.3)])
def holds(criterion: AlphaShare, group: Group) -> bool:
    """Return whether a group keeps the criterion, in one line of slow Python."""
    return max(Counter(group.values).values()) <= criterion.alpha * len(group.values)


# -- all of it -------------------------------------------------------------------------------------


def main(rows: int = 400) -> dict[str, Report]:
    """Publish patients with the promise and without it, and let the audit judge both."""
    random = np.random.default_rng(7)
    patients = pa.table(
        {
            "patient": np.arange(rows),
            "age": random.integers(0, 100, rows),
            "illness": random.choice(["flu", "cold", "gout"], rows, p=[0.6, 0.3, 0.1]),
        }
    )
    schema = Schema("patient", [Quasi("age", Range(0, 100, step=1))], [Sensitive("illness")])
    promised = Policy(KAnonymity(3), AlphaShare(0.6), delay=Delay(rows=50))
    less = Policy(KAnonymity(3), delay=Delay(rows=50))
    reports = {}
    for anonymizer, policy in ((FairShare(), promised), (FirstCome(), less)):
        result = anonymize(patients, schema, policy, anonymizer, trace=True)
        report = audit(schema, promised, result.frame, trace=result.trace, original=patients)
        print(f"{anonymizer.name}: {report['alpha-share of illness'].line()}")
        reports[anonymizer.name] = report
    return reports


if __name__ == "__main__":
    main()
