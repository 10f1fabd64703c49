"""Where code branches on the type of a unit, counted from the syntax tree.

Every such place has to be visited by whoever adds a unit type. Counted are

- ``isinstance(x, GaussianUnit)`` and ``issubclass``, also with tuples and unions of classes;
- ``type(x) is GaussianUnit``, or ``==``, ``in``;
- ``match`` with the class of a unit as a pattern;
- ``hasattr(x, "levels")`` and ``getattr`` with a default, for what only some units have;
- comparisons with a unit (``unit == SPIN``, ``in (SPIN, BIT)``) or with the name of one (``hidden == "bit"``,
  ``name.startswith("gaussian")``);
- questions of a flag that stands for a type (``unit.quadratic``), wherever it is read;
- calls of a function of the package that does nothing but one of these (``has_gaussian(visible, hidden)``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CLASSES = {
    "BinaryUnit", "GaussianUnit", "SolvedUnit", "Binary", "Gaussian", "Categorical", "ReLU",
    "BinaryTheory", "GaussianTheory", "GaussianLayer",
    "TwoBounded", "GaussianHidden", "GaussianVisible", "TwoGaussian",
}  # fmt: skip
CONSTANTS = {"SPIN", "BIT", "GAUSSIAN"}
NAMES = {"spin", "bit", "gaussian", "categorical", "relu", "drelu"}
PARTIAL = {"levels", "low", "high", "variance", "width", "n_states"}  # attributes that not all units have

FLAGS = {"quadratic", "is_gaussian", "is_binary"}


class Branch(NamedTuple):
    """One place."""

    file: str
    line: int
    kind: str


def find_branches(root: Path) -> list[Branch]:
    """All places in the Python files below ``root``."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))}
    helpers = {name for tree in trees.values() for name in _helpers(tree)}
    return [
        Branch(path.relative_to(root).as_posix(), line, kind)
        for path, tree in trees.items()
        for line, kind in sorted(_branches(tree, helpers))
    ]


def branches_in(text: str) -> list[str]:
    """The kinds of branches in a piece of code, in the order of its lines."""
    tree = ast.parse(text)
    return [kind for _, kind in sorted(_branches(tree, set(_helpers(tree))))]


def _branches(tree: ast.AST, helpers: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        kind = _kind(node, helpers)
        if kind:
            yield node.lineno, kind


def _kind(node: ast.AST, helpers: set[str]) -> str:
    if isinstance(node, ast.Call):
        name = _name(node.func)
        if name in ("isinstance", "issubclass") and len(node.args) == 2 and _mentions(node.args[1], CLASSES):
            return name
        if name == "hasattr" or (name == "getattr" and len(node.args) == 3):
            return name if _texts(node.args[1]) & PARTIAL else ""
        if name in ("startswith", "fullmatch", "match") and any(_begins(arg) for arg in node.args):
            return "name"
        return "helper" if name in helpers else ""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Call) and _name(side.func) == "type" for side in sides):
            return "type" if any(_mentions(side, CLASSES) for side in sides) else ""
        if any(_mentions(side, CONSTANTS) for side in sides):
            return "unit"
        return "name" if any(_texts(side) & NAMES for side in sides) else ""
    if isinstance(node, ast.Attribute):
        return "flag" if node.attr in FLAGS and isinstance(node.ctx, ast.Load) else ""
    if isinstance(node, ast.MatchClass):
        return "match" if _mentions(node.cls, CLASSES) else ""
    if isinstance(node, ast.MatchValue):
        return "match" if _texts(node.value) & NAMES else ""
    return ""


def _helpers(tree: ast.AST) -> Iterator[str]:
    """Functions that return nothing but the answer to such a question."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = [
                n for n in node.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
            ]
            if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
                value = body[0].value
                parts = value.values if isinstance(value, ast.BoolOp) else [value]
                if all(_kind(part, set()) for part in parts):
                    yield node.name


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether the node is one of these names, or a tuple, list or union of some."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(_mentions(part, names) for part in node.elts)
    if isinstance(node, ast.BinOp):
        return _mentions(node.left, names) or _mentions(node.right, names)
    return _name(node) in names


def _texts(node: ast.AST) -> set[str]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return set().union(*(_texts(part) for part in node.elts))
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def _begins(node: ast.AST) -> bool:
    return any(text.lstrip("^(").startswith(tuple(NAMES)) for text in _texts(node))
