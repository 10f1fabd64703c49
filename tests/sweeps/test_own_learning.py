"""Gradients and optimizers in specifications: by name, by place, with their settings as keys."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

import paramagnet as pm
from own_classes import RestartedChains, RMSprop
from paramagnet.reproduction.plan import quick_trials
from paramagnet.reproduction.wording import describe_spec
from paramagnet.sweeps.execute import Stop, Stopped, execute, state_file, train_run
from paramagnet.sweeps.learning_spec import LearningSpec
from paramagnet.sweeps.spec_files import parse_spec
from small_sweeps import EXACT, SAMPLED, outcome

CD = EXACT.replace("batch_size = 10", 'batch_size = 10\ngradient = "cd"')
OWN = EXACT.replace(
    "batch_size = 10",
    'batch_size = 10\ngradient = "own_classes:RestartedChains"\noptimizer = "own_classes:RMSprop"\n'
    "n_steps = 3\nperiod = 4\ndecay = 0.5",
)


def first(text):
    return next(iter(parse_spec(text, "tiny").runs()))


def test_contrastive_divergence_in_a_specification():
    run = first(CD)
    assert (run.learning.n_steps, run.learning.make_gradient()) == (1, pm.CD(1, n_threads=1))
    longer = first(CD.replace('"cd"', '"cd"\nn_steps = 3'))
    assert longer.learning.make_gradient() == pm.CD(3, n_threads=1)
    assert len({run.digest, longer.digest, first(EXACT).digest}) == 3
    record = execute(run)
    assert all(np.isfinite(record.log_likelihood))
    assert record.log_likelihood != execute(longer).log_likelihood


def test_tempering_in_a_specification():
    """Its settings are keys; `n_replicas` is a number or a word."""
    settings = '"tempering"\nn_chains = 20\nn_relax = 8\npath = "energy"\nn_replicas = 3'
    run = first(CD.replace('"cd"', settings))
    wanted = pm.Tempering(20, path="energy", n_replicas=3, n_relax=8, n_threads=1)
    assert run.learning.make_gradient() == wanted
    auto = first(CD.replace('"cd"', settings.replace("n_replicas = 3", 'n_replicas = "auto"')))
    assert auto.learning.make_gradient() == replace(wanted, n_replicas="auto")
    assert auto.digest != run.digest
    assert all(np.isfinite(execute(run).log_likelihood))


@pytest.mark.parametrize("text", [EXACT, SAMPLED], ids=["exact", "sampled"])
def test_centred_learning_in_a_specification(text):
    plain, centred = first(text), first(text.replace("[learning]", "[learning]\ncentred = true"))
    said = first(text.replace("[learning]", "[learning]\ncentred = false"))
    assert (said.digest, said.settings) == (plain.digest, plain.settings)
    assert centred.digest != plain.digest
    assert centred.settings != plain.settings
    assert train_run(centred).settings["centred"] == "Centring(rate=0.1, factor=None)"
    assert "centred" not in train_run(plain).settings
    assert execute(centred).log_likelihood[-1] != execute(plain).log_likelihood[-1]
    spec = parse_spec(text.replace("[learning]", "[learning]\ncentred = true"), "tiny")
    assert "centred learning" in describe_spec(spec)
    with pytest.raises(ValueError, match="`centred` must be True or False, got 1"):
        first(text.replace("[learning]", "[learning]\ncentred = 1"))


@pytest.mark.parametrize("text", [EXACT, SAMPLED], ids=["exact", "sampled"])
@pytest.mark.parametrize(
    ("key", "value"), [("weight_decay", 0.5), ("l1", 0.5), ("l1_group", 2.0), ("clip", 1e-3)]
)
def test_penalties_in_a_specification(text, key, value):
    plain, penalized = first(text), first(text.replace("[learning]", f"[learning]\n{key} = {value}"))
    if key != "clip":
        said = first(text.replace("[learning]", f"[learning]\n{key} = 0"))
        assert (said.digest, said.settings) == (plain.digest, plain.settings)
    assert penalized.digest != plain.digest
    assert penalized.settings != plain.settings
    assert train_run(penalized).settings[key] == repr(float(value))
    assert train_run(plain).settings.get(key, "0.0") == "0.0"
    assert execute(penalized).log_likelihood[-1] != execute(plain).log_likelihood[-1]
    spec = parse_spec(text.replace("[learning]", f"[learning]\n{key} = {value}"), "tiny")
    assert f", {key} = {value:g}" in describe_spec(spec)
    rule = "positive" if key == "clip" else "zero or positive"
    with pytest.raises(ValueError, match=f"`{key}` must be {rule}, got -1"):
        first(text.replace("[learning]", f"[learning]\n{key} = -1"))


@dataclass(frozen=True)
class OwnDecay(pm.SGD):
    """An optimizer with a setting that is called like a penalty."""

    weight_decay: float = 0.0


def test_a_setting_of_ones_own_optimizer_is_not_a_penalty():
    text = EXACT.replace("[learning]", f'[learning]\noptimizer = "{__name__}:OwnDecay"\nweight_decay = 0.25')
    run = first(text.replace('\noptimizer = "adam"', "").replace('\noptimizer = "sgd"', ""))
    assert run.learning.make_optimizer().weight_decay == 0.25
    assert run.learning.weight_decay == 0.0
    assert run.learning.options == (("weight_decay", 0.25),)


def test_classes_of_ones_own_in_a_specification():
    run = first(OWN)
    assert run.learning.make_gradient() == RestartedChains(n_steps=3, period=4)
    assert run.learning.make_optimizer() == RMSprop(0.1, 0.5)
    assert run.learning.options == (("decay", 0.5), ("period", 4))
    other = first(OWN.replace("decay = 0.5", "decay = 0.6"))
    assert (run.digest, run.settings) != (other.digest, other.settings)
    record, again = execute(run), execute(run)
    assert outcome([record]) == outcome([again])
    state = train_run(run)
    assert state.settings["gradient"] == "RestartedChains(n_steps=3, period=4)"
    assert state.settings["optimizer"] == "RMSprop(learning_rate=0.1, decay=0.5, epsilon=1e-08)"


def test_a_run_with_classes_of_ones_own_goes_on_after_an_interruption(tmp_path, monkeypatch):
    run, folder = first(OWN), tmp_path / "states"
    whole = execute(run)
    monkeypatch.setattr("paramagnet.sweeps.execute.LOOK_SECONDS", 0.0)
    looks = iter([False] * 5 + [True])
    monkeypatch.setattr(Stop, "due", lambda self: next(looks, False))
    with pytest.raises(Stopped):
        execute(run, states=str(folder))
    assert state_file(folder, run).exists()
    assert outcome([execute(run, states=str(folder))]) == outcome([whole])


def test_settings_of_our_own_classes_are_keys():
    run = first(EXACT.replace("batch_size = 10", "batch_size = 10\nbeta1 = 0.8\nepsilon = 1"))
    assert run.learning.make_optimizer() == pm.Adam(0.1, beta1=0.8, epsilon=1.0)
    assert run.digest != first(EXACT).digest


def test_digests_of_before_have_no_options():
    for text, gradient in ((EXACT, "exact"), (SAMPLED, "pcd")):
        learning = parse_spec(text, "tiny").learning
        assert (learning.gradient, learning.options) == (gradient, ())
        given = replace(learning, n_chains=learning.n_chains, n_steps=learning.n_steps)
        assert given == learning
    assert LearningSpec(0.1) == LearningSpec(0.1, n_chains=1000, n_steps=40, n_relax=500)
    pcd = pm.PCD()
    assert (pcd.n_chains, pcd.n_steps, pcd.n_relax) == (1000, 40, 500)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('gradient = "cdd"', "`gradient` must be one of 'exact', 'pcd', 'cd', 'tempering', or .*, got 'cdd'"),
        ('optimizer = "lbfgs"', "`optimizer` must be one of 'adam', 'sgd', or .*, got 'lbfgs'"),
        ('gradient = "no_module:A"', "`gradient` = 'no_module:A' must name a module that can be imported"),
        ('gradient = "cd"\nn_chains = 5', "`n_chains` is not a setting of the gradient 'cd'; it has n_steps"),
        ('gradient = "cd"\nn_steps = 0', "`n_steps` must be a positive integer, got 0"),
        ("period = 3", r"`\[learning\] period` is not a known key; known are .*'adam': force, beta1"),
        ("n_threads = 3", r"`\[learning\] n_threads` is not a known key"),
        ("beta1 = 2.0", "`beta1` must be at least 0 and below 1, got 2.0"),
        ("beta1 = {a = 1}", "`beta1` must be a number, a text, true, false or a list, got"),
        ("options = [1]", r"`\[learning\] options` is not a known key; write the settings"),
        ('optimizer = "own_classes:RMSprop"\nmomentum = 0.5', "`momentum` is not a setting of RMSprop"),
        ("gradient = 3", "`gradient` must be one of .*, got 3"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_when_it_is_read(keys, message):
    with pytest.raises(ValueError, match=f"tiny.toml: {message}"):
        parse_spec(EXACT.replace("batch_size = 10", keys), "tiny")


def test_reading_a_specification_loads_no_kernels():
    code = (
        "import sys, json\n"
        "from paramagnet.sweeps.spec_files import parse_spec\n"
        f"spec = parse_spec({SAMPLED!r}, 'tiny')\n"
        "print(json.dumps([next(iter(spec.runs())).digest, 'numba' in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [first(SAMPLED).digest, False]


def test_reports_speak_of_any_gradient():
    assert "; Adam at 0.1, batches of 10; exact gradients;" in describe_spec(parse_spec(EXACT, "tiny"))
    assert "; gradients by CD(n_steps=1);" in describe_spec(parse_spec(CD, "tiny"))
    own = describe_spec(parse_spec(OWN, "tiny"))
    assert "; RMSprop at 0.1, batches of 10; gradients by RestartedChains(n_steps=3, period=4);" in own
    assert [quick_trials(parse_spec(text, "tiny")) for text in (EXACT, SAMPLED, CD, OWN)] == [2, 1, 1, 1]


def test_a_schedule_in_a_specification():
    from paramagnet.learning.schedule import Schedule
    from paramagnet.sweeps.learning_spec import LearningSpec

    rate = LearningSpec(0.01, schedule="linear(end=0.001)").make_optimizer().learning_rate
    assert rate == Schedule("linear", 0.01, end=0.001)
    assert LearningSpec(0.01).make_optimizer().learning_rate == 0.01
    with pytest.raises(ValueError, match="`schedule` must be the name of a schedule"):
        LearningSpec(0.01, schedule="fast")
    assert LearningSpec(0.01, schedule="linear(0.01)").make_optimizer().learning_rate.rate == 0.01
    for text in ("linear(0.1)", "constant(rate=0.02)"):
        with pytest.raises(ValueError, match=r"`schedule` must start at `learning_rate` = 0\.01, got"):
            LearningSpec(0.01, schedule=text)


@pytest.mark.parametrize("text", [EXACT, SAMPLED], ids=["exact", "sampled"])
def test_a_run_with_a_schedule_is_another_one_and_goes_on(text, tmp_path, monkeypatch):
    run = first(text.replace("[learning]", '[learning]\nschedule = "cosine"'))
    assert run.digest != first(text).digest
    whole = execute(run)
    assert whole.log_likelihood[-1] != execute(first(text)).log_likelihood[-1]
    assert "Schedule(kind='cosine'" in train_run(run).settings["optimizer"]
    monkeypatch.setattr("paramagnet.sweeps.execute.LOOK_SECONDS", 0.0)
    looks = iter([False] * 5 + [True])
    monkeypatch.setattr(Stop, "due", lambda self: next(looks, False))
    with pytest.raises(Stopped):
        execute(run, states=str(tmp_path))
    assert outcome([execute(run, states=str(tmp_path))]) == outcome([whole])
