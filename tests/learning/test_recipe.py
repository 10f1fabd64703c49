"""The recipes: rules from sizes alone, on both sides of their limits, and what they learn."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.learning import recipe as rules
from paramagnet.learning.gradients.default import is_cheap
from paramagnet.learning.recipe import Recipe, choose_recipe
from paramagnet.units import BIT, GAUSSIAN, SPIN, Unit, find_unit


def recommended(n_points: int, n_visible: int, **given: object) -> Recipe:
    return choose_recipe("recommended", n_points, n_visible, SPIN, BIT, **given)


def test_sizes_settle_the_rest() -> None:
    small, large = recommended(400, 20), recommended(60_000, 784)
    assert (small.n_hidden, large.n_hidden) == (10, 392)
    assert small.gradient == pm.Exact()
    assert large.gradient == pm.PCD(**rules.CHAINS)
    assert (small.rate, large.rate) == (rules.RATE_EXACT, rules.RATE_SAMPLED)
    assert (small.batch_size, large.batch_size) == (100, 100)
    assert small.epochs * small.n_batches(400) == pytest.approx(rules.UPDATES_EXACT, rel=0.02)
    assert large.epochs == round(rules.UPDATES_SAMPLED / 600)
    for one in (small, large):
        assert (one.scheme, one.visible_bias, one.centred) == ("recommended", "data", True)
        assert set(one.reasons) == {"n_hidden", "gradient", "batch_size", "epochs", "rate"}
    with pytest.raises(FrozenInstanceError):
        small.rate = 1.0  # type: ignore[misc]


def test_limits_of_the_rules() -> None:
    assert recommended(10, 2).n_hidden == recommended(10, 1).n_hidden == 2
    assert [recommended(10, n).n_hidden for n in (998, 1000, 1002, 10_000)] == [499, 500, 500, 500]
    assert [recommended(n, 20).batch_size for n in (7, 100, 101)] == [7, 100, 100]
    assert [recommended(n, 20).batch_size for n in (100_000, 100_001, 10**7)] == [100, 101, 10**4]
    assert recommended(7, 20).epochs == rules.MOST_EPOCHS
    assert recommended(10**7, 800).epochs == rules.FEWEST_EPOCHS
    limit = next(m for m in range(2, 40) if not is_cheap(40, m, seconds=rules.SECONDS_EXACT))
    assert recommended(500, 40, n_hidden=limit - 1).gradient.exact
    assert not recommended(500, 40, n_hidden=limit).gradient.exact


def test_what_is_known_is_kept() -> None:
    found = recommended(1000, 20, n_hidden=200, batch_size=7, exact=True)
    assert (found.n_hidden, found.batch_size, found.gradient.exact) == (200, 7, True)
    assert set(found.reasons) == {"epochs", "rate"}
    assert found.epochs == round(rules.UPDATES_EXACT / 143)
    assert not recommended(1000, 4, exact=False).gradient.exact


def test_the_papers_recipe_is_that_of_its_experiments() -> None:
    """Toy data, Dry Bean and MNIST, section 4 of the paper."""
    toy, beans, images = (
        choose_recipe("paper", n_points, n, SPIN, BIT, n_hidden=m)
        for n_points, n, m in ((400, 20, 20), (10_000, 16, 16), (3000, 784, 500))
    )
    assert (toy.rate, toy.batch_size, toy.epochs, toy.gradient) == (0.01, None, 200, pm.Exact())
    assert (beans.rate, beans.batch_size, beans.epochs, beans.gradient) == (0.001, 500, 200, pm.Exact())
    assert (images.rate, images.batch_size, images.epochs) == (0.0001, 100, 100)
    assert images.gradient == pm.PCD(1000, 40, 500)
    for one in (toy, beans, images):
        start = (one.scheme, one.visible_bias, one.gain, one.centred, one.schedule)
        assert start == ("layer-correlation", 0.0, 1.0, False, "constant")


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match="`recipe` must be 'recommended' or 'paper', got 'best'"):
        choose_recipe("best", 10, 10, SPIN, BIT)


def test_units_without_biases_for_means_start_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_recipe("recommended", 100, 10, GAUSSIAN, BIT).visible_bias == "data"
    monkeypatch.setattr(type(GAUSSIAN), "field_of_mean", Unit.field_of_mean)
    found = choose_recipe("recommended", 100, 10, GAUSSIAN, BIT)
    assert (found.scheme, found.visible_bias) == ("layer-correlation", 0.0)


def test_the_recommended_start_is_the_centred_one() -> None:
    points = np.random.default_rng(0).choice([-1.0, 1.0], size=(50, 6), p=[0.2, 0.8])
    found = pm.initialize(6, 4, scheme="recommended", data=points, hidden_bias=-1.0, rng=3)
    same = {"visible_bias": "data", "data": points, "hidden_bias": -1.0, "rng": 3}
    centred = pm.initialize(6, 4, scheme="centred", gain=0.7071, **same)
    assert np.array_equal(found.weights, centred.weights)
    assert np.array_equal(found.visible_bias, centred.visible_bias)
    assert np.array_equal(found.hidden_bias, centred.hidden_bias)
    twice = pm.initialize(6, 4, scheme="recommended", gain=2.0, **same)
    assert np.allclose(twice.weights, 2.0 * found.weights, rtol=1e-12)
    with pytest.raises(ValueError, match="`scheme` = 'recommended' makes its weights from data: pass"):
        pm.initialize(6, 4, scheme="recommended")
    with pytest.raises(ValueError, match="`data` is used with"):
        pm.initialize(6, 4, scheme="recommended", visible_bias=0.0, data=points)
    with pytest.raises(ValueError, match="`data` is used with"):
        pm.initialize(6, 4, data=points)


def test_what_may_change_is_no_start_of_a_sweep() -> None:
    from paramagnet.sweeps.starts import STARTS, parse_start

    assert "recommended" not in STARTS
    with pytest.raises(ValueError, match="`starts` must hold names among"):
        parse_start("recommended")


def run_recipe(name: str, points: np.ndarray, visible: object, n_hidden: int, **given: object) -> float:
    unit = find_unit(visible, "visible")
    found = choose_recipe(name, *points.shape, unit, BIT, n_hidden=n_hidden, **given)
    start = pm.initialize(
        points.shape[1],
        n_hidden,
        visible=unit,
        scheme=found.scheme,
        visible_bias=found.visible_bias,
        data=points if found.visible_bias == "data" else None,
        gain=found.gain,
        rng=0,
    )
    trained = pm.train(
        start,
        points,
        epochs=found.epochs,
        gradient=found.gradient,
        optimizer=pm.Adam(f"{found.schedule}({found.rate})"),
        batch_size=found.batch_size,
        centred=found.centred,
        evaluate=(),
        rng=0,
    )
    likelihood = pm.log_likelihood(trained.rbm, points)
    level = pm.independent_log_likelihood(points, visible=unit)
    return float(likelihood.value - level)


@pytest.mark.parametrize(
    ("visible", "exact"),
    [("spin", True), ("spin", False), ("bit", True), ("bit", False), ("gaussian", True)],
)
def test_the_recommended_recipe_learns_more_than_independent_units(visible: str, exact: bool) -> None:
    """Six features in two groups that agree within; most of what they have in common must be found."""
    rng = np.random.default_rng(5)
    groups = rng.choice([-1.0, 1.0], size=(300, 2), p=[0.3, 0.7])
    points = np.repeat(groups, 3, axis=1) * rng.choice([-1.0, 1.0], size=(300, 6), p=[0.1, 0.9])
    if visible == "bit":
        points = (points + 1.0) / 2.0
    if visible == "gaussian":
        points = points + 0.3 * rng.standard_normal(points.shape)
    gained = run_recipe("recommended", points, visible, 3, exact=exact)
    assert gained > (0.3 if visible == "gaussian" else 0.7)
