"""From a workload of queries to the weights of quasi attributes (Zhou et al., §6).

A COUNT query is wrong by the boxes that it cuts: those at the ends of its intervals. Their share
grows with how wide boxes are in an attribute that it asks for, relative to its interval there. How
wide they are in other attributes doesn't matter. So an attribute weighs what its queries would
lose: the sum of 1 / share of the domain that each selects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from shoal.errors import ParameterError, did_you_mean
from shoal.spec.schema import Schema

__all__ = ["for_workload", "workload_weights"]

#: The least weight, relative to the largest: an attribute that nobody asks for still breaks ties.
LEAST = 0.01


def workload_weights(schema: Schema, workload: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the weight of each quasi attribute for a workload; the largest is 1.

    Parameters
    ----------
    schema
        The columns.
    workload
        For each query the attributes that it has a predicate on, and which share of the domain of
        each it selects: above 0, at most 1. Name a query twice if it is asked twice as often.
        Sensitive attributes aren't generalized, and must not be named.

    >>> from shoal.spec.hierarchy import Range
    >>> from shoal.spec.schema import Quasi
    >>> schema = Schema("p", [Quasi(name, Range(0, 100)) for name in ("age", "pay", "area")])
    >>> workload_weights(schema, [{"age": 0.1}, {"age": 0.2, "pay": 0.2}])
    {'age': 1.0, 'pay': 0.3333333333333333, 'area': 0.01}

    Raises
    ------
    ParameterError
        If there is no query, an attribute isn't a quasi attribute, or a share makes no sense.
    """
    names = [quasi.name for quasi in schema.quasi]
    sums = dict.fromkeys(names, 0.0)
    for query in workload:
        for name, share in query.items():
            if name not in sums:
                raise ParameterError(
                    "workload",
                    "must name quasi attributes",
                    got=repr(name),
                    fix=did_you_mean(name, names) or f"They are {', '.join(names)}",
                )
            if not 0.0 < share <= 1.0:
                raise ParameterError(
                    f"workload.{name}", "must be a share above 0, at most 1", got=repr(share)
                )
            sums[name] += 1.0 / share
    most = max(sums.values(), default=0.0)
    if not most:
        raise ParameterError("workload", "must have at least one query with a predicate", got=0)
    return {name: max(total / most, LEAST) for name, total in sums.items()}


def for_workload(schema: Schema, workload: Sequence[Mapping[str, float]]) -> Schema:
    """Return the schema with the weights for a workload; see `workload_weights`."""
    weights = workload_weights(schema, workload)
    quasi = [replace(each, weight=weights[each.name]) for each in schema.quasi]
    return replace(schema, quasi=quasi)
