"""What a lower loss is worth: how far COUNT queries and cubes are from the truth."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.measure import say
from benchmarks.tide.data import title_of
from benchmarks.tide.runs import KEPT, OWN, Case, anonymizer_of, decide
from benchmarks.tide.settings import Bench
from shoal.metrics import Compared, cube_divergence, query_error

__all__ = ["utility"]

METHODS = (*OWN, *(f"{name}, none" for name in KEPT))


def utility(bench: Bench) -> str:
    """The error of queries and the divergence of cubes beside the loss, without reuse."""
    sizes = bench.sizes
    rows = []
    for data in bench.data:
        case = Case(data, sizes.utility_rows, sizes.k, sizes.delay, "l", float(sizes.l))
        for method in METHODS:
            found = bench.store.get(
                f"utility; {data}, {case.rows:,} rows; {case.promise}", method,
                lambda case=case, method=method: _measure(case, method),
            )  # fmt: skip
            error = "–" if found["query"] is None else f"{100 * found['query']:.0f} %"
            rows.append(
                [
                    title_of(data), f"`{method.removesuffix(', none')}`", f"{found['loss']:.3f}",
                    error, f"{found['kl']:.3f}",
                ]
            )  # fmt: skip
    head = ["data", "method", "loss", "median error of COUNT queries", "KL divergence of cubes"]
    return "\n\n".join(
        [
            "## Utility",
            f"{sizes.utility_rows:,} rows, k = {sizes.k}, l = {sizes.l}, delay {sizes.delay:,}, "
            "without reuse, one order. *Error*: of COUNT queries over quasi and sensitive "
            "attributes, "
            "answered from the boxes as if rows lay evenly in them. *Divergence*: between the "
            "cubes of the original and of what was published, in the mean. "
            "[Utility](../utility.md) explains both. A lower loss doesn't always mean a lower "
            "error.",
            table(head, rows),
        ]
    )


def _measure(case: Case, method: str) -> dict[str, Any]:
    say(f"tide: queries on {case.data}, {method}")
    rows = case.stream(0)
    run = decide(anonymizer_of(method), rows, case.policy)
    both = Compared.from_decisions(rows.schema, rows.codes, run.decisions)
    return {"loss": run.loss, "query": query_error(both).median, "kl": cube_divergence(both).mean}
