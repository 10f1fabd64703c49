"""`paramagnet contacts` and `paramagnet logos` beside the functions of Python, and what they refuse."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import paramagnet as pm
from paramagnet.cli import app

pytest.importorskip("matplotlib", reason="both commands draw figures")

LETTERS = "-KLWY"


def invoke(command):
    return CliRunner().invoke(app, command.split(), catch_exceptions=False)


def run(command):
    result = invoke(command)
    assert result.exit_code == 0, result.output
    return re.sub(r"\s+", " ", result.output)


def refused(command, words):
    with pytest.raises((ValueError, OSError), match=words):
        invoke(command)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A family with a column of insertions, and a machine in which sites 2 and 6 are coupled most."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = []
    for number in range(40):
        text = "".join(rng.choice(list("WYKL-"), size=6))
        lines.append(f">s{number}\n{text[:3]}{'.a'[number % 2]}{text[3:]}")
    (tmp_path / "family.fa").write_text("\n".join(lines) + "\n")
    (tmp_path / "plain.fa").write_text("\n".join(line.replace(".", "").replace("a", "") for line in lines))
    for name in ("family", "plain"):
        save_machine(name)
    return tmp_path


def save_machine(name, hidden="bit"):
    family = pm.data.read_alignment(f"{name}.fa", alphabet=LETTERS)
    rng = np.random.default_rng(1)
    start = pm.initialize(6, 4, visible=family.units, hidden=hidden, scheme="xavier", gain=0.3, rng=1)
    weights = start.weights.copy().reshape(6, 5, -1)
    weights[[1, 5], :, 2] += rng.normal(0.0, 3.0, (2, 5))
    rbm = pm.RBM(weights.reshape(start.weights.shape), 0, 0, family.units, hidden).to_zero_sum()
    rbm.save(f"{name}.safetensors", preparation=pm.data.SequencePreparation.of(family))
    return rbm, family


def test_contacts_are_those_of_python(folder):
    rbm, family = save_machine("family")
    command = "contacts family.safetensors family.fa --n-contexts 20 --seed 3 --n-contacts 4"
    record = json.loads(run(f"{command} --out pairs.csv --figure map.png --json"))
    expected = pm.couplings.effective_couplings(rbm, family.data, n_contexts=20, without=0, rng=3)
    pairs = pm.couplings.strongest_contacts(expected.corrected, 4, least_distance=4)
    found = record["contacts"]
    assert [(pair["site_i"] - 1, pair["site_j"] - 1) for pair in found] == [(p.i, p.j) for p in pairs]
    assert (found[0]["site_i"], found[0]["site_j"]) == (2, 6)
    assert (found[0]["column_i"], found[0]["column_j"]) == (2, 7)  # an insertion lies between
    assert found[0]["coupling"] == pytest.approx(pairs[0].strength, rel=1e-12)
    assert found[0]["norm"] == pytest.approx(expected.strengths[1, 5], rel=1e-12)
    assert found[0]["norm_error"] == pytest.approx(expected.error[1, 5], rel=1e-12)
    assert (record["n_contexts"], record["without_gap"]) == (20, True)
    with open("pairs.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 15
    assert (rows[0]["site_i"], rows[0]["column_j"]) == ("2", "7")
    strengths = [float(row["coupling"]) for row in rows]
    assert strengths == sorted(strengths, reverse=True)
    assert (folder / "map.png").read_bytes()[:4] == b"\x89PNG"
    text = run(command)
    assert "sites columns coupling norm error of norm 2-6 2-7 " in text
    assert "averaged over 20 sequences, the gap left out; sites at least 4 apart" in text


def test_gap_method_and_weights(folder):
    rbm, family = save_machine("plain")
    run_json = "contacts plain.safetensors plain.fa --json --seed 1"
    record = json.loads(run(f"{run_json} --with-gap --method second-order"))
    whole = pm.couplings.effective_couplings(rbm, family.data, method="second-order")
    assert record["contacts"][0]["norm"] == pytest.approx(whole.strengths[1, 5], rel=1e-12)
    assert "column_i" not in record["contacts"][0]
    output = invoke(f"{run_json} --reweight 0.4 --n-contexts 40")
    weighed = pm.couplings.effective_couplings(
        rbm, family.data, sample_weight=pm.data.sequence_weights(family, 0.4), n_contexts=40, without=0
    )
    found = json.loads(output.stdout)["contacts"][0]
    assert (found["norm"], found["norm_error"]) == (pytest.approx(weighed.strengths[1, 5], rel=1e-12), 0.0)
    np.save("weights.npy", np.arange(40.0))
    found = json.loads(run(f"{run_json} --sample-weight weights.npy --n-contexts 40"))["contacts"][0]
    weighed = pm.couplings.effective_couplings(
        rbm, family.data, sample_weight=np.arange(40.0), n_contexts=40, without=0
    )
    assert found["norm"] == pytest.approx(weighed.strengths[1, 5], rel=1e-12)
    assert "No two of 6 sites are 9 apart" in run(
        "contacts plain.safetensors plain.fa --least-distance 9 --method second-order"
    )


def test_a_machine_of_states_has_contacts_but_no_logos(folder):
    rbm, family = save_machine("plain")
    np.save("states.npy", family.data)
    rbm.save("bare.safetensors")
    record = json.loads(run("contacts bare.safetensors states.npy --json --method second-order"))
    assert not record["without_gap"]
    assert record["contacts"][0]["site_j"] == 6
    refused("logos bare.safetensors --out x.png", "whose file keeps the alphabet")


def test_logos_of_units_and_families(folder):
    text = run("logos family.safetensors --out units.png")
    assert text.startswith("hidden units 3, ")  # of largest weights
    assert text.count(",") == 2
    assert run("logos family.safetensors --units 4,1,4 --out two.svg") == "hidden units 4, 1: two.svg "
    assert "hidden unit 4" not in (folder / "two.svg").read_text()[:200]
    output = run("logos family.fa --out family.pdf --reweight 0.8")
    assert "frequencies: family.pdf" in output
    assert (folder / "family.pdf").read_bytes()[:4] == b"%PDF"
    save_machine("plain", hidden="categorical(3)")
    assert run("logos plain.safetensors --n-units 1 --out states.png") == "hidden unit 1: states.png "


def test_the_logos_show_the_weights_in_the_zero_sum_gauge(folder, monkeypatch):
    drawn = {}

    def keep(heights, alphabet, **options):
        drawn.update(options, heights=heights, alphabet=alphabet)
        from matplotlib.figure import Figure

        return Figure()

    monkeypatch.setattr("paramagnet.sequence_plots.plot_logos", keep)
    rbm, family = save_machine("family")
    run("logos family.safetensors --units 2,3 --out units.png")
    expected = rbm.weights_by_state[:, :, 1:3].transpose(2, 0, 1)
    assert np.allclose(drawn["heights"], expected, rtol=0.0, atol=1e-14)
    assert drawn["alphabet"] == LETTERS
    assert drawn["sites"] == family.site_names
    assert drawn["titles"] == ["hidden unit 2", "hidden unit 3"]


def test_what_is_refused(folder):
    spins = pm.initialize(6, 2, rng=0)
    spins.save("spins.safetensors")
    refused("contacts spins.safetensors family.fa", "`MODEL` must have two or more .*, got 6 spin units")
    pm.initialize(1, 2, visible="categorical(5)", scheme="xavier", rng=0).save("one.safetensors")
    refused("contacts one.safetensors family.fa", "two or more categorical .*, got 1 categorical.5. unit:")
    refused("contacts family.safetensors none.fa", "there is no 'none.fa'")
    refused("contacts family.safetensors family.fa --out pairs.txt", "`--out` must end in .csv")
    refused("contacts family.safetensors family.fa --figure map.gif", "must end in .png, .svg, .pdf")
    refused("contacts family.safetensors family.fa --reweight 2", "`--reweight` must be a share of sites")
    refused("contacts family.safetensors family.fa --method mean", "`--method` must be 'contexts' or")
    refused(
        "contacts family.safetensors family.fa --n-contacts 0", "`--n-contacts` must be a positive integer"
    )
    refused("logos family.safetensors --out logos.csv", "must end in .png, .svg, .pdf")
    refused("logos none.fa --out x.png", "`SOURCE` must be a file")
    refused("logos family.safetensors --out x.png --units 5", "`--units` must be numbers from 1 to 4")
    refused("logos family.safetensors --out x.png --units 1 --n-units 2", "exclude each other")
    refused("logos family.safetensors --out x.png --reweight 0.8", "`--reweight` is for files of sequences")
    refused("logos family.fa --out x.png --n-units 2", "are for machines")
    (folder / "points.csv").write_text("0,1\n")
    refused("logos points.csv --out x.png", "`SOURCE` must be a machine .* or a file of sequences")
    family = pm.data.read_alignment("plain.fa", alphabet=LETTERS)
    many = pm.initialize(6, 60, visible=family.units, scheme="xavier", rng=0)
    many.save("many.safetensors", preparation=pm.data.SequencePreparation.of(family))
    refused("logos many.safetensors --out x.png --n-units 51", "at most 50 logos, got 51")
