"""Notebooks of the tutorials, for readers who want to run them; made from the pages by the build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat

_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```[ \t]*$", flags=re.DOTALL | re.MULTILINE)
_FRONT = re.compile(r"\A---\n.*?\n---\n", flags=re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")  # to other pages, which a notebook does not have


def as_notebook(page: str) -> Any:
    """The cells of a page as a notebook without outputs; text between them becomes Markdown cells."""
    parts = _CELL.split(_FRONT.sub("", page))
    cells = []
    for index, part in enumerate(parts):
        if index % 2:
            cells.append(nbformat.v4.new_code_cell(part.rstrip()))
        elif part.strip():
            cells.append(nbformat.v4.new_markdown_cell(_LINK.sub(r"\1", part).strip()))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same page gives the same file
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def write_notebooks(pages: Path, folder: Path) -> list[Path]:
    """Write one notebook for each page with cells, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in sorted(pages.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if "file_format: mystnb" in text[:200]:
            path = folder / f"{page.stem}.ipynb"
            nbformat.write(as_notebook(text), path)
            written.append(path)
    return written
