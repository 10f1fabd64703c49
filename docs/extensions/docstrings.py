"""Our docstrings for Sphinx: sections of ``name : what it is``, in which no place is given to a type."""

from __future__ import annotations

import re

SECTIONS = {"Parameters": "param", "Attributes": "ivar"}
_ITEM = re.compile(r"(\w+(?:, \w+)*) : (.*)")


def as_field_lists(lines: list[str]) -> list[str]:
    """The docstring with each section as a list of fields.

    >>> as_field_lists(["Sum.", "", "Parameters", "----------", "a, b : the terms,", "    both", "", "More."])
    ['Sum.', '', ':param a, b: the terms,', '    both', '', 'More.']
    """
    result: list[str] = []
    field = ""
    skip = False
    for here, following in zip(lines, [*lines[1:], ""], strict=True):
        if skip:
            skip = False
        elif here in SECTIONS and set(following) == {"-"}:
            field, skip = SECTIONS[here], True
        elif field and (item := _ITEM.fullmatch(here)):
            result.append(f":{field} {item[1]}: {item[2]}")
        else:
            if not here:
                field = ""
            result.append(here)
    return result


def setup(app):
    """Called by Sphinx."""

    def process(app, what, name, obj, options, lines):
        lines[:] = as_field_lists(lines)

    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
