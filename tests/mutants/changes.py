"""The mutants of a module: its source with one small change each.

A change is made in the text, at the place of one node of its syntax tree, so that a mutant is the
file that a hasty editor would have left. What can't change a decision isn't touched: docstrings,
annotations, texts, log lines, ``__all__`` and ``__repr__``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["Mutant", "mutants_of"]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "fmin": "fmax", "fmax": "fmin"}
#: Calls that write log lines.
LOGS = {"event", "log"}


class Mutant(NamedTuple):
    """A changed module: where and what was changed, and its whole source.

    ``within`` is the function, and ``before`` and ``after`` are the changed lines: together they
    name a mutant even after lines were added above it.
    """

    line: int
    within: str
    before: str
    after: str
    source: str


class _Change(NamedTuple):
    """The node to be replaced, and its text afterwards."""

    node: ast.AST
    text: str


def mutants_of(source: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of their places."""
    tree = ast.parse(source)
    unchanged = ast.dump(tree)
    mutants = [_applied(source, change, within) for change, within in _changes(tree, "")]
    return [mutant for mutant in mutants if _program(mutant.source) not in (None, unchanged)]


def _changes(node: ast.AST, within: str) -> Iterator[tuple[_Change, str]]:
    """Yield the changes of a node and of all in it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        within = f"{within}.{node.name}".lstrip(".")
    for of_this in OF_NODES:
        yield from ((change, within) for change in of_this(node))
    for child in _parts(node):
        yield from _changes(child, within)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node in which a change can matter."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_mere_text(child):
                yield child


def _is_mere_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        base = called.value if isinstance(called, ast.Attribute) else called
        return isinstance(base, ast.Name) and base.id in LOGS
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
    is_repr = isinstance(node, ast.FunctionDef) and node.name == "__repr__"
    # Exceptions: only whether they are raised is of interest, not their texts.
    return is_repr or isinstance(node, ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom)


# -- the kinds of changes -------------------------------------------------------------------------


def _comparison(node: ast.AST) -> Iterator[_Change]:
    """Exclude or include the bound, or take the opposite."""
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[i] = COMPARISONS[type(operator)]()
            yield _Change(node, f"({ast.unparse(other)})")


def _operator(node: ast.AST) -> Iterator[_Change]:
    """Take another operator: less for more, or for and."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        other = copy.deepcopy(node)
        other.op = OPERATORS[type(node.op)]()
        yield _Change(node, f"({ast.unparse(other)})")
    elif isinstance(node, ast.BoolOp):
        turned = copy.deepcopy(node)
        turned.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield _Change(node, f"({ast.unparse(turned)})")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        if not isinstance(node.operand, ast.Constant):
            yield _Change(node, f"({ast.unparse(node.operand)})")
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        added = copy.deepcopy(node)
        added.op = OPERATORS[type(node.op)]()
        yield _Change(node, ast.unparse(added))


def _constant(node: ast.AST) -> Iterator[_Change]:
    """Count one too many, or say yes for no."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield _Change(node, str(not node.value))
        elif isinstance(node.value, int | float):
            yield _Change(node, repr(node.value + 1))


def _condition(node: ast.AST) -> Iterator[_Change]:
    """Do it when it shouldn't be done, and only then."""
    tests = []
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        tests = [node.test]
    elif isinstance(node, ast.comprehension):
        tests = node.ifs
    for test in tests:
        # The opposite of these is made by `_comparison` and `_operator`.
        opposite = isinstance(test, ast.Compare) and isinstance(
            test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn
        )
        is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        if not (opposite or is_not or isinstance(test, ast.Constant)):
            yield _Change(test, f"(not ({ast.unparse(test)}))")


def _call(node: ast.AST) -> Iterator[_Change]:
    """Take the least for the most, or one for all."""
    if isinstance(node, ast.Call):
        name = node.func
        if isinstance(name, ast.Name) and name.id in CALLS:
            yield _Change(name, CALLS[name.id])
        elif isinstance(name, ast.Attribute) and name.attr in CALLS:
            yield _Change(name, f"{ast.unparse(name.value)}.{CALLS[name.attr]}")


def _statement(node: ast.AST) -> Iterator[_Change]:
    """Forget a statement: a call, a raise, or the change of something that lives on."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        for child in block if isinstance(block, list) else []:
            if isinstance(child, ast.Break):
                yield _Change(child, "continue")
            elif isinstance(child, ast.Continue):
                yield _Change(child, "break")
            elif _is_removable(child):
                yield _Change(child, "pass")


def _is_removable(node: ast.AST) -> bool:
    if _is_mere_text(node):
        return isinstance(node, ast.Raise)
    if isinstance(node, ast.Assign):
        # Without the first assignment of a name, everything fails.
        return any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.Expr | ast.Raise | ast.AugAssign | ast.Delete)


OF_NODES: list[Callable[[ast.AST], Iterator[_Change]]] = [
    _comparison, _operator, _constant, _condition, _call, _statement,
]  # fmt: skip


# -- the text -------------------------------------------------------------------------------------


def _applied(source: str, change: _Change, within: str) -> Mutant:
    """Return the mutant with a change."""
    node = change.node
    assert isinstance(node, ast.expr | ast.stmt)
    assert node.end_lineno is not None and node.end_col_offset is not None
    lines = source.splitlines(keepends=True)
    # Columns are counted in bytes.
    first, last = lines[node.lineno - 1].encode(), lines[node.end_lineno - 1].encode()
    head = first[: node.col_offset].decode()
    tail = last[node.end_col_offset :].decode()
    changed = head + change.text + tail
    before = "".join(lines[node.lineno - 1 : node.end_lineno])
    after = "".join([*lines[: node.lineno - 1], changed, *lines[node.end_lineno :]])
    return Mutant(node.lineno, within, _flat(before), _flat(changed), after)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _program(source: str) -> str | None:
    """Return what a source says, without its layout; None if it isn't Python."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return None
