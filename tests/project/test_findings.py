"""The findings and the page of the reproduction are what the records say, and planted effects move them."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from paramagnet.exact.cost import SECONDS_ALLOWED, estimate_seconds
from paramagnet.learning.gradients.default import SECONDS_CHEAP
from paramagnet.reproduction.paper import read_log_likelihoods
from paramagnet.sweeps.groups import BETA_MAX, group_runs, paired_difference, setting_of, values_at
from paramagnet.sweeps.store import Store, read_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.fixture(scope="module")
def records():
    return read_results(RESULTS)


@pytest.fixture(scope="module")
def benchmarks():
    """The modules of benchmarks/ by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module


def test_findings_are_what_the_records_say(records, benchmarks):
    made = benchmarks("findings").write_findings(records)
    assert (RESULTS / "findings.md").read_text(encoding="utf-8") == made, "`make tables` writes them again"


def test_the_page_is_made_from_the_records(records, benchmarks, tmp_path):
    notes = (RESULTS / "findings.md").read_text(encoding="utf-8")
    benchmarks("reproduction_page").write_page(records, notes, tmp_path / "page.md")
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert page == (tmp_path / "page.md").read_text(encoding="utf-8"), "`make tables` writes it again"


def test_the_report_is_not_committed_beside_the_records():
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "results/report.html" in ignored
    assert "report.html" in (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")


def moved(records, dataset, n_hidden, c, gain, shift, field="log_likelihood"):
    """The records with one cell of one data set shifted at all epochs."""
    return [
        replace(r, **{field: tuple(value + shift for value in getattr(r, field))})
        if (r.dataset, r.n_hidden, r.c, r.scheme, r.gain) == (dataset, n_hidden, c, BETA_MAX.scheme, gain)
        and r.hidden == "bit"
        and r.table
        else r
        for r in records
    ]


def counts_of(text):
    best = re.search(r"sole best after the last epoch in (\d+), tied for it at two decimals in (\d+)", text)
    return int(best[1]), int(best[2])


def test_planted_ranks_move_the_first_finding(records, benchmarks):
    findings, facts = benchmarks("findings"), benchmarks("reproduction_facts").Facts
    sole, tied = counts_of(findings.result_of_the_paper(facts(records)))
    worse = moved(records, "toy", 30, -5.0, 0.5, 1.0)  # half of beta_max becomes the best there
    text = findings.result_of_the_paper(facts(worse))
    assert counts_of(text) == (sole - 1, tied)
    gap = paired_difference(
        *(
            values_at([r for r in records if (r.sweep, r.n_hidden, r.gain, r.scheme) == which], 200)
            for which in (("toy_bit_c5", 30, gain, BETA_MAX.scheme) for gain in (1.0, 0.5))
        )
    ).mean
    level = moved(records, "toy", 30, -5.0, 0.5, gap)
    assert counts_of(findings.result_of_the_paper(facts(level))) == (sole - 1, tied + 1)


def test_a_sentence_that_the_records_do_not_bear_out_is_refused(records, benchmarks):
    findings, facts = benchmarks("findings"), benchmarks("reproduction_facts").Facts
    tested = moved(records, "drybean", 16, 0.0, 4.0, 5.0, "held_out")  # no longer the order of training
    with pytest.raises(ValueError, match="The records no longer bear out the sentence"):
        findings.held_out(facts(tested))
    hinton = [
        replace(r, log_likelihood=tuple(value + 9.0 for value in r.log_likelihood))
        if r.scheme == "hinton"
        else r
        for r in records
    ]
    with pytest.raises(ValueError, match="behind in every setting"):
        findings.other_weights(facts(hinton))


def test_the_paper_s_own_ranks_are_those_of_does_it_win():
    best = {}
    for cell in read_log_likelihoods():
        key = (cell.table, cell.n_hidden, cell.c)
        best.setdefault(key, {}).setdefault(cell.epoch, {})[cell.gain] = cell.mean
    places = []
    for epochs in best.values():
        means = epochs[max(epochs)]
        ahead, level = (
            sum(value > means[1.0] for value in means.values()),
            sum(value == means[1.0] for value in means.values()) - 1,
        )
        places.append("tied" if not ahead and level else ahead + 1)
    words = (
        f"sole best in {places.count(1)}, tied in {places.count('tied')}, second in {places.count(2)} of 23"
    )
    assert len(places) == 23
    assert words in (ROOT / "docs" / "does_it_win.md").read_text(encoding="utf-8")


def test_what_choosing_says_of_the_gain_is_in_the_paper_s_tables():
    last = {}
    for cell in read_log_likelihoods():
        values = last.setdefault((cell.table, cell.n_hidden, cell.c), {})
        values.setdefault(cell.epoch, {})[cell.gain] = None if cell.misprint else cell.mean
    ends = [epochs[max(epochs)] for epochs in last.values()]
    near = sum(values[1.0] >= max(v for v in values.values() if v is not None) - 0.1001 for values in ends)
    whole = [values for values in ends if None not in values.values()]
    up, down = ([values[1.0] - values[gain] for values in whole] for gain in (4.0, 0.25))
    worse = sum(values[4.0] < values[0.25] for values in whole)
    text = " ".join((ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").split())
    assert (
        f"In {near} of the {len(ends)} settings the theory's scale is the best of the five or within" in text
    )
    assert f"Too large is worse than too small, in {worse} of {len(whole)} " in text
    assert f"a factor of 4 up costs {min(up):.2f} to {max(up):.0f} nats, a factor of 4 down" in text
    assert f"a factor of 4 down {abs(min(down)):.0f} to {max(down):.0f}." in text


def largest(seconds, beside=None, **options):
    """The most units of the smaller layer that can be summed in that time, on one thread."""
    n = 1
    while estimate_seconds(beside or n + 1, n + 1, **options) <= seconds:
        n += 1
    return n


def test_limits_of_exact_sums_are_about_those_of_the_code():
    """The speed of the machine is measured, and a factor of two is one unit: two units are allowed."""
    train, beside = (largest(SECONDS_CHEAP, n) for n in (None, 784))
    alone, alone_beside = (largest(SECONDS_ALLOWED, n, gradient=False) for n in (None, 784))
    second = largest(1.0, gradient=False)
    for page, pattern, expected in (
        ("README.md", r"about a second: about (\d+) units, (\d+) beside 784", (train, beside)),
        ("README.md", r"ten minutes: about (\d+) units, (\d+) beside 784", (alone, alone_beside)),
        ("docs/start.md", r"\(about (\d+) units in the smaller layer, (\d+) beside 784\)", (train, beside)),
        ("docs/start.md", r"ten minutes: about (\d+) units .*?, (\d+) beside 784", (alone, alone_beside)),
        (
            "docs/likelihood.md",
            r"second at about (\d+) units .*? ten minutes at about (\d+)",
            (second, alone),
        ),
        ("docs/choosing.md", r"`train` goes to about (\d+) \|", (train,)),
        ("docs/choosing.md", r"exact up to about (\d+) units in about a second", (second,)),
    ):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        found = re.search(pattern, text)
        assert found, (page, pattern)
        for said, real in zip(found.groups(), expected, strict=True):
            assert abs(int(said) - real) <= 2, (page, said, real)


def test_the_gain_for_very_sparse_bits_is_that_of_the_records():
    behind = {}
    for name in ("toy", "drybean", "digits"):
        part = [r for r in Store(RESULTS / "win" / f"{name}_sparse.jsonl").records() if r.c == -7.5]
        assert len({setting_of(r) for r in part}) == 1
        (starts,) = group_runs(part).values()
        last = max(part[0].epochs)
        half, root = (
            values_at(
                next(v for s, v in starts.items() if s.scheme == BETA_MAX.scheme and abs(s.gain - g) < 1e-3),
                last,
            )
            for g in (0.5, 0.7071)
        )
        behind[name] = paired_difference(half, root).mean
    assert behind["toy"] < 0.005
    assert behind["drybean"] < 0.005
    text = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert (
        f"at c = -7.5 1/2 is {behind['digits']:.2f} nats better than 0.7 on digits and no better on toy"
        in text
    )
    assert "or c is below -5" not in text


def test_claims_that_were_wrong_are_gone():
    text = " ".join(
        (ROOT / name).read_text(encoding="utf-8")
        for name in (
            "README.md",
            "docs/differences.md",
            "docs/reproduction.md",
            "docs/index.md",
            "results/findings.md",
        )
    )
    for phrase in (
        "Every table and figure of M. Yasuda",
        "best of the five gains in 17",
        "two standard errors as the bar",
        "would be three to ten times as large",
    ):
        assert phrase not in text
    for assumption in (
        "independently with probability 0.15",
        "0.9, 0.999 and 1e-8",
        "hidden layer is summed out",
    ):
        assert assumption in text


def test_the_summary_of_does_it_win_has_the_numbers_of_its_tables():
    text = (ROOT / "docs" / "does_it_win.md").read_text(encoding="utf-8")
    losses = {}
    for line in text.partition("<!-- table: losses -->")[2].partition("<!-- end -->")[0].splitlines()[2:]:
        if line.startswith("| ") and "---" not in line:
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            losses[name] = [float(cell) for cell in cells[2:4]]  # held-out points: mean, worst
    summary = text.partition("## In short")[2].partition("\n## ")[0]
    rows = {
        (first.strip(), biases.strip()): [float(number) for number in re.findall(r"[\d.]+", cell)]
        for first, biases, cell in re.findall(
            r"^\| ([^|]+)\| (from data|zero) \|([^|]+)\|$", summary, flags=re.M
        )
    }
    names = {("D-Wave's default", "zero"): "d-wave", ("Hopfield-type", "from data"): "hopfield"}
    names |= {("0.01", "zero"): "hinton", ("0.01", "from data"): "hinton + data"}
    for key, numbers in rows.items():
        label = names.get(key) or f"{key[0]} + data"
        if "," in key[0]:
            several = [losses[name] for name in ("he", "β<sub>max</sub>", "xavier", "lecun")]
            means, worst = zip(*several, strict=True)
            assert numbers == [min(means), max(means), round(min(worst)), round(max(worst))]
        else:
            assert numbers[0] in (losses[label][0], round(losses[label][0])), key
            assert numbers[1:] in ([round(losses[label][1])], []), key
    assert len(rows) == 7
