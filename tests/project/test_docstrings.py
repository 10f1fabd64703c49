"""Docstrings are numpydoc's: `name : type`, then the description; the names equal those of the signature."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import paramagnet
from public_names import public_names

ROOT = Path(paramagnet.__file__).parent
REPOSITORY = Path(__file__).parents[2]
FILES = sorted(ROOT.rglob("*.py"))
HEADINGS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Notes", "Examples")


def sections_of(docstring: str) -> dict[str, list[str]]:
    """The lines of every section of a docstring, by its heading."""
    found: dict[str, list[str]] = {"": []}
    lines, heading = docstring.splitlines(), ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line in HEADINGS and below == "-" * len(line):
            heading = line
            assert heading not in found, f"{heading} twice"
            found[heading] = []
        elif line != "-" * len(heading) or not heading:
            found[heading].append(line)
    return found


def names_in(lines: list[str]) -> list[str]:
    """The names of a section of items, each of which must have a type and a description."""
    names = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line and not line.startswith("    "):
            match = re.fullmatch(r"\*{0,2}(\w+(?:, \w+)*) : (.+)", line)
            assert match, f"{line!r} is not of the form `name : type`"
            assert not re.search(r"`|;|\. ", match[2]), f"{match[2]!r} is not a type"
            assert below.startswith("    "), f"{line!r} has no description"
            names += match[1].split(", ")
    return names


def parameters_of(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """The parameters of a function, or those that a class is made from."""
    if isinstance(node, ast.ClassDef):
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "__init__":
                return parameters_of(item)
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
        fields = [item for item in fields if "ClassVar" not in ast.unparse(item.annotation)]
        return [item.target.id for item in fields if not item.target.id.startswith("_")]
    arguments = node.args
    listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    listed += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [argument.arg for argument in listed if argument.arg not in ("self", "cls")]


def check(docstring: str, parameters: list[str]) -> None:
    sections = sections_of(docstring)
    if "Parameters" in sections:
        names = names_in(sections["Parameters"])
        assert sorted(names) == sorted(parameters)
    if "Attributes" in sections:
        names_in(sections["Attributes"])
    for heading in ("Returns", "Yields"):
        if heading in sections:
            first, second = sections[heading][:2]
            assert first.strip() == first
            assert second.startswith("    ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sections_are_numpydoc(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (docstring := ast.get_docstring(node)):
            check(docstring, parameters_of(node))


@pytest.mark.parametrize(
    "name", [name for name, value in public_names().items() if inspect.isfunction(value)]
)
def test_public_functions_document_parameters_and_result(name):
    function = public_names()[name]
    sections = sections_of(inspect.getdoc(function))
    if inspect.signature(function).parameters:
        assert "Parameters" in sections
    assert {"Returns", "Yields"} & set(sections)


@pytest.mark.parametrize(
    ("docstring", "words"),
    [
        ("Sum.\n\nParameters\n----------\na : the first term", "no description"),
        ("Sum.\n\nParameters\n----------\na : the first; a number\n    and more", "not a type"),
        ("Sum.\n\nParameters\n----------\na : int\n    A term.\n\nMore.", "not of the form"),
        ("Sum.\n\nParameters\n----------\na, b : int\n    Terms.", "a"),
    ],
)
def test_other_forms_are_noticed(docstring, words):
    with pytest.raises(AssertionError, match=words):
        check(docstring, ["a"])


def test_the_paper_is_named_in_every_file_that_cites_it():
    folders = ("src", "studies", "tests", "benchmarks", "examples", "docs")
    files = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")]
    cited = "[" + "Y25]"
    for path in files:
        if path.suffix in {".py", ".md", ".toml"} and "_build" not in path.parts and path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            assert cited not in text or "Maeno" in text, path
