"""Tempering: swaps in detailed balance, the distribution of the machine, replicas placed, hostile input."""

import functools
import importlib
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erfc

import paramagnet as pm
from conftest import draw_machine, make_machine, states_of
from own_units import Tilted, Trit
from paramagnet.exact.sums import exact_moments
from paramagnet.rbm import RBM
from paramagnet.sampling import ladder as ladder_module
from paramagnet.sampling import placement, tempering
from paramagnet.sampling.ladder import Ladder, Replicas, run_rounds, update_headings
from paramagnet.sampling.placement import choose_machines, nearest_replicas, place_scales
from paramagnet.sampling.tempering import temper

UNITS = ("spin", "bit", "gaussian")
SCALES = np.array([0.0, 0.3, 0.7, 1.0])


def scale(rbm, base, s):
    bias = s * rbm.visible_bias + (1.0 - s) * base
    return RBM(s * rbm.weights, bias, s * rbm.hidden_bias, rbm.visible, rbm.hidden)


def scaled_ladder(rbm, base, scales=SCALES):
    return Ladder.scaled((rbm.weights, rbm.visible_bias, rbm.hidden_bias), rbm.units, scales, base)


def log_ratios(ladder, states):
    """``ln A`` of every pair of neighbours, for the states ``(n_machines, n_chains, n_visible)``."""
    n_chains = states.shape[1]
    block = ladder_module._LadderBlock(
        ladder, states.astype(np.float32), np.zeros(states.shape[:2], np.int8), n_chains, 3, 0
    )
    block.multiply(0, block.visible, block.fields)
    found = []
    for i in range(len(states) - 1):
        above, below = block.cross_fields(i)
        spare = np.empty_like(above)
        one = block.rise(i, block.visible[i], (block.fields[i], above), spare)
        found.append(one - block.rise(i, block.visible[i + 1], (below, block.fields[i + 1]), spare))
    return np.array(found)


def plant_wrong_swap(monkeypatch, rbm):
    """Swaps by ``s F_1`` in place of the free energies of the scaled machines."""

    def rise(self, i, states, fields, spare):
        scales = self.ladder.scales
        return -(scales[i + 1] - scales[i]) * rbm.free_energy(states.astype(np.float64))

    monkeypatch.setattr(ladder_module._LadderBlock, "rise", rise)


# Swaps


@pytest.mark.parametrize(("visible", "hidden"), list(itertools.product(UNITS, repeat=2)))
def test_swaps_go_by_the_free_energies_of_both_machines(visible, hidden):
    machines = [make_machine(visible, hidden, 7, 5, scale=0.15, seed=seed) for seed in range(4)]
    rbm, base = machines[0], np.linspace(-1.0, 1.0, 7)
    scaled = [scale(rbm, base, s) for s in SCALES]
    rng = np.random.default_rng(0)
    states = np.stack([rbm.visible.random_start((40, 7), rng) for _ in SCALES]).astype(np.float32)
    for ladder, path in ((scaled_ladder(rbm, base), scaled), (Ladder.of_machines(machines), machines)):
        for i, ours in enumerate(log_ratios(ladder, states)):
            (one, other), (v, w) = path[i : i + 2], states[i : i + 2].astype(float)
            exact = one.free_energy(v) + other.free_energy(w) - one.free_energy(w) - other.free_energy(v)
            np.testing.assert_allclose(ours, exact, atol=2e-5)


def test_swaps_of_units_with_numbers_of_their_own():
    """The visible ``p0`` differs between machines, and counts."""
    rng, unit = np.random.default_rng(0), Tilted("three", (-1.0, 0.0, 1.0))
    machines = []
    for _ in range(3):
        numbers = [{"theta": rng.normal(size=size)} for size in (5, 3)]
        machines.append(RBM(rng.normal(size=(5, 3)), 0.2, -0.1, unit, unit, *numbers))
    states = rng.choice([-1.0, 0.0, 1.0], size=(3, 30, 5))
    for i, ours in enumerate(log_ratios(Ladder.of_machines(machines), states)):
        (one, other), (v, w) = machines[i : i + 2], states[i : i + 2]
        exact = one.free_energy(v) + other.free_energy(w) - one.free_energy(w) - other.free_energy(v)
        np.testing.assert_allclose(ours, exact, atol=2e-5)


@pytest.mark.parametrize("wrong", [False, True])
def test_swaps_are_in_detailed_balance(wrong, monkeypatch):
    """Of all pairs of states of two machines, by enumeration; the swap by ``s F_1`` is not."""
    rbm = draw_machine(3, 4, visible="bit", hidden="bit", scale=2.0)
    if wrong:
        plant_wrong_swap(monkeypatch, rbm)
    ladder = scaled_ladder(rbm, np.zeros(3), np.array([0.4, 1.0]))
    states = states_of(rbm.visible, 3)
    pairs = np.array(list(itertools.product(states, repeat=2))).transpose(1, 0, 2)
    forth = np.exp(np.minimum(log_ratios(ladder, pairs)[0], 0.0))
    back = np.exp(np.minimum(log_ratios(ladder, pairs[::-1])[0], 0.0))
    machines = [scale(rbm, np.zeros(3), s) for s in (0.4, 1.0)]
    before, after = (
        np.exp(-machines[0].free_energy(pairs[one]) - machines[1].free_energy(pairs[1 - one]))
        for one in (0, 1)
    )
    flow = np.abs(before * forth - after * back).max() / before.max()
    assert flow > 1e-2 if wrong else flow < 1e-5


@pytest.mark.parametrize("shared", [True, False])
def test_a_swap_moves_states_with_their_fields(shared):
    rbm = draw_machine(6, 4, scale=1.0)
    machines = [scale(rbm, 0.3 * np.ones(6), s) for s in SCALES]
    ladder = scaled_ladder(rbm, 0.3 * np.ones(6)) if shared else Ladder.of_machines(machines)
    rng = np.random.default_rng(0)
    states = rng.choice([-1.0, 1.0], size=(4, 60, 6)).astype(np.float32)
    headings = np.arange(240).reshape(4, 60).astype(np.int8)  # as marks that go with the states
    for sweep in (0, 1):
        block = ladder_module._LadderBlock(ladder, states, headings, 60, 3, 0)
        block.multiply(0, block.visible, block.fields)
        block.swap(sweep, np.empty_like(block.fields))
        moved = (block.headings != headings).any(axis=1)
        assert moved.tolist() == ([True] * 4 if sweep == 0 else [False, True, True, False])
        marks = {
            int(mark): state for mark, state in zip(headings.ravel(), states.reshape(-1, 6), strict=True)
        }
        for mark, state in zip(block.headings.ravel(), block.visible.reshape(-1, 6), strict=True):
            assert np.array_equal(state, marks[int(mark)])
        for i, machine in enumerate(machines):
            weights = rbm.weights if shared else machine.weights
            np.testing.assert_allclose(block.fields[i], block.visible[i] @ weights, atol=1e-5)
        assert block.tried.tolist() == ([60.0, 0.0, 60.0] if sweep == 0 else [0.0, 60.0, 0.0])


def test_round_trips_of_a_planted_history():
    """Three machines, one chain; a letter is where the states with that letter are."""
    history = ["abc", "acb", "cab", "cba", "bca", "bac", "abc", "acb", "cab", "cba", "bca", "bac"]
    headings = dict.fromkeys("abc", 0)
    trips = []
    for places in history:
        now = np.array([[headings[name]] for name in places], np.int8)
        trips.append(update_headings(now))
        headings = {name: int(heading) for name, heading in zip(places, now[:, 0], strict=True)}
    # c begins at the end, is at the start from step 2 on and back at the end in step 5; b was at the end in
    # steps 1 and 2, at the start in 4 and 5 and is back in 7; a was at the end in 3 and 4, at the start in 6.
    assert trips == [0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1]
    alone = np.zeros((3, 1), np.int8)
    assert [update_headings(alone) for _ in range(3)] == [0, 0, 0]  # nothing moves: no trips


# The distribution


def hard_machine(seed=0, visible="bit", hidden="bit"):
    rng = np.random.default_rng(seed)
    weights = 2.0 * rng.normal(size=(6, 4))
    biases = 0.5 * rng.normal(size=6) - weights.sum(1) / 2, 0.5 * rng.normal(size=4) - weights.sum(0) / 2
    return RBM(weights, *biases, visible, hidden)


def probabilities(rbm):
    log_p = -rbm.free_energy(states_of(rbm.visible, rbm.n_visible))
    return np.exp(log_p - np.logaddexp.reduce(log_p))


def variation(rbm, ladder, n_chains, n_states, every, seed=0):
    """The total variation of ``n_states`` states of each chain to the machine; and the expected one of as
    many independent draws.
    """
    rng, p = np.random.default_rng(seed), probabilities(rbm)
    start = rbm.visible.random_start((n_chains, rbm.n_visible), rng)
    replicas = Replicas.start(start, ladder.n_replicas, int(rng.integers(2**63)))
    replicas = run_rounds(ladder, replicas, 100)
    counts, places = np.zeros(p.size), 1 << np.arange(rbm.n_visible)[::-1]
    for _ in range(n_states):
        replicas = run_rounds(ladder, replicas, every)
        numbers = (replicas.visible[-1] == rbm.visible.high) @ places
        counts += np.bincount(numbers, minlength=p.size)
    n = counts.sum()
    return 0.5 * np.abs(counts / n - p).sum(), 0.5 * np.sum(np.sqrt(2.0 * p * (1.0 - p) / (np.pi * n)))


def ladder_of(kind, rbm):
    """Three machines that lead to ``rbm``; the path "weights" starts from means of its own."""
    base = np.zeros(6) if kind != "weights" else rbm.visible.field_of_mean(np.linspace(0.2, 0.8, 6), "base")
    if kind == "trajectory":
        return Ladder.of_machines([hard_machine(7), scale(rbm, base, 0.5), rbm])
    return scaled_ladder(rbm, base, np.linspace(0.0, 1.0, 3))


KINDS = ("weights", "energy", "trajectory", "wrong")


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_those_of_the_machine(kind, monkeypatch):
    rbm = hard_machine(3)
    ladder = ladder_of(kind, rbm)
    if kind == "wrong":
        plant_wrong_swap(monkeypatch, rbm)
    found, independent = variation(rbm, ladder, 2000, 30, 8)
    assert found < 2.0 * independent if kind != "wrong" else found > 2.5 * independent


MILLIONS = [(seed, kind, 10) for seed in (0, 3) for kind in KINDS] + [(0, "weights", 100)]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kind", "every"), MILLIONS)
def test_a_million_states_are_those_of_the_machine(seed, kind, every, monkeypatch):
    """A state of each of 2,000 chains every 10 rounds, which makes it no easier, in one case every 100."""
    rbm = hard_machine(seed)
    ladder = ladder_of(kind, rbm)
    if kind == "wrong":
        plant_wrong_swap(monkeypatch, rbm)
    found, independent = variation(rbm, ladder, 2000, 500, every)
    assert found < 2.0 * independent if kind != "wrong" else found > 5.0 * independent


@pytest.mark.slow
def test_digits_change_class_three_times_as_often_as_by_gibbs_sampling(monkeypatch):
    """Per machine-sweep, on digits 0 and 1; benchmarks/data/tempering.json has the figures of longer runs."""
    pytest.importorskip("sklearn")
    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(folder)
    found = importlib.import_module("tempering").measure(10_000)
    assert -12.1 < found["log_likelihood"] < -11.9
    for name in ("gibbs", "energy", "weights", "trajectory"):
        assert abs(found[name]["share_of_ones"] - found["share_of_ones"]) < 0.05
    for name in ("weights", "trajectory"):
        assert found[name]["switches"] > 3.0 * found["gibbs"]["switches"]
        assert found[name]["sweeps_per_draw"] < found["gibbs"]["sweeps_per_draw"]
    recorded = json.loads((folder / "data" / "tempering.json").read_text(encoding="utf-8"))["results"]
    for name in ("gibbs", "energy", "weights", "trajectory"):
        assert abs(found[name]["switches"] / recorded[name]["switches"] - 1.0) < 0.2


@pytest.mark.parametrize(("visible", "hidden"), [("gaussian", "spin"), ("bit", "gaussian"), ("spin", "spin")])
def test_means_of_other_units(visible, hidden):
    rbm, n = make_machine(visible, hidden, 5, 3, scale=0.5, seed=2), 5_000
    states, moments = temper(rbm, n, n_steps=60, rng=0).states, exact_moments(rbm)
    error = states.std(axis=0) / np.sqrt(n)
    assert np.abs((states.mean(axis=0) - moments.visible) / error).max() < 5.0


def test_units_of_ones_own():
    rbm = RBM(np.random.default_rng(0).normal(size=(4, 3)), 0.3, 0.1, Trit(), "bit")
    exact = probabilities(rbm) @ states_of(rbm.visible, 4)
    states = temper(rbm, 8_000, n_steps=40, rng=0).states
    assert np.abs(states.mean(axis=0) - exact).max() < 5.0 / np.sqrt(8_000)


def test_clamped_units_stay_and_the_others_follow_them():
    rbm = hard_machine(0)
    clamp = np.array([1.0, np.nan, np.nan, np.nan, np.nan, 0.0])
    states = pm.sample(rbm, 8_000, n_steps=50, method="tempering", clamp=clamp, rng=0)
    assert (states[:, 0] == 1.0).all()
    assert (states[:, 5] == 0.0).all()
    every = states_of(rbm.visible, 6)
    held = (every[:, 0] == 1.0) & (every[:, 5] == 0.0)
    exact = np.average(every[held], axis=0, weights=probabilities(rbm)[held])
    assert np.abs(states.mean(axis=0) - exact).max() < 2.5 / np.sqrt(8_000)


def test_chains_cross_between_modes():
    """Of a machine with a mode up and a mode down; all chains start in one, and Gibbs chains stay there."""
    rbm, start = RBM(np.full((16, 1), 1.5), -0.04, 0.0, "spin", "spin"), np.ones((400, 16))
    up = states_of(rbm.visible, 16).sum(axis=1) > 0.0
    share = probabilities(rbm)[up].sum()
    assert 0.2 < share < 0.3
    options = {"n_steps": 300, "start": start, "rng": 0}
    assert (pm.sample(rbm, 400, **options).sum(axis=1) > 0.0).all()
    early = [scale(rbm, np.zeros(16), s) for s in np.linspace(0.0, 1.0, 21)]
    for method, more in (
        ("tempering", {"base": np.zeros(16)}),
        ("tempering", {"path": "energy"}),
        ("trajectory", {"trajectory": early}),
    ):
        states = pm.sample(rbm, 400, method=method, **more, **options)
        ours = (states.sum(axis=1) > 0.0).mean()
        assert abs(ours - share) < 4.0 * np.sqrt(share * (1.0 - share) / 400)


# Placement


def test_scales_are_placed_at_equal_lengths():
    """On a planted path whose ``dF/ds`` has the deviation ``40 s``: the length from 0 to ``s`` is 20 s**2."""
    scales = np.linspace(0.0, 1.0, 6)
    for _ in range(8):
        acceptance = erfc(np.diff(20.0 * scales**2) / 2.0)
        scales = place_scales(scales, acceptance, 0.3, None)
    assert len(scales) == 15  # 20 / (2 erfcinv(0.3)) = 13.6
    np.testing.assert_allclose(scales, np.sqrt(np.linspace(0.0, 1.0, 15)), atol=0.01)
    acceptance = erfc(np.diff(20.0 * scales**2) / 2.0)
    assert acceptance.min() > 0.3
    assert len(place_scales(scales, acceptance, 0.3, 4)) == 4
    assert place_scales(np.array([0.0, 1.0]), np.array([1.0]), 0.3, None).tolist() == [0.0, 1.0]
    assert len(place_scales(np.linspace(0, 1, 200), np.zeros(199), 0.9, None)) == placement.MOST_REPLICAS
    assert nearest_replicas(np.array([0.0, 0.4, 1.0]), np.array([0.0, 0.3, 0.8, 1.0])).tolist() == [
        0,
        1,
        2,
        2,
    ]


def strong_machine():
    rng = np.random.default_rng(0)
    return RBM(0.8 * rng.normal(size=(30, 20)), 0.3 * rng.normal(size=30), 0.0, "spin", "bit")


def test_replicas_are_placed_for_an_acceptance():
    rbm, n_replicas = strong_machine(), {}
    for wanted in (0.3, 0.6):
        found = temper(rbm, 100, n_steps=200, path="energy", acceptance=wanted, rng=0)
        assert found.acceptance.shape == (found.n_replicas - 1,)
        assert wanted - 0.12 < found.acceptance.min() <= found.acceptance.max() < wanted + 0.2
        assert found.scales[0] == 0.0
        assert found.scales[-1] == 1.0
        assert (np.diff(found.scales) > 0.0).all()
        n_replicas[wanted] = found.n_replicas
    assert 4 <= n_replicas[0.3] < n_replicas[0.6]
    fixed = temper(rbm, 100, n_steps=200, path="energy", n_replicas=7, rng=0)
    assert fixed.n_replicas == 7
    assert fixed.acceptance.max() < 1.5 * fixed.acceptance.min()
    assert str(fixed).startswith("7 replicas, swaps accepted 0.")
    assert fixed.round_trips > 0


def test_machines_of_a_trajectory_are_chosen():
    rbm = strong_machine()
    machines = [scale(rbm, np.zeros(30), s) for s in np.linspace(0.0, 1.0, 60)]
    found = temper(rbm, 100, n_steps=100, trajectory=machines, rng=0)
    assert 4 <= found.n_replicas < 20
    assert found.machines[0] is machines[0]
    assert found.machines[-1] is rbm
    assert 0.15 < found.acceptance.min() <= found.acceptance[:-1].max() < 0.6
    rng = np.random.default_rng(0)
    assert len(choose_machines([rbm] * 9, 0.3, rng, 1)) == 2
    assert choose_machines(machines, 1e-300, rng, 1) == [machines[0], machines[-1]]
    assert len(choose_machines(machines, 0.3, rng, 1)) < len(choose_machines(machines, 0.7, rng, 1))
    states = [type("State", (), {"rbm": machine})() for machine in machines]  # as those of a run
    same = temper(rbm, 100, n_steps=100, trajectory=states, rng=0)
    assert np.array_equal(same.states, found.states)


def test_the_base_of_a_path():
    rbm = hard_machine(0)
    data = np.random.default_rng(0).choice([0.0, 1.0], size=(500, 6), p=[0.3, 0.7])
    bias = rbm.visible.bias_from(data)
    sample = functools.partial(pm.sample, rbm, 200, n_steps=5, method="tempering", n_replicas=3, rng=0)
    ours = sample(base=data)
    assert np.array_equal(ours, sample(base=RBM(np.ones((6, 1)), bias, 0.0, "bit", "spin")))
    assert not np.array_equal(ours, sample(base=1.0 - data))
    means = tempering._as_base(data.mean(axis=0), rbm)
    np.testing.assert_allclose(means, bias, atol=0.01)
    trits = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=(200, 4), p=[0.1, 0.3, 0.6])
    found = placement.bias_of_states(Trit(), trits)
    np.testing.assert_allclose(Trit().mean(found), trits.mean(axis=0), atol=1e-12)


# The same bits


@pytest.mark.parametrize("hidden", ["bit", "gaussian"])
def test_any_number_of_threads_gives_the_same_bits(hidden):
    rbm = make_machine("spin", hidden, 12, 7, scale=0.2)
    early = scale(rbm, np.zeros(12), 0.5)
    for method, more in (("tempering", {}), ("trajectory", {"trajectory": [early]})):
        sample = functools.partial(pm.sample, rbm, 330, n_steps=9, method=method, rng=4, **more)
        one = sample(n_threads=1)
        for n_threads in (2, 3, None):
            assert np.array_equal(one, sample(n_threads=n_threads))


def test_rounds_can_be_cut_anywhere():
    rbm = hard_machine(0)
    ladder = scaled_ladder(rbm, np.zeros(6))
    start = Replicas.start(np.zeros((120, 6)), 4, 5)
    whole = run_rounds(ladder, start, 11)
    parts = start
    for n_rounds in (4, 1, 6):
        parts = run_rounds(ladder, parts, n_rounds)
    assert np.array_equal(whole.visible, parts.visible)
    assert np.array_equal(whole.headings, parts.headings)
    assert (whole.sweep, whole.round_trips) == (parts.sweep, parts.round_trips) == (11, whole.round_trips)
    np.testing.assert_allclose(whole.acceptance, parts.acceptance, rtol=1e-12)


def test_progress_and_few_steps():
    seen = []
    states = pm.sample(hard_machine(), 3, n_steps=300, method="tempering", rng=0, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) > 1
    assert states.shape == (3, 6)
    assert states.dtype == np.float64
    start = np.ones((3, 6))
    assert np.array_equal(
        pm.sample(hard_machine(), 3, n_steps=0, method="tempering", start=start, rng=0), start
    )
    assert np.isnan(temper(hard_machine(), 3, n_steps=0, rng=0).acceptance).all()


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "annealing"}, "`method` must be 'gibbs', 'tempering' or 'trajectory', got 'annealing'"),
        ({"n_replicas": 1}, "`n_replicas` must be an integer of at least 2, got 1"),
        ({"n_replicas": "many"}, "`n_replicas` must be 'auto' or an integer of at least 2, got 'many'"),
        ({"acceptance": 0.0}, "`acceptance` must lie between 0 and 1, both excluded, got 0"),
        ({"acceptance": 1.0}, "`acceptance` must lie between 0 and 1, both excluded, got 1"),
        ({"acceptance": np.nan}, "`acceptance` must be finite, got nan"),
        ({"path": "bias"}, "`path` must be 'weights' or 'energy', got 'bias'"),
        ({"method": "trajectory"}, "`trajectory` must be given for the method 'trajectory'"),
        ({"trajectory": [hard_machine()]}, "`trajectory` must be left out for the method 'tempering'"),
        ({"method": "gibbs", "base": np.zeros(6)}, "`base` must be left out for the method 'gibbs'"),
        ({"method": "gibbs", "acceptance": 0.5}, "`acceptance` must be left out for the method 'gibbs'"),
        ({"path": "energy", "base": np.full(6, 0.5)}, "`base` must be left out unless the path is 'weights'"),
        ({"base": np.full(6, np.nan)}, "`base` must be finite, got nan"),
        ({"base": np.full((3, 6), np.nan)}, "`base` must not hold NaN"),
        ({"base": np.full(5, 0.5)}, "`base` must hold 6 means, one per visible unit"),
        ({"base": hard_machine(0, "spin")}, "`base` must have the visible layer of `rbm`"),
    ],
)
def test_bad_input_of_sample(options, message):
    with pytest.raises(ValueError, match=message):
        pm.sample(hard_machine(), 4, **{"method": "tempering", "n_steps": 2, **options})


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        ([], "`trajectory` must hold at least one machine besides `rbm`"),
        ([hard_machine()], "`trajectory` must hold at least one machine besides `rbm`"),
        ([draw_machine()], "`trajectory` must hold machines with the layers of `rbm`.*at position 0"),
        ([3], r"`trajectory\[0\]` must be a machine"),
        (hard_machine(), "`trajectory` must be a list of machines or of states of a run"),
        ("run.checkpoint", "`trajectory` must be a list of machines or of states of a run"),
    ],
)
def test_bad_trajectories(trajectory, message):
    with pytest.raises(ValueError, match=message):
        pm.sample(hard_machine(), 4, method="trajectory", trajectory=trajectory)


def test_a_trajectory_has_no_fixed_number_of_replicas():
    with pytest.raises(ValueError, match="`n_replicas` must be left out for the method 'trajectory'"):
        pm.sample(hard_machine(), 4, method="trajectory", trajectory=[hard_machine(1)], n_replicas=2)
    with pytest.raises(ValueError, match="`n_replicas` must be 'auto' with a `trajectory`, got 2"):
        temper(hard_machine(), 4, trajectory=[hard_machine(1)], n_replicas=2)
