"""A data set that is added is one entry of `SOURCES`; all that takes names of sets then knows it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app
from paramagnet.data.sources import SOURCES, Source
from paramagnet.data.table import Table
from paramagnet.sweeps.execute import execute
from paramagnet.sweeps.spec_files import parse_spec
from small_sweeps import EXACT


def draw_coins(n_points, rng):
    return Table(rng.choice([-1.0, 1.0], size=(n_points, 3)), ("a", "b", "c"))


def read_fixed(source, contents):
    return Table(np.arange(12.0).reshape(4, 3), ("a", "b", "c"))


def entry(name, **how):
    return Source(name, f"the {name}", 8, 3, 0, how.pop("chosen", 8), "all", "none", "here", **how)


def test_an_entry_makes_a_set_known_everywhere(monkeypatch):
    coins = entry("coins", draw=draw_coins, place="drawn by a test", seed=5)
    monkeypatch.setitem(SOURCES, "coins", coins)
    monkeypatch.setitem(SOURCES, "fixed", entry("fixed", read=read_fixed, place="in a test", chosen=3))
    expected = draw_coins(8, np.random.default_rng(5)).data
    np.testing.assert_array_equal(pm.load_dataset("coins").data, expected)
    assert pm.load_dataset("coins", n_points=20, rng=1).data.shape == (20, 3)
    fixed = pm.load_dataset("fixed", binarize=5.5)
    assert (fixed.data.shape, fixed.n_held_out, fixed.provenance.title) == ((3, 3), 1, "the fixed")
    text = EXACT.replace('"toy"', '"coins"')
    assert np.isfinite(execute(next(iter(parse_spec(text, "mine").runs()))).held_out).all()
    with pytest.raises(ValueError, match=r'`held_out` can be "fresh" for data that are drawn \(toy, coins\)'):
        parse_spec(EXACT.replace('"toy"', '"fixed"'), "mine")
    listed = CliRunner().invoke(app, ["data", "list", "--json"])
    assert {row["name"]: row["where"] for row in json.loads(listed.output)}.items() >= {
        ("coins", "drawn by a test"),
        ("fixed", "in a test"),
    }
