"""Compare algorithms and promises from Python: ``shoal.compare``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from shoal import algorithms as known
from shoal.compare.cache import ResultCache, cache_folder
from shoal.compare.cells import Cell, cells_of
from shoal.compare.choice import GridRun
from shoal.compare.comparison import Comparison
from shoal.compare.measure import Rows
from shoal.compare.pool import Outcome, Watch, refusal_of, run_cells
from shoal.compare.repeats import joined, repeated
from shoal.compare.sampling import about_tables, drawn
from shoal.engine.base import Anonymizer
from shoal.errors import ParameterError
from shoal.run.frame import anonymizer_of, check_parts
from shoal.run.frame_kinds import chunks_of
from shoal.spec.policy import Policy
from shoal.spec.schema import Schema

__all__ = ["anonymizers_of", "compare", "compare_cells"]

Algorithms = str | Anonymizer | Sequence[str | Anonymizer]


def compare(
    frame: Any,
    schema: Schema,
    policies: Policy | Sequence[Policy],
    algorithms: Algorithms = "all",
    *,
    sample: int | None = None,
    jobs: int = 1,
    seed: int = 0,
    seeds: int = 1,
    cache: bool = True,
) -> Comparison:
    """Run algorithms under policies on a table; measure and judge each run.

    Parameters
    ----------
    frame
        A DataFrame of pandas or polars, a Table or RecordBatch of Arrow, or a list of dicts. Rows
        that can't be used are left out.
    schema
        The columns and their roles.
    policies
        What is promised: one policy, or several to compare.
    algorithms
        Anonymizers or names of them; ``"all"``: all that there are.
    sample
        The most rows to use; None: all. Of a stream they are the first, since a stream that is
        thinned out has another delay. Where whole tables are published, people are drawn at random.
    jobs
        In how many processes cells are run. With more than one, a script needs
        ``if __name__ == "__main__":``, as with `multiprocessing`.
    seed
        Of the runs, and for the sample.
    seeds
        Under how many seeds each cell is run. With more than one, figures are means.
    cache
        Whether results are kept on disk, and found there. They have no value of a person.

    Returns
    -------
    Comparison
        ``print`` it for a table; ``.frame()`` has a row for each cell, ``.recommended`` a choice
        with its reason. An algorithm that can't keep a policy is listed with the reason.

    Raises
    ------
    JobError
        If a name, the schema or the frame is wrong.

    >>> from shoal import Delay, KAnonymity, Quasi, Range
    >>> people = pa.table({"name": ["Ann", "Bob", "Cem", "Dan"], "age": [31, 33, 64, 68]})
    >>> schema = Schema(subject="name", quasi=[Quasi("age", Range(0, 120, step=1))])
    >>> policies = [Policy(KAnonymity(k), delay=Delay(rows=100)) for k in (2, 4)]
    >>> found = compare(people, schema, policies, ["castle", "mondrian"], cache=False)
    >>> [run.outcome.status for run in found.runs]
    ['done', 'done', 'unsupported', 'unsupported']
    >>> found.runs[0].figures.loss
    0.025
    """
    promised = [policies] if isinstance(policies, Policy) else list(policies)
    if not promised:
        raise ParameterError("policies", "are none", fix="Give a Policy, or a list of them")
    for policy in promised:
        check_parts(schema, policy)
    cells = cells_of(promised, anonymizers_of(algorithms))
    rows, to_frame = _rows(frame, schema, sample, seed, at_random=about_tables(cells))
    return compare_cells(rows, cells, jobs=jobs, seeds=seeds, cache=cache, to_frame=to_frame)


def compare_cells(
    rows: Rows,
    cells: Sequence[Cell],
    *,
    own: Policy | None = None,
    jobs: int = 1,
    seeds: int = 1,
    cache: bool = True,
    watch: Watch | None = None,
    to_frame: Callable[[pa.Table], Any] = lambda table: table,
) -> Comparison:
    """Run cells on rows; what was measured before isn't run again.

    A `KeyboardInterrupt` ends it early: what was done until then is in the result.

    Parameters
    ----------
    rows, cells
        The data, and what is run on it.
    own
        The policy that was asked for before the grid.
    jobs, seeds, cache
        See `compare`.
    watch
        Is told of the progress, by the places of `repeated` cells.
    to_frame
        Turns an Arrow table into a frame of the caller's kind.
    """
    for name, number in (("jobs", jobs), ("seeds", seeds)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ParameterError(name, "must be a whole number of at least 1", got=repr(number))
    given, cells = cells, repeated(cells, seeds)
    kept = ResultCache(rows, cache_folder() if cache else None)
    found = _Found(cells, kept, watch)
    waiting = []
    for place, cell in enumerate(cells):
        refused = refusal_of(cell)
        if refused is not None:
            found.ended(place, refused)
        elif (figures := kept.get(cell)) is not None:
            found.ended(place, Outcome("done", figures, cached=True))
        else:
            waiting.append((place, cell))
    interrupted = False
    try:
        run_cells(rows, waiting, found, jobs=jobs)
    except KeyboardInterrupt:
        interrupted = True
    outcomes = joined(found.outcomes, seeds)
    runs = [GridRun(cell, outcome) for cell, outcome in zip(given, outcomes, strict=True)]
    return Comparison(tuple(runs), rows.table.num_rows, own, interrupted, to_frame)


class _Found:
    """Collect what comes of cells, keep it, and tell the caller."""

    def __init__(self, cells: Sequence[Cell], cache: ResultCache, watch: Watch | None) -> None:
        self.outcomes = [Outcome("not run")] * len(cells)
        self._cells, self._cache, self._watch = cells, cache, watch

    def begun(self, place: int) -> None:
        """Take note that a cell is being run."""
        if self._watch is not None:
            self._watch.begun(place)

    def ended(self, place: int, outcome: Outcome) -> None:
        """Take note of what came of a cell."""
        if outcome.figures is not None and not outcome.cached:
            # Before it counts as done: Ctrl-C may come at any moment.
            self._cache.put(self._cells[place], outcome.figures)
        self.outcomes[place] = outcome
        if self._watch is not None:
            self._watch.ended(place, outcome)


def anonymizers_of(algorithms: Algorithms) -> list[Anonymizer]:
    """Return anonymizers, given them or their names; ``"all"`` are all that there are."""
    if isinstance(algorithms, str) and algorithms == "all":
        return [known.find(name)() for name in known.names()]
    given = [algorithms] if isinstance(algorithms, str | Anonymizer) else list(algorithms)
    if not given:
        raise ParameterError("algorithms", "are none", fix='Name some, or write "all"')
    return [anonymizer_of(each) for each in given]


def _rows(
    frame: Any, schema: Schema, sample: int | None, seed: int, *, at_random: bool
) -> tuple[Rows, Callable[[pa.Table], Any]]:
    kind, chunks = chunks_of(frame, schema.columns, schema.payload, key="frame")
    tables = [pa.Table.from_batches([chunk.batch]) for chunk in chunks]
    table = pa.concat_tables(tables, promote_options="permissive")
    if sample is not None:
        if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
            what = "must be a whole number of at least 1, or None for all rows"
            raise ParameterError("sample", what, got=repr(sample))
        table = drawn(table, schema, sample, seed) if at_random else table.slice(0, sample)
    if not table.num_rows:
        raise ParameterError("frame", "has no rows", fix="Give a frame with rows")
    return Rows(schema, table, seed), _CONVERSIONS.get(kind.name, lambda found: found)


_CONVERSIONS: dict[str, Callable[[pa.Table], Any]] = {
    "dicts": lambda table: table.to_pylist(),
    "pandas.DataFrame": lambda table: table.to_pandas(),
    "polars.DataFrame": lambda table: sys.modules["polars"].from_arrow(table),
}
