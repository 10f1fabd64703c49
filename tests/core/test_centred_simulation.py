"""Centred random machines beside the theory of the loop gain."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import paramagnet as pm
from paramagnet import centred_simulation
from paramagnet.centred_simulation import check_edge, sigma_at_gain, simulate_overlap

ROOT = Path(__file__).resolve().parents[2]
RECORD = json.loads((ROOT / "benchmarks" / "data" / "centred_edge.json").read_text("utf-8"))


def load_script():
    spec = importlib.util.spec_from_file_location("centred_edge", ROOT / "benchmarks" / "centred_edge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row_of(machine):
    """The row of docs/beyond.md for one record."""
    sizes = ", ".join(str(point["n"]) for point in machine["points"])
    found = f"{machine['extrapolated']:.3f}({round(1000 * machine['error'])})"
    units = f"{machine['visible']}-{machine['hidden']}"
    numbers = f"{found} | {machine['theory']:.3f} | {machine['deviation']:+.1f}"
    return f"| {units} | {machine['alpha']:g} | {machine['gain']:g} | {sizes} | {numbers} |"


def test_the_record_agrees_with_the_theory_within_three_errors():
    wanted = {
        ("categorical(2)", 0.25),
        ("categorical(2)", 0.5),
        ("categorical(4)", 0.25),
        ("categorical(4)", 0.5),
    }
    wanted |= {("categorical(21)", 0.25), ("spin", 0.25), ("spin", 0.5)}
    assert {(machine["visible"], machine["gain"]) for machine in RECORD["machines"]} == wanted
    script = load_script()
    for machine in RECORD["machines"]:
        assert machine["draws"] == 40
        assert len(machine["points"]) >= 3
        line = [[point[key] for point in machine["points"]] for key in ("n", "value", "error")]
        value, error = script.extrapolate(*line)
        assert (value, error) == pytest.approx((machine["extrapolated"], machine["error"]), rel=1e-12)
        assert abs(value - 1.0 / (1.0 - machine["gain"])) < 3.0 * error
        assert error < 0.03 * value
        if machine["hidden"] == "relu":
            assert machine["alpha"] > 1.0
        for point in machine["points"]:
            units = {"visible": machine["visible"], "hidden": machine["hidden"]}
            assert point["sigma"] == pytest.approx(
                sigma_at_gain(point["n"], point["m"], machine["gain"], **units)
            )


def test_the_record_of_edges_is_the_theory():
    for edge in RECORD["edges"]:
        found = pm.theory.stability_edge(edge["alpha"], visible=edge["visible"], hidden=edge["hidden"])
        assert (found.kind, found.beta) == (edge["kind"], pytest.approx(edge["beta"], rel=1e-12))


def test_the_page_has_the_record():
    page = (ROOT / "docs" / "beyond.md").read_text("utf-8")
    for machine in RECORD["machines"]:
        assert row_of(machine) in page


def test_small_machines_are_near_the_theory():
    for visible, hidden in (("categorical(3)", "bit"), ("spin", "relu"), ("bit", "spin")):
        found = simulate_overlap(60, 90, 0.1, visible=visible, hidden=hidden, n_draws=6, rng=0)
        assert found.theory == pytest.approx(1.0 / 0.9)
        assert abs(found.value - found.theory) < 4.0 * found.error + 0.03  # finite size is worth 2 %
        assert found.draws.shape == (6,)


@pytest.mark.slow
def test_a_machine_that_is_not_centred_is_noticed(monkeypatch):
    """A planted bug: hidden units without their mean give the visible units random fields."""
    right = simulate_overlap(80, 120, 0.25, hidden="relu", n_draws=10, rng=1)
    assert abs(right.value - right.theory) < 4.0 * right.error + 0.05
    start = centred_simulation.centred_start
    monkeypatch.setattr(centred_simulation, "centred_start", lambda *a: (0.0, start(*a)[1]))
    wrong = simulate_overlap(80, 120, 0.25, hidden="relu", n_draws=10, rng=1)
    assert abs(wrong.value - wrong.theory) > 5.0 * wrong.error


@pytest.mark.parametrize("hidden", ["bit", "categorical(3)"])
def test_centred_starts_keep_the_frequencies_of_labels(hidden):
    """Means of chains over starts near the edge, with the term of the biases and without (a planted bug)."""
    rng = np.random.default_rng(0)
    shares = np.array([0.7, 0.15, 0.1, 0.05])
    data = rng.choice(4, p=shares, size=(400, 40))
    wanted = pm.categorical(4).column_means(data.astype(float)).reshape(40, 4).mean(axis=0)
    found, without = np.zeros(4), np.zeros(4)
    for seed in range(6):
        drawn = pm.draw_machine(
            40, 60, visible="categorical(4)", hidden=hidden, scheme="centred", visible_bias="data", data=data,
            gain=1.0, rng=seed,
        )  # fmt: skip
        rbm = drawn.rbm
        variance = 0.25 if hidden == "bit" else 2.0 / 3.0
        term = drawn.sigma**2 * 60 * variance * rbm.visible.column_means(data.astype(float))
        bare = pm.RBM(rbm.weights, rbm.visible_bias - term, rbm.hidden_bias, *rbm.units)
        for machine, total in ((rbm, found), (bare, without)):
            states = pm.sample(machine, 500, n_steps=100, rng=seed)
            total += machine.visible.column_means(states).reshape(40, 4).mean(axis=0) / 6.0
    assert np.abs(found - wanted).max() < 0.03
    assert np.abs(without - wanted).max() > 0.05


def test_centred_starts_of_relu_units_have_the_mean_they_assume():
    data = np.random.default_rng(0).choice([-1.0, 1.0], p=[0.3, 0.7], size=(300, 60))
    found, assumed = [], []
    for seed in range(6):
        drawn = pm.draw_machine(
            60, 90, hidden="relu", scheme="centred", visible_bias="data", data=data, gain=0.7, rng=seed
        )
        rbm = drawn.rbm
        biases = rbm.visible.bias_from(data)
        mu = rbm.visible.mean(biases)
        assumed.append(
            np.mean((biases - rbm.visible_bias) @ rbm.weights.sum(axis=1))
            / (rbm.weights.sum(axis=1) ** 2).sum()
        )
        states = pm.sample(rbm, 400, n_steps=60, rng=seed)
        found.append(rbm.mean_h_given_v(states).mean())
        np.testing.assert_allclose(rbm.hidden_bias, -mu @ rbm.weights, atol=1e-12)
    bare = float(pm.relu().mean(np.zeros(1))[0])
    assert abs(np.mean(found) - np.mean(assumed)) < 0.03
    assert abs(np.mean(found) - bare) > 0.03
    with pytest.warns(pm.theory.MaximumWarning, match="grow without bound"):
        strong = pm.initialize(
            60, 20, hidden="relu", scheme="centred", visible_bias="data", data=data, gain=3.0, rng=0
        )
    assert np.isfinite(strong.visible_bias).all()


def test_unequal_frequencies_are_near_the_theory(monkeypatch):
    """The gain of sites with frequencies of their own; without the term that keeps them it is missed."""
    biases = pm.Biases.of_frequencies([[0.6, 0.2, 0.1, 0.1], [0.3, 0.3, 0.2, 0.2]])
    units = {"visible": "categorical(4)", "hidden": "bit", "visible_bias": biases}
    found = simulate_overlap(80, 60, 0.2, n_draws=5, rng=0, **units)
    assert abs(found.value - 1.25) < 4.0 * found.error + 0.03
    start = centred_simulation.centred_start
    monkeypatch.setattr(centred_simulation, "centred_start", lambda *a: (start(*a)[0], 0.0))
    wrong = simulate_overlap(80, 60, 0.2, n_draws=3, rng=0, **units)
    assert abs(wrong.value - 1.25) > 10.0 * wrong.error
    with pytest.raises(ValueError, match=r"`visible_bias` must hold biases of categorical\(3\) units"):
        simulate_overlap(10, 10, 0.2, visible="categorical(3)", visible_bias=biases)


@pytest.mark.parametrize(
    "machine",
    [
        {"visible": "spin", "hidden": "bit", "visible_bias": 0.7},
        {"visible": "bit", "hidden": "spin", "visible_bias": pm.Biases([-1.0, 0.5], weights=[3.0, 1.0])},
        {"visible": "spin", "hidden": "relu", "visible_bias": 0.5, "hidden_bias": -0.3},
    ],
)
def test_biases_of_two_valued_units_are_near_the_theory(machine, monkeypatch):
    """The gain of spins and bits whose means are not halfway; without the term that keeps them it is
    missed.
    """
    found = simulate_overlap(80, 100, 0.2, n_draws=5, rng=0, **machine)
    assert abs(found.value - 1.25) < 4.0 * found.error + 0.03
    monkeypatch.setattr(centred_simulation, "hidden_response", lambda *a: (0.0, 0.0))
    wrong = simulate_overlap(80, 100, 0.2, n_draws=3, rng=0, **machine)
    assert wrong.value > 2.0


def test_weights_of_biases_say_how_many_units_have_them():
    plain, weighted = pm.Biases([0.5, -1.0]), pm.Biases([0.5, -1.0], weights=[1.0, 3.0])
    assert centred_simulation._share_out(plain, 5).tolist() == [0.5, -1.0, 0.5, -1.0, 0.5]
    assert sorted(centred_simulation._share_out(weighted, 8).tolist()) == [-1.0] * 6 + [0.5] * 2
    rows = pm.Biases(np.eye(3), weights=[0.0, 1.0, 1.0])
    assert {row.argmax() for row in centred_simulation._share_out(rows, 6)} == {1, 2}


@pytest.mark.filterwarnings("ignore::paramagnet.theory.MaximumWarning")
def test_single_relu_units_grow_beyond_the_condensation():
    """With ``m < n`` the status is "condensation": above it the largest unit lines up with its own weights,
    ``h = sum_i |w_i|``, whose size grows as ``sqrt(n)``.
    """
    assert pm.theory.stability_edge(0.2, hidden="relu").kind == "condensation"
    data = np.array([[-1.0] * 100, [1.0] * 100])
    largest = []
    for gain in (0.8, 1.4):
        rbm = pm.initialize(
            100, 20, hidden="relu", scheme="centred", visible_bias="data", data=data, gain=gain, rng=0
        )
        states = pm.sample(rbm, 100, n_steps=100, rng=0)
        own = np.abs(rbm.weights).sum(axis=0).mean()
        largest.append(float(rbm.mean_h_given_v(states).max(axis=1).mean() / own))
    assert largest[0] < 0.4
    assert largest[1] > 0.6


def test_extrapolation_of_a_straight_line():
    sizes = [40, 80, 160]
    value, error = load_script().extrapolate(sizes, [2.0 - 3.0 / n for n in sizes], [0.1, 0.05, 0.02])
    assert value == pytest.approx(2.0, rel=1e-12)
    assert 0.02 < error < 0.06


def test_three_gains_are_checked():
    seen = []
    found = check_edge(
        12, 8, visible="spin", hidden="relu", n_draws=2, rng=np.random.default_rng(0), progress=seen.append
    )
    top = pm.theory.stability_edge(8 / 12, hidden="relu").gain
    assert [point.gain for point in found] == pytest.approx([0.1 * top, 0.25 * top, 0.5 * top])
    assert seen[-1] == pytest.approx(1.0)
    assert seen == sorted(seen)


def test_the_gains_that_are_checked_are_those_of_the_biases():
    biases = pm.Biases.of_frequencies([[0.8, 0.1, 0.1], [0.4, 0.3, 0.3]])
    machine = {"visible": "categorical(3)", "hidden": "relu", "hidden_bias": -1.0}
    top = pm.theory.stability_edge(1.0, visible="categorical(3)", hidden="relu", b=biases, c=-1.0).gain
    assert top > 1.1 * pm.theory.stability_edge(1.0, visible="categorical(3)", hidden="relu", c=-1.0).gain
    found = check_edge(8, 8, visible_bias=biases, n_draws=2, rng=0, **machine)
    assert [point.gain for point in found] == pytest.approx([0.1 * top, 0.25 * top, 0.5 * top])


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"`gain` must lie between 0 and that of the edge, 0\.5"):
        simulate_overlap(100, 50, 0.6, hidden="relu")
    with pytest.raises(ValueError, match="`visible` must be spin, bit or categorical units"):
        simulate_overlap(10, 10, 0.2, visible="gaussian", hidden="spin")
