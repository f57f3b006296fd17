"""The modules that a promise hangs on, and the tests that must notice a change of each.

The tests of a module run in this order and stop at the first failure: quick ones first.
"""

from __future__ import annotations

__all__ = ["TESTS"]

_KERNELS = "tests/engine/kernels/test_"
#: The algorithms that decide a row when it is due.
_DUE_ROWS = (
    "tests/engine/test_on_deadline.py",
    "tests/engine/test_waiting.py",
    "tests/algorithms/test_fads.py",
    "tests/algorithms/test_by_count.py::test_groups_get_older_by_rows_or_by_rounds",
    "tests/algorithms/test_on_deadline_equals_twin.py::test_worked_examples_on_engines",
)
#: Without the forgeries: they take longer than all others together, because they forge files.
_AUDIT = (
    "tests/audit/test_breaks.py",
    "tests/audit/test_said.py",
    "tests/audit/test_shards.py",
    "tests/audit/test_run.py",
)
_STATE = "tests/run/state/test_"


def _audit(module: str, *first: str) -> dict[str, tuple[str, ...]]:
    return {f"audit/{module}.py": (*first, *_AUDIT)}


def _checker(module: str, *first: str) -> dict[str, tuple[str, ...]]:
    own = first or (module,)
    named = tuple(f"tests/audit/criteria/test_{name}.py" for name in own)
    return _audit(f"criteria/{module}", *named)


TESTS: dict[str, tuple[str, ...]] = {
    # Criteria: their words, and the predicate of all engines.
    "spec/criteria.py": (
        "tests/spec/test_criteria.py",
        "tests/spec/test_policy.py",
        "tests/job/test_policy.py",
    ),
    "engine/kernels/predicate.py": (
        f"{_KERNELS}predicate.py",
        f"{_KERNELS}measured.py",
        f"{_KERNELS}held_and_kept_groups.py",
        "tests/engine/test_waiting.py",
    ),
    "engine/kernels/measured.py": (f"{_KERNELS}measured.py",),
    "engine/kernels/likeness.py": (f"{_KERNELS}likeness.py", f"{_KERNELS}measured.py"),
    "engine/kernels/emd.py": (f"{_KERNELS}emd.py", f"{_KERNELS}measured.py"),
    "engine/kernels/window_counts.py": (f"{_KERNELS}window_counts.py", f"{_KERNELS}measured.py"),
    # Deadlines, rows that are due, held rows, kept groups.
    "engine/deadlines.py": (
        *_DUE_ROWS,
        "tests/algorithms/test_against_a_window.py",
        "tests/algorithms/test_by_count.py::test_a_capacity_without_room_for_a_group_is_refused",
        "tests/algorithms/test_castle.py"
        "::test_a_subject_that_comes_again_is_refused_where_rows_are_counted",
        "tests/engine/rtree/test_engine.py"
        "::test_a_large_batch_has_room_for_a_leaf_of_each_row_of_the_delay",
    ),
    "engine/on_deadline.py": (
        *_DUE_ROWS,
        "tests/algorithms/test_fads_by_index.py",
        "tests/algorithms/test_fast.py",
    ),
    "engine/groups.py": ("tests/engine/test_groups.py", *_DUE_ROWS),
    "engine/kernels/held.py": (
        f"{_KERNELS}held_and_kept_groups.py",
        f"{_KERNELS}recent_rows.py",
        *_DUE_ROWS,
    ),
    "engine/kernels/kept_groups.py": (f"{_KERNELS}held_and_kept_groups.py", *_DUE_ROWS),
    "engine/kernels/joins.py": (f"{_KERNELS}joins.py", *_DUE_ROWS),
    # What leaves.
    "arrow/hold.py": ("tests/arrow/test_hold.py", "tests/arrow/test_release.py"),
    "arrow/order.py": ("tests/arrow/test_order.py", "tests/arrow/test_release.py"),
    "arrow/release.py": ("tests/arrow/test_release.py", "tests/arrow/z/test_release.py"),
    # What is repeated after a crash.
    "run/state/segment.py": (f"{_STATE}segment.py", f"{_STATE}journal.py"),
    "run/state/journal.py": (f"{_STATE}journal.py", f"{_STATE}segment.py"),
    "run/state/store.py": (f"{_STATE}store.py", f"{_STATE}checkpoint.py"),
    "run/state/checkpoint.py": (f"{_STATE}checkpoint.py", f"{_STATE}store.py"),
    "run/recovery.py": (
        "tests/run/test_checkpointer.py",
        "tests/run/test_recovery.py",
        f"{_STATE}store.py",
        "tests/job/test_changing.py",
        "tests/job/test_private.py",
    ),
    # The audit, which shares no code with the engines.
    **_audit(
        "criteria/k_anonymity",
        "tests/audit/criteria/test_k_anonymity.py",
        "tests/audit/test_missing.py",
    ),
    **_checker("diversity"),
    **_checker("distinct_l", "diversity"),
    **_checker("entropy_l", "diversity"),
    **_checker("recursive_l", "diversity"),
    **_checker("measured", "measured", "closeness"),
    **_checker("closeness"),
    **_checker("likeness"),
    **_checker("disclosure"),
    **_checker("moments", "moments", "closeness", "measured"),
    **_checker("sensitive_values"),
    **_checker("window_counts", "window_counts", "measured"),
    **_audit("arrival", "tests/audit/test_arrival.py", "tests/audit/test_may_hold.py"),
    "audit/changes.py": ("tests/audit/test_changes.py",),
    **_audit("conservation", "tests/audit/test_quarantine.py", "tests/audit/test_may_hold.py"),
    **_audit("cover", "tests/audit/test_missing.py"),
    **_audit("delay"),
    **_audit("grouping", "tests/audit/test_missing.py"),
    **_audit("suppression", "tests/audit/test_company.py"),
    **_audit(
        "evidence",
        "tests/audit/test_evidence.py",
        "tests/audit/test_may_hold.py",
        "tests/audit/test_missing.py",
        "tests/audit/test_quarantine.py",
    ),
    "audit/removed.py": ("tests/audit/test_removed.py", "tests/job/test_private.py"),
    **_audit(
        "run",
        "tests/audit/z/test_criterion.py::test_a_class_of_ones_own_is_unverifiable",
        "tests/audit/z/test_run.py::test_a_right_run_keeps_every_promise",
        "tests/audit/test_forgeries.py",
    ),
}
