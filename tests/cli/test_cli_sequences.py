"""Commands on sequences: from an alignment to a likelihood, samples as FASTA, and what is refused."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app

TRAINING = "--hidden-units 3 --epochs 20 --learning-rate 0.05 --evaluate-at 0,20 --seed 1 --out m.safetensors"


def run(command, *, code=0):
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == code, result.output
    return re.sub(r"\s+", " ", result.output)


def as_json(command):
    """The record on stdout; what is said of the file goes to stderr."""
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(command, words):
    with pytest.raises((ValueError, OSError), match=words):
        CliRunner().invoke(app, command.split(), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A family whose second and fifth letters are the same, with a column of insertions."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = []
    for number in range(60):
        letters = rng.choice(list("WYKL"), size=5)
        letters[4] = letters[1]
        text = "".join(letters)
        lines.append(f">family/{number}\n{text[:2]}{'.a'[number % 2]}{text[2:]}")
    (tmp_path / "family.fa").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_from_an_alignment_to_a_likelihood(folder):
    text = run("data info family.fa")
    assert "60 sequences of 5 sites" in text
    assert "1 of 6 columns are insertions, dropped; alphabet protein" in text
    assert "effective number at identity 0.8" in text
    assert "learn it: paramagnet train family.fa --reweight 0.8 --held-out 0.2" in text
    text = run(f"train family.fa --alphabet -KLWY --reweight 0.8 --held-out 0.25 {TRAINING}")
    assert "effective sequences of 45 (identity 0.8)" in text
    assert "60 sequences of 5 sites, 5 letters" in text
    machine = pm.RBM.load("m.safetensors")
    assert (machine.n_visible, machine.visible) == (5, pm.categorical(5))
    kept = pm.data.SequencePreparation.load("m.safetensors")
    assert (kept.alphabet, kept.columns) == ("-KLWY", (0, 1, 3, 4, 5))
    text = run("evaluate m.safetensors family.fa --held-out")
    assert "(15 points), ln Z exact" in text
    assert "means of the training rows" in text
    record = json.loads(run("evaluate m.safetensors family.fa --json"))
    points = kept.apply("family.fa")
    assert abs(record["log_likelihood"] - pm.log_likelihood(machine, points).value) < 1e-9
    share = pm.data.site_frequencies(kept.read("family.fa").data[:1], 5)
    assert share.shape == (5, 5)


def test_samples_scores_and_features(folder):
    run(f"train family.fa --alphabet -KLWY {TRAINING}")
    run("sample m.safetensors --n-samples 7 --seed 1 --out new.fa")
    samples = pm.data.read_alignment("new.fa", alphabet="-KLWY")
    assert samples.data.shape == (7, 5)
    assert samples.names[0] == "sample_1"
    run("score m.safetensors new.fa --out scores.csv")
    with open("scores.csv") as file:
        rows = list(csv.DictReader(file))
    machine = pm.RBM.load("m.safetensors")
    exact = -machine.free_energy(samples.data) - pm.log_partition(machine)
    assert [row["name"] for row in rows] == list(samples.names)
    assert np.allclose([float(row["log_likelihood"]) for row in rows], exact)
    run("transform m.safetensors family.fa --out features.csv")
    with open("features.csv") as file:
        first = next(csv.DictReader(file))
    assert list(first) == ["row", "name", "h1", "h2", "h3"]
    assert first["name"] == "family/0"
    run("sample m.safetensors --n-samples 4 --seed 1 --out states.csv")
    assert pm.read_data("states.csv").shape == (4, 5)
    text = run("diagnose m.safetensors family.fa --chains 50 --steps 50 --no-likelihood --seed 1")
    assert "sweeps" in text
    judge = "diagnose m.safetensors family.fa --chains 50 --steps 50 --seed 1 --json"
    texts = [run(judge + words) for words in ("", " --reweight 0.8")]
    assert "effective sequences of" in texts[1]
    plain, weighed = (json.loads(text[text.index('{"') :]) for text in texts)
    states = pm.data.read_alignment("family.fa", alphabet="-KLWY").data.astype(float)
    weights = pm.data.sequence_weights(states, 0.8)
    for record, given in ((plain, None), (weighed, weights)):
        found = pm.log_likelihood(pm.RBM.load("m.safetensors"), states, sample_weight=given).value
        assert abs(record["log_likelihood"]["value"] - found) < 1e-9


def test_letters_can_be_held_fixed(folder):
    run(f"train family.fa --alphabet -KLWY {TRAINING}")
    (folder / "design.fa").write_text(">a\nX?KXX\n>b\nWXXXX\n")
    run("sample m.safetensors --clamp design.fa --n-samples 6 --steps 20 --seed 1 --out new.fa")
    designs = pm.data.read_alignment("new.fa", alphabet="-KLWY").sequences
    assert {text[2] for text in designs[:6]} == {"K"}
    assert {text[0] for text in designs[6:]} == {"W"}
    assert len({text[4] for text in designs}) > 1


def test_counts_are_weights(folder):
    (folder / "sites.txt").write_text("sequence count\nACG 30\nAUG 1\nGGG 5\nGUA 0\n")
    text = run(f"train sites.txt {TRAINING}")
    assert "counts of the sequences are their weights" in text
    assert "4 letters" in text
    machine = pm.RBM.load("m.safetensors")
    states = pm.read_data("sites.txt")
    record = json.loads(run("evaluate m.safetensors sites.txt --json"))
    weighted = pm.log_likelihood(machine, states, sample_weight=[30, 1, 5, 0]).value
    assert abs(record["log_likelihood"] - weighted) < 1e-9
    assert abs(weighted - pm.log_likelihood(machine, states).value) > 0.1
    facts = json.loads(run("data info sites.txt --json"))
    assert (facts["n_sequences"], facts["alphabet"], facts["gap_share"]) == (4, "ACGU", None)


def test_a_validation_file_has_the_sites_of_the_training(folder):
    (folder / "other.fa").write_text(">a\nWY-KLK\n>b\nWYXKLK\n")  # no insertion among these
    text = run(f"train family.fa --alphabet -KLWY --validation other.fa {TRAINING}")
    assert "validation" in text
    (folder / "short.fa").write_text(">a\nWYK\n")
    refused("evaluate m.safetensors short.fa", "must have 5 sites, or 6 columns")


def test_the_start_is_that_of_the_frequencies(folder):
    text = run(f"train family.fa --alphabet -KLWY {TRAINING}")
    level = float(re.search(r"independent units: (-[\d.]+)", text)[1])
    assert -5 * np.log(5) < level < 0.0


def test_drelu_hidden_units_start_at_their_scale(folder):
    run(f"train family.fa --alphabet -KLWY --hidden drelu {TRAINING} --chains 20")
    assert pm.RBM.load("m.safetensors").hidden == pm.drelu()
    scales = [
        as_json(f"beta-max --visible-units 5 --hidden-units 3 --visible categorical(5) --hidden {h} --json")
        for h in ("drelu", "gaussian")
    ]
    assert scales[0]["sigma"] == scales[1]["sigma"] == scales[0]["beta_max"] / 8**0.5


def test_what_is_refused(folder):
    refused(f"train family.fa --visible spin {TRAINING}", "`--visible` must be categorical")
    refused(f"train family.fa --visible categorical(4) {TRAINING}", "as many letters as units have states")
    refused(f"train family.fa --drop 1 {TRAINING}", "`--drop` is for tables")
    refused(f"train family.fa --alphabet ACGT {TRAINING}", "record 1 .*Add '-'")
    refused(f"train family.fa --alphabet -KLW --unknown-letters error {TRAINING}", "got 'Y' in record")
    refused(f"train family.fa --alphabet -KLW --unknown-letters error {TRAINING}", "`--unknown-letters gap`")
    refused(f"train family.fa --reweight 1.5 {TRAINING}", "`--reweight` must be a share of sites")
    refused(f"train missing.fa {TRAINING}", "there is no 'missing.fa'")
    for weights, words in (("0\n" * 60, "zeros only"), ("1\n" * 59 + "-1\n", "zero or positive, got -1")):
        (folder / "weights.csv").write_text(weights)
        output = CliRunner().invoke(app, f"train family.fa --sample-weight weights.csv {TRAINING}".split())
        assert words in str(output.exception)
        assert "chosen by the recipe" not in output.output
    (folder / "weights.csv").write_text("1\n" * 60)
    refused(f"train family.fa --reweight 0.8 --sample-weight weights.csv {TRAINING}", "exclude each other")
    refused("compare family.fa --hidden-units 2", "two values per feature for comparisons")
    refused("data binarize family.fa out.npy", "'categorical' for a file of sequences")
    (folder / "empty.fa").write_text("")
    refused("data info empty.fa", "at least one sequence")
    (folder / "ragged.fa").write_text(">a\nWY\n>b\nWYK\n>c\nWY\n")
    refused(f"train ragged.fa {TRAINING}", r"record 2 \('b'\)")
    (folder / "points.csv").write_text("0,1\n1,0\n1,1\n0,0\n" * 5)
    refused(f"train points.csv --alphabet dna {TRAINING}", "`--alphabet` is for sequences")
    refused(f"train points.csv --reweight 0.8 {TRAINING}", "`--reweight` is for sequences")
    run(f"train points.csv {TRAINING}")
    refused("sample m.safetensors --out new.fa", "not trained on sequences")
    refused("evaluate m.safetensors family.fa", "must be a table like the one")


def test_the_scale_at_the_frequencies_of_sequences(folder):
    """The command, the function of Python, and the start of a training have one scale."""
    record = as_json("beta-max --frequencies family.fa --alphabet -KLWY --hidden-units 4 --json")
    family = pm.data.read_alignment("family.fa", alphabet="-KLWY")
    given = {"visible": family.units, "hidden": "bit"}
    start = {"visible_bias": "data", "data": family.data, "scale_from": "biases", "rng": 0}
    drawn = pm.draw_machine(5, 4, **given, **start)
    assert record["sigma"] == pytest.approx(drawn.sigma, rel=1e-12)
    assert (record["visible_units"], record["visible"]) == (5, "categorical(5)")
    assert record["sigma"] != pytest.approx(pm.weight_std(5, 4, **given), rel=0.01)
    similar = "beta-max --frequencies family.fa --alphabet -KLWY --hidden-units 4 --json --reweight 0.6"
    weights = pm.data.sequence_weights(family, 0.6)
    drawn = pm.draw_machine(5, 4, **given, **start, sample_weight=weights)
    assert as_json(similar)["sigma"] == pytest.approx(drawn.sigma, rel=1e-12)
    options = "--hidden-units 4 --hidden spin --check --visible-units 10 --json"
    record = as_json(f"beta-max --frequencies family.fa --alphabet -KLWY {options}")
    biases = pm.Biases(family.units.bias_from(family.data.astype(float)).reshape(5, 5))
    gains = [point["gain"] for point in record["overlaps"]]
    assert gains == pytest.approx([0.1, 0.25, 0.5])
    found = pm.theory.centred_gain(
        record["overlaps"][0]["sigma"] * 14**0.5, 0.4, visible=family.units, hidden="spin", b=biases
    )
    assert found == pytest.approx(0.1)


def test_options_of_a_file_are_those_of_its_description(folder):
    (folder / "small.fa").write_text(">a\nacgx\n>b\nacga\n")
    refused("data info small.fa", "pass `--insertions keep`")
    refused(
        "data info small.fa --insertions keep --unknown-letters error --alphabet -ACGU",
        "Pass `--unknown-letters gap`",
    )
    text = run("data info small.fa --insertions keep --unknown-letters gap --alphabet -ACGU")
    assert "2 sequences of 4 sites" in text
    assert "small.fa --alphabet -ACGU --unknown-letters gap --insertions keep --reweight 0.8" in text
    (folder / "one.fa").write_text(">a\nA\n")
    assert "one.fa: 1 sequence of 1 site found" in run("data info one.fa")


def test_an_alignment_of_a_hundred_thousand_sites_is_described(folder):
    """The names of all sites were made anew for each constant one, which took minutes."""
    (folder / "long.fa").write_text(">a\n" + "ACGU" * 25_000 + "\n>b\n" + "ACGG" * 25_000 + "\n")
    record = as_json("data info long.fa --json")
    assert (record["n_sites"], len(record["constant"]), record["constant"][-1]) == (100_000, 75_000, "99999")


def test_frequencies_that_are_refused(folder):
    options = "beta-max --hidden-units 4"
    labels = "--visible-units 3 --visible categorical(4)"
    refused(f"{options} {labels} --visible-bias 1", "one bias per state, got 1. `--frequencies FILE` takes")
    refused(options, "`--visible-units` must be given, or `--frequencies FILE`")
    refused(f"{options} --visible-units 3 --reweight 0.8", "are for `--frequencies FILE`")
    refused(f"{options} --frequencies none.fa", "`--frequencies` must be a file")
    refused(f"{options} --frequencies family.fa --visible spin", "`--visible` must be categorical")
    refused(f"{options} --frequencies family.fa --visible-bias 1", "exclude each other")
    (folder / "points.csv").write_text("0,1\n1,0\n")
    refused(f"{options} --frequencies points.csv", "`--frequencies` must be a file of sequences")


def test_indicators_in_an_array_file(folder):
    states = np.random.default_rng(0).integers(4, size=(20, 5))
    indicators = (states[..., None] == np.arange(4)).astype(np.int8)
    np.save("states.npy", states)
    np.save("indicators.npy", indicators)
    np.save("flat.npy", indicators.reshape(20, 20))
    learn = "--hidden-units 2 --epochs 2 --seed 1 --visible categorical(4) --out"
    run(f"train states.npy {learn} a.safetensors")
    run(f"train indicators.npy {learn} b.safetensors")
    machines = [pm.RBM.load(f"{name}.safetensors") for name in "ab"]
    assert machines[0].n_visible == 5
    assert np.array_equal(machines[0].weights, machines[1].weights)
    run("evaluate a.safetensors indicators.npy")
    refused(f"train flat.npy {learn} c.safetensors", r"an array of shape \(n_points, n_units, 4\)")
