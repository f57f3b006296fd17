"""k-anonymity of data streams (thesis, Definition 5.1), and of each group when it was released."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.audit.criteria.phrases import below, plural
from shoal.audit.criteria.registry import checks
from shoal.audit.evidence import EquivalenceClasses, Evidence
from shoal.audit.maybe_match import n_matching
from shoal.audit.report import Figure, Verdict, decide
from shoal.spec.policy import KAnonymity

__all__ = ["check"]


@checks(KAnonymity)
def check(evidence: Evidence, criterion: KAnonymity) -> list[Verdict]:
    """Count the different subjects of each box, and of each group at the moment of its release.

    Boxes are what an outsider sees; but a box of two groups is large only once the second is out.
    Where missing values match any other, a group may have many boxes. If the groups aren't known,
    the rows that each row matches are counted instead.
    """
    flaws: list[str] = []
    kept: list[str] = []
    figures: dict[str, Figure] = {"k": criterion.k}
    for classes in evidence.classes:
        # A group without a release is a matter of grouping.
        real = classes.n_first > 0
        n_subjects = _n_subjects(classes, evidence.subjects)[real]
        small = n_subjects < criterion.k
        smallest = int(n_subjects.min()) if len(n_subjects) else None
        n_small = int(np.count_nonzero(small))
        figures[f"n_{classes.kinds}"] = len(n_subjects)
        figures[f"n_{classes.kinds}_below"] = n_small
        figures[f"smallest_{classes.kind}_n_subjects"] = None if evidence.doubt else smallest
        figures[f"smallest_{classes.kind}_n_rows"] = (
            int(classes.n_first[real].min()) if len(n_subjects) else None
        )
        kept.append(plural(len(n_subjects), classes.kind))
        if n_small:
            by_rows = evidence.trace is None or evidence.schema.each_row
            unit = "rows" if by_rows else "subjects"
            flaws.append(
                f"{below(classes, classes.number[real][small].tolist(), len(n_subjects))} "
                f"fewer than {criterion.k:,} {unit}, the smallest {smallest:,}"
            )
    doubt = evidence.doubt
    if not evidence.classes and not evidence.unlabelled:
        matching = n_matching(evidence)
        figures["fewest_matching_rows"] = int(matching.min()) if len(matching) else None
        if n_small := int(np.count_nonzero(matching < criterion.k)):
            flaws.append(f"{n_small:,} rows match fewer than {criterion.k:,} rows")
        doubt = f"every row matches at least {criterion.k:,} rows, but {doubt}"
    elif doubt is not None and evidence.trace is None and evidence.classes:
        doubt = f"every box has at least {criterion.k:,} rows, but {doubt}"
    least = f"rows of at least {criterion.k:,} different subjects"
    if evidence.schema.each_row:
        least = f"at least {criterion.k:,} rows, each counted as a subject,"
    held = f"{least} in each of {' and '.join(kept)}"
    return [decide(criterion.name, flaws, kept=held, doubt=doubt, figures=figures)]


def _n_subjects(classes: EquivalenceClasses, subjects: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many different subjects the rows of each class have that were released at once."""
    rows, class_of = classes.first_rows()
    width = int(subjects.max(initial=0)) + 1
    pairs = np.unique(class_of * width + subjects[rows])
    return np.bincount(pairs // width, minlength=len(classes)).astype(np.int64)
