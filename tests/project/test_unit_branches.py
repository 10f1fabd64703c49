"""The number of places that a new unit type has to visit: counted, and not to grow."""

from __future__ import annotations

from pathlib import Path

import pytest

import paramagnet
from unit_branches import branches_in, find_branches

# Lower them whenever the numbers fall. Outside the theory they are `as_binary`, `as_solved` and the choice of
# an engine of PyTorch; the theory's own is counted apart.
MOST, MOST_FILES = 3, 2
MOST_IN_THEORY = 45


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("isinstance(u, GaussianUnit)", ["isinstance"]),
        ("isinstance(u, BinaryUnit | GaussianUnit)", ["isinstance"]),
        ("isinstance(u, (units.BinaryUnit, int))", ["isinstance"]),
        ("type(u) is GaussianUnit", ["type"]),
        ("type(u) in (BinaryUnit, GaussianUnit)", ["type"]),
        ("match u:\n  case GaussianUnit(variance=v): pass\n  case 'bit': pass", ["match", "match"]),
        ("hasattr(u, 'levels')", ["hasattr"]),
        ("getattr(u, 'variance', None)", ["getattr"]),
        ("u == SPIN", ["unit"]),
        ("u not in (SPIN, BIT)", ["unit"]),
        ("u.name == 'gaussian'", ["name"]),
        ("hidden in ('spin', 'bit')", ["name"]),
        ("name.startswith('gaussian(')", ["name"]),
        ("re.fullmatch(r'gaussian\\((.*)\\)', name)", ["name"]),
        ("def f(u):\n  'doc'\n  return isinstance(u, GaussianUnit)\nif f(u): pass", ["isinstance", "helper"]),
        ("isinstance(u, int)", []),
        ("u == other", []),
        ("getattr(u, 'variance')", []),
        ("kind == 'text'", []),
        ("def f(u):\n  return 1\nf(u)", []),
    ],
)
def test_every_kind_of_branch_is_counted(text, kinds):
    assert branches_in(text) == kinds


def test_branches_on_unit_types_do_not_grow():
    found = find_branches(Path(paramagnet.__file__).parent)
    outside = [branch for branch in found if not branch.file.startswith("theory/")]
    files = {branch.file for branch in outside}
    listed = "\n".join(f"{b.file}:{b.line} {b.kind}" for b in outside)
    assert len(outside) <= MOST, listed
    assert len(files) <= MOST_FILES, sorted(files)
    assert len(found) - len(outside) <= MOST_IN_THEORY
