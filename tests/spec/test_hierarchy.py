"""Trees of labels and ranges of numbers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, Range
from shoal.errors import HierarchyError, ParameterError
from shoal.testing.strategies import hierarchies, ranges
from tests.examples import examples

SETTINGS = settings(max_examples=examples(60), deadline=None, derandomize=True, database=None)
ANIMALS = Hierarchy.from_dict(
    {"Any": {"Pet": {"Cat": None, "Dog": ["Poodle", "Pug"]}, "Wild": ["Fox"], "Oak": {}}}
)

# -- trees ----------------------------------------------------------------------------------------


def ancestors(tree: Hierarchy, code: int) -> list[int]:
    """The nodes from a leaf up to the root."""
    path = [tree.leaf_nodes[code]]
    while path[-1] != 0:
        path.append(tree.parents[path[-1]])
    return path


@SETTINGS
@given(tree=hierarchies(), data=st.data())
def test_cover_is_the_lowest_common_ancestor(tree: Hierarchy, data: st.DataObject) -> None:
    code = st.integers(0, len(tree) - 1)
    lo, hi = sorted((data.draw(code), data.draw(code)))
    others = [set(ancestors(tree, each)) for each in range(lo, hi + 1)]
    lowest = next(node for node in ancestors(tree, lo) if all(node in other for other in others))
    assert tree.cover(lo, hi) == lowest
    assert tree.label(lo, hi) == tree.labels[lowest]


@SETTINGS
@given(tree=hierarchies())
def test_every_node_is_an_interval_of_codes(tree: Hierarchy) -> None:
    for node in range(len(tree.labels)):
        below = [code for code in range(len(tree)) if node in ancestors(tree, code)]
        assert below == list(range(tree.lows[node], tree.highs[node] + 1))
    assert [tree.code(leaf) for leaf in tree.leaves] == list(range(len(tree)))
    assert [tree.node(label) for label in tree.labels] == list(range(len(tree.labels)))


def test_a_ragged_tree() -> None:
    assert ANIMALS.leaves == ("Cat", "Poodle", "Pug", "Fox", "Oak")
    assert ANIMALS.label(1, 2) == "Dog"
    assert ANIMALS.label(0, 2) == "Pet"
    assert ANIMALS.label(2, 3) == "Any"
    assert ANIMALS.depth == 4
    assert repr(ANIMALS) == "Hierarchy(5 leaves, 4 levels)"
    assert ANIMALS.code("Dog") is None
    assert ANIMALS.node("Dog") is not None
    assert ANIMALS.node("Cow") is None


def test_equality_and_hash_are_by_labels_and_shape() -> None:
    flat = Hierarchy.flat(["a", "b"])
    assert flat == Hierarchy.from_rows([("a", "*"), ("b", "*")])
    assert hash(flat) == hash(Hierarchy.from_rows([("a", "*"), ("b", "*")]))
    assert flat != Hierarchy.flat(["b", "a"])
    assert flat != "flat"
    assert pickle.loads(pickle.dumps(ANIMALS)) == ANIMALS


def test_several_tops_get_a_root() -> None:
    assert Hierarchy.from_dict({"a": None, "b": ["c"]}).labels == ("*", "a", "b", "c")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "has no leaf"),
        ([[]], "line 1: has an empty label"),
        ([["a", " ", "*"]], "has an empty label"),
        ([["a", "b", "a"]], "cycle: 'a' is above itself"),
        ([["a", "*"], ["a", "*"]], "line 2: repeats the leaf 'a' of line 1"),
        ([["a", "b"], ["a", "c"]], "second parent, 'c' beside 'b'"),
        ([["a", "b"], ["a"]], "second parent, 'None' beside 'b'"),
        ([["a", "b", "*"], ["b", "*"]], "inner node elsewhere"),
        ([["a", "b", "*"], ["c", "b", "d"]], "gives 'b' a second parent"),
        ([["b", "*"], ["a", "b", "*"]], "puts 'a' under 'b', which is a leaf"),
        ([["a", "*"], ["b"]], "2 roots, and one of them holds"),
        ([["*", "x"], ["b"]], "2 roots, and one of them holds"),
    ],
)
def test_what_is_no_tree_is_refused(rows: list[list[str]], says: str) -> None:
    with pytest.raises(HierarchyError, match=says):
        Hierarchy.from_rows(rows)


def test_dictionaries_that_are_no_tree() -> None:
    with pytest.raises(HierarchyError, match="has no leaf"):
        Hierarchy.from_dict({})
    with pytest.raises(HierarchyError, match="cycle: 'a'"):
        Hierarchy.from_dict({"a": {"b": ["a"]}})


@pytest.mark.parametrize("text", ["a;x;*\nb;x;*\n", "a,x,*\n\nb,x,*\n", "\ufeffa;x;*\r\nb;x;*"])
def test_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tree.csv"
    file.write_text(text, encoding="utf-8", newline="")
    assert Hierarchy.from_csv(file) == Hierarchy.from_dict({"*": {"x": ["a", "b"]}})


def test_a_separator_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "tree.csv"
    file.write_text("a;1|*\nb|*\n")
    assert Hierarchy.from_csv(str(file), separator="|").leaves == ("a;1", "b")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="doesn't exist"):
        Hierarchy.from_csv(tmp_path / "none.csv")
    with pytest.raises(HierarchyError, match="can't be read"):
        Hierarchy.from_csv(tmp_path)
    file = tmp_path / "tree.csv"
    file.write_bytes(b"\xff\xfea;*")
    with pytest.raises(HierarchyError, match="isn't UTF-8"):
        Hierarchy.from_csv(file)
    file.write_text("\n\n")
    with pytest.raises(HierarchyError, match="is empty"):
        Hierarchy.from_csv(file)
    file.write_text("a;*\na;*\n")
    with pytest.raises(HierarchyError, match=r"tree\.csv, line 2"):
        Hierarchy.from_csv(file)


def test_masked_codes() -> None:
    tree = Hierarchy.masked(["53715", "53703", "53706"])
    assert tree.leaves == ("53703", "53706", "53715")
    assert tree.label(1, 2) == "537**"
    assert Hierarchy.masked(["ab", "cd"], mask="#").label(0, 1) == "##"
    with pytest.raises(HierarchyError, match="from 1 to 2 places"):
        Hierarchy.masked(["1", "22"])
    with pytest.raises(HierarchyError, match="contains the mask"):
        Hierarchy.masked(["1*"])


def test_digits() -> None:
    tree = Hierarchy.digits(2)
    assert len(tree) == 100
    assert tree.depth == 3
    assert tree.code("07") == 7
    for places in (0, 7):
        with pytest.raises(ParameterError, match="1 to 6 places"):
            Hierarchy.digits(places)


# -- ranges ---------------------------------------------------------------------------------------


@SETTINGS
@given(domain=ranges(), data=st.data())
def test_snap_widens_by_less_than_a_step_within_the_range(domain: Range, data: Any) -> None:
    number = st.floats(domain.lo, domain.hi)
    lo, hi = sorted((data.draw(number), data.draw(number)))
    low, high = domain.snap(lo, hi)
    assert domain.lo <= low <= lo <= hi <= high <= domain.hi
    if domain.step is None:
        assert (low, high) == (lo, hi)
    else:
        assert lo - low < domain.step * (1 + 1e-9)
        assert high - hi < domain.step * (1 + 1e-9)


def test_ranges_print_compare_and_hash() -> None:
    assert repr(Range(0, 1.5)) == "Range(0, 1.5)"
    assert Range(0, 10, step=2) == Range(0.0, 10.0, step=2.0) != Range(0, 10)
    assert hash(Range(0, 10)) == hash(Range(0.0, 10.0))
    assert Range(0, 10) != (0, 10)
    assert pickle.loads(pickle.dumps(Range(0, 9, step=3))) == Range(0, 9, step=3)


@pytest.mark.parametrize(
    ("domain", "whole"),
    [
        (Range(0, 10, step=5), True),
        (Range(0, 10), False),
        (Range(0, 10, step=0.5), False),
        (Range(0.5, 10, step=1), False),
        (Range(0, 10.5, step=1), False),
    ],
)
def test_whole_ranges(domain: Range, whole: bool) -> None:
    assert domain.is_whole is whole


@pytest.mark.parametrize(
    ("bounds", "step", "says"),
    [
        ((True, 2), None, "Range.lo: must be a number"),
        ((0, "2"), None, "Range.hi: must be a number"),
        ((float("nan"), 2), None, "Range.lo: must be finite"),
        ((0, float("inf")), None, "Range.hi: must be finite"),
        ((2, 2), None, "below the upper one"),
        ((0, 2), "1", "Range.step: must be a number"),
        ((0, 2), True, "Range.step: must be a number"),
        ((0, 2), 0, "above 0"),
        ((0, 2), 3, "at most the length"),
        ((0, 2), float("nan"), "above 0"),
    ],
)
def test_what_is_no_range_is_refused(bounds: tuple[Any, Any], step: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Range(*bounds, step=step)
