"""Our docstrings for Sphinx: sections of ``name : what it is``, in which no place is given to a type."""

from __future__ import annotations

import re

SECTIONS = ("Parameters", "Attributes")
_ITEM = re.compile(r"(\w+(?:, \w+)*) : (.*)")


def as_lists(lines: list[str]) -> list[str]:
    r"""The docstring with each section as a list.

    >>> lines = ["Sum.", "", "Parameters", "----------", "a, b_ : the terms,", "    both", "", "More."]
    >>> print("\n".join(as_lists(lines)))
    Sum.
    <BLANKLINE>
    :Parameters:
        * **a**, **b\_** -- the terms,
          both
    <BLANKLINE>
    More.
    """
    result: list[str] = []
    inside = skip = False
    for here, following in zip(lines, [*lines[1:], ""], strict=True):
        if skip:
            skip = False
        elif here in SECTIONS and set(following) == {"-"}:
            inside = skip = True
            result.append(f":{here}:")
        elif inside and (item := _ITEM.fullmatch(here)):
            names = item[1].replace("_", r"\_").split(", ")
            result.append(f"    * {', '.join(f'**{name}**' for name in names)} -- {item[2]}")
        elif inside and here:
            result.append(f"      {here.strip()}")
        else:
            inside = False
            result.append(here)
    return result


def setup(app):
    """Called by Sphinx."""

    def process(app, what, name, obj, options, lines):
        lines[:] = as_lists(lines)

    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
