"""Two families of sequences from a file to a held-out likelihood: the WW domain, and human splice sites.

    PARAMAGNET_DATA=FOLDER python examples/sequences.py

FOLDER/sequences must hold ``ww_sequences.fa`` (an alignment of the family PF00397 of Pfam) and
``ss_sequences.txt`` (sequences of nine letters with their counts); both come with the package logomaker, in
its folder examples. Files of yours take their place below. Figures need matplotlib:
pip install ".[plot]" in a checkout
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

import paramagnet as pm
from paramagnet.plots import save_figure
from paramagnet.sequence_plots import plot_contacts, plot_logos


def ww_domain(path: Path) -> None:
    """An alignment of proteins: weights by similarity, training, likelihood, samples, logos, contacts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.data.AlignmentWarning)  # one letter X counts as a gap
        family = pm.data.read_alignment(path)
    order = np.random.default_rng(0).permutation(len(family))
    learned, held_out = family.select(order[800:]), family.select(order[:800])
    weights = pm.data.sequence_weights(learned)
    print(f"{family}, effective number {weights.sum():.0f} of {len(learned)}")
    given = {"data": learned.data, "sample_weight": weights}
    start = pm.initialize(
        family.n_sites, 20, visible=family.units, visible_bias="data", gain=0.25, rng=0, **given
    )
    rbm = pm.train(
        start,
        learned.data,
        sample_weight=weights,
        gradient=pm.PCD(n_chains=500, n_steps=10),
        optimizer=pm.Adam(pm.Schedule("linear", 0.01, end=0.0005)),
        centred=True,
        batch_size=200,
        epochs=40,
        evaluate=[],
        rng=0,
    ).rbm
    sites = pm.independent_log_likelihood(
        learned.data, family.units, validation=held_out.data, sample_weight=weights
    )
    log_z = pm.estimate_log_partition(rbm, n_samples=500, n_temperatures=500, rng=1)
    found = pm.log_likelihood(rbm, held_out.data, log_partition=log_z)
    print(f"held out: {found:.2f} nats per sequence, independent sites {sites:.2f}")
    kept = pm.data.SequencePreparation.of(learned, sample_weight=weights)
    rbm.save("ww.safetensors", preparation=kept)
    samples = pm.sample(rbm, 5, n_steps=1000, rng=2)
    print("samples:", *kept.invert(samples), sep="\n  ")
    kept.write("ww_samples.fa", samples)
    couplings = pm.couplings.effective_couplings(
        rbm, learned.data, sample_weight=weights, n_contexts=50, without=family.alphabet.index("-"), rng=3
    )
    contacts = pm.couplings.strongest_contacts(couplings.corrected, 10)
    pairs = (f"{family.site_names[c.i]}-{family.site_names[c.j]}" for c in contacts)
    print("strongest couplings, columns of the alignment:", *pairs)
    norms = np.linalg.norm(rbm.weights, axis=0)
    units = np.argsort(-norms)[:3]
    figure = plot_logos(
        rbm.weights_by_state[:, :, units].transpose(2, 0, 1),
        family.alphabet,
        sites=family.site_names,
        titles=[f"hidden unit {unit + 1}" for unit in units],
    )
    save_figure(figure, Path("ww_logos.png"))
    marked = [(c.i, c.j) for c in contacts]
    save_figure(plot_contacts(couplings.corrected, marked, sites=family.site_names), Path("ww_contacts.png"))
    print("figures: ww_logos.png, ww_contacts.png")


def splice_sites(path: Path) -> None:
    """Nine letters of RNA, 4**9 sequences: gradients, likelihoods and samples are exact."""
    sites = pm.data.read_alignment(path)
    counts = np.asarray(sites.counts).astype(int)
    held_out = np.random.default_rng(0).binomial(counts, 0.2)
    learned = counts - held_out
    given = {"data": sites.data, "sample_weight": learned}
    start = pm.initialize(9, 8, visible=sites.units, visible_bias="data", gain=0.5, rng=0, **given)
    rbm = pm.train(
        start,
        sites.data,
        sample_weight=learned,
        gradient=pm.Exact(),
        optimizer=pm.Adam(0.03),
        epochs=200,
        evaluate=[],
        rng=0,
    ).rbm
    chosen = held_out > 0
    found = pm.log_likelihood(rbm, sites.data[chosen], sample_weight=held_out[chosen])
    independent = pm.independent_log_likelihood(
        np.repeat(sites.data, learned, axis=0),
        sites.units,
        validation=np.repeat(sites.data, held_out, axis=0),
    )
    print(f"{sites}, {counts.sum()} counted")
    print(f"held out, exact: {found.value:.3f} nats per sequence, independent sites {independent:.3f}")
    kept = pm.data.SequencePreparation.of(sites, sample_weight=learned)
    print("exact samples:", *kept.invert(pm.sample_exact(rbm, 5, rng=1)), sep="\n  ")
    save_figure(
        plot_logos(rbm.weights_by_state.transpose(2, 0, 1)[:4], sites.alphabet), Path("splice_logos.png")
    )


def main() -> None:
    folder = Path(os.environ.get("PARAMAGNET_DATA", ".")) / "sequences"
    for name, run in (("ww_sequences.fa", ww_domain), ("ss_sequences.txt", splice_sites)):
        if (folder / name).is_file():
            run(folder / name)
        else:
            print(f"{name} is not in {folder}: set PARAMAGNET_DATA to the folder that has sequences/{name}")


if __name__ == "__main__":
    main()
