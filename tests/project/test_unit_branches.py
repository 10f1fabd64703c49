"""The number of places that a new unit type has to visit: counted, and not to grow."""

from __future__ import annotations

from pathlib import Path

import pytest

import paramagnet
from unit_branches import branches_in, find_branches

# In the whole package. They are `as_binary`, the choice of an engine of PyTorch, the explicit formula, which
# is fitted to one pair of types, and the two questions by which the theory chooses the form of a machine.
MOST, MOST_FILES = 8, 4


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
        ("if u.quadratic: pass", ["flag"]),
        ("isinstance(layer, GaussianLayer)", ["isinstance"]),
        ("isinstance(form, forms.TwoGaussian)", ["isinstance"]),
        ("class G(T):\n  quadratic = True", []),
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
    files = {branch.file for branch in found}
    listed = "\n".join(f"{b.file}:{b.line} {b.kind}" for b in found)
    assert len(found) <= MOST, listed
    assert len(files) <= MOST_FILES, listed
