from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.algorithms.castle import Castle
from shoal.algorithms.idea import Idea
from shoal.arrow.codec import Codec
from shoal.arrow.labels import Labels, Numeric
from shoal.engine.base import Anonymizer, Decisions
from shoal.engine.space import Codes
from shoal.errors import ParameterError
from shoal.metrics import Compared, cube_divergence, query_error, windowed_query_error
from shoal.spec.hierarchy import Hierarchy, Range
from shoal.spec.policy import Delay, KAnonymity, Missing, Policy
from shoal.spec.schema import Quasi, Schema, Sensitive
from tests.metrics.world import PETS

SCHEMA = Schema(
    subject="person",
    quasi=[
        Quasi("age", Range(17, 90, step=1)),
        Quasi("pet", PETS),
        Quasi("height", Range(1.0, 2.5)),
    ],
    sensitive=[Sensitive("salary", Range(0, 9, step=1)), Sensitive("illness")],
)


def people(n: int, *, gaps: float = 0.0) -> pa.Table:
    random = np.random.default_rng(n)
    missing = random.random((3, n)) < gaps
    return pa.table(
        {
            "person": np.arange(n) // 2,
            "age": pa.array(random.integers(17, 91, n), mask=missing[0]),
            "pet": pa.array(random.choice(PETS.leaves, n), mask=missing[1]),
            "height": pa.array(np.round(random.uniform(1, 2.5, n), 2), mask=missing[2]),
            "salary": random.integers(0, 10, n),
            "illness": random.choice(["flu", "gout", "cough"], n),
        }
    )


def decided(
    table: pa.Table, anonymizer: Anonymizer, missing: Missing
) -> tuple[Codes, list[Decisions]]:
    batch = table.combine_chunks().to_batches()[0]
    codes = Codec(SCHEMA, key=b"12345678", with_gaps=True).encode(batch).codes
    policy = Policy(KAnonymity(4), delay=Delay(rows=30), missing=missing)
    engine = anonymizer.start(SCHEMA, policy, seed=b"compared")
    return codes, [engine.push(codes), engine.flush()]


def written(
    table: pa.Table, decisions: list[Decisions], missing: Missing, numeric: Numeric
) -> pa.Table:
    """What a run publishes of these decisions."""
    labels = Labels(SCHEMA, numeric)
    parts = []
    for some in decisions:
        out = some.boxes >= 0
        gaps = some.gaps[out] if missing == "maybe" else None
        columns = labels.columns(some.lo, some.hi, some.boxes[out], gaps)
        payload = table.select(["salary", "illness"]).take(pa.array(some.rows[out]))
        named = dict(zip(labels.schema.names, columns, strict=True))
        part = pa.table({**named, **{n: payload.column(n) for n in payload.column_names}})
        parts.append(part)
    return pa.concat_tables([part.cast(_plain(part.schema)) for part in parts])


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )


@pytest.mark.parametrize(
    ("anonymizer", "missing", "numeric"),
    [
        (Castle(clusters=5), "quarantine", "range"),
        (Castle(clusters=5), "extended", "bounds"),
        (Idea(), "maybe", "range"),
        (Idea(), "maybe", "bounds"),
    ],
)
def test_tables_and_decisions_come_to_the_same(
    anonymizer: Anonymizer, missing: Missing, numeric: Numeric
) -> None:
    table = people(120, gaps=0.0 if missing == "quarantine" else 0.2)
    codes, decisions = decided(table, anonymizer, missing)
    published = written(table, decisions, missing, numeric)
    for sensitive in ("salary", "illness"):
        one = Compared.from_tables(SCHEMA, table, published, sensitive=sensitive)
        other = Compared.from_decisions(
            SCHEMA, codes, decisions, missing=missing, sensitive=sensitive
        )
        assert one.n_rows == other.n_rows == 120
        assert one.n_published == other.n_published > 60
        for name in ("lo", "hi"):
            np.testing.assert_allclose(
                getattr(one, name)[one.boxes], getattr(other, name)[other.boxes]
            )
        np.testing.assert_array_equal(one.values, other.values)
        if sensitive == "salary":
            np.testing.assert_array_equal(one.secrets, other.secrets)
            errors = [query_error(each, n_queries=200).errors for each in (one, other)]
            np.testing.assert_allclose(*errors, atol=1e-12)
            windows = [windowed_query_error(c, rows=50, n_queries=100) for c in (one, other)]
            assert windows[0].medians == pytest.approx(windows[1].medians)
        assert cube_divergence(one).total == pytest.approx(cube_divergence(other).total)
        assert np.isfinite(cube_divergence(one).total)


def test_gaps_are_published_as_empty_sides() -> None:
    table = people(120, gaps=0.3)
    codes, decisions = decided(table, Idea(), "maybe")
    compared = Compared.from_decisions(SCHEMA, codes, decisions, missing="maybe")
    rows = np.concatenate([some.rows[some.boxes >= 0] for some in decisions])
    empty = compared.lo[compared.boxes] > compared.hi[compared.boxes]
    np.testing.assert_array_equal(empty, np.isnan(compared.values[rows]))


def test_boxes_cover_their_rows() -> None:
    table = people(100)
    codes, decisions = decided(table, Castle(clusters=5), "quarantine")
    compared = Compared.from_decisions(SCHEMA, codes, decisions)
    rows = np.concatenate([some.rows[some.boxes >= 0] for some in decisions])
    values = compared.values[rows]
    assert (compared.lo[compared.boxes] <= values).all()
    assert (values <= compared.hi[compared.boxes]).all()


AGES = Schema(None, [Quasi("age", Range(0, 99, step=1))], [Sensitive("illness")])
THREE = pa.table({"age": [20, 30, 40], "illness": ["flu", "gout", None]})


def test_without_decisions_nothing_is_published() -> None:
    batch = THREE.to_batches()[0]
    codes = Codec(AGES, key=bytes(8)).encode(batch).codes
    nothing = Compared.from_decisions(AGES, codes, [])
    assert repr(nothing) == "Compared(3 rows, 0 published in 0 boxes)"
    assert np.isnan(nothing.secrets).tolist() == [False, False, True]


def test_an_empty_output_can_be_read() -> None:
    published = pa.table({"age": pa.array([], pa.string()), "illness": pa.array([], pa.string())})
    assert Compared.from_tables(AGES, THREE, published).n_published == 0


def test_bad_rows_are_left_out_and_dictionaries_read() -> None:
    original = pa.table({"age": [20, 300, None], "illness": ["flu", "gout", "flu"]})
    published = pa.table(
        {
            "age": pa.chunked_array([["[20, 30]"], ["[0, 9]"]]).dictionary_encode(),
            "illness": pa.chunked_array([["flu"], ["mumps"]]).dictionary_encode(),
        }
    )
    compared = Compared.from_tables(AGES, original, published)
    np.testing.assert_array_equal(compared.values, [[20], [np.nan]])
    # A value that isn't in the input lies nowhere.
    places = compared.published_secrets[np.argsort(-compared.lo[compared.boxes, 0])]
    np.testing.assert_array_equal(places, [0, np.nan])


def test_text_from_files_is_read() -> None:
    published = pa.table({"age_min": ["20", ""], "age_max": ["30", ""], "illness": ["flu", "flu"]})
    compared = Compared.from_tables(AGES, THREE, published)
    lo, hi = compared.lo[compared.boxes, 0], compared.hi[compared.boxes, 0]
    assert (lo.tolist(), hi.tolist()) == ([20, np.inf], [30, -np.inf])


@pytest.mark.parametrize(
    ("published", "what"),
    [
        ({"age": ["[20, 30]"]}, "published: lacks the columns illness"),
        ({"illness": ["flu"]}, "published: lacks the columns age"),
        ({"age_min": [20], "illness": ["flu"]}, "lacks the columns age_max"),
        ({"age": [25.5], "illness": ["flu"]}, "a midpoint doesn't tell how wide its box was"),
        ({"age": ["20-30"], "illness": ["flu"]}, "column age has labels that aren't sides"),
        ({"age": ["[x, 30]"], "illness": ["flu"]}, "got 1 rows"),
        ({"age": ["[30, 20]"], "illness": ["flu"]}, "got 1 rows"),
        ({"age_min": ["x"], "age_max": ["y"], "illness": ["flu"]}, "got 1 rows"),
    ],
)
def test_what_isnt_an_output_is_refused(published: dict[str, list[object]], what: str) -> None:
    with pytest.raises(ParameterError, match=what):
        Compared.from_tables(AGES, THREE, pa.table(published))


def test_labels_and_values_that_domains_lack_are_refused() -> None:
    pets = Schema(None, [Quasi("pet", PETS)], [Sensitive("illness", Hierarchy.flat(["flu"]))])
    original = pa.table({"pet": ["Cat"], "illness": ["flu"]})
    with pytest.raises(ParameterError, match="the column pet has labels") as caught:
        Compared.from_tables(pets, original, pa.table({"pet": ["Canary"], "illness": ["flu"]}))
    assert "Canary" not in str(caught.value)
    with pytest.raises(ParameterError, match="the column illness has values") as caught:
        Compared.from_tables(pets, original, pa.table({"pet": ["Bird"], "illness": ["Canary"]}))
    assert "Canary" not in str(caught.value)


def test_an_input_of_another_schema_is_refused() -> None:
    with pytest.raises(ParameterError, match="original: lacks the columns age"):
        Compared.from_tables(AGES, pa.table({"illness": ["flu"]}), THREE)


def test_a_sensitive_attribute_that_isnt_there_is_refused() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'illness'"):
        Compared.from_tables(AGES, THREE, THREE, sensitive="ilness")
