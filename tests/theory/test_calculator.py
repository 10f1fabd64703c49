"""The calculator of the site against the library: in headless Chromium, and its solver alone in Node."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

import paramagnet as pm
from paramagnet.cli.schemes_command import show_ratio
from paramagnet.package_scales import PACKAGE_DEFAULTS
from paramagnet.schemes import He, Hinton, LeCun, Xavier
from paramagnet.theory.formula_table import NANO

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "site" / "calculator"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NODE = shutil.which("node")
# Where a browser was installed for these tests, not finding it is a failure.
REQUIRED = os.environ.get("PARAMAGNET_BROWSER") == "required"
needs_chromium = pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="no chromium is installed")
ENGINES = [
    pytest.param("chromium", marks=needs_chromium),
    pytest.param("node", marks=pytest.mark.skipif(NODE is None, reason="no node is installed")),
]
BETAS = (0.01, 0.7, 1.9, 5.0)
CLOSE = 1e-8  # what is asked for, relatively; reached is 1e-11


def draw_cases(seed: int, counts: dict[tuple[str, str, str], int]) -> list[list[object]]:
    """Random machines: unit types, layer sizes up to 4000, hidden bias."""
    rng = np.random.default_rng(seed)
    cases = []
    for (visible, hidden, bias), number in counts.items():
        low, high = {"none": (0.0, 0.0), "usual": (-9.0, 3.0), "large": (3.0, 8.0)}[bias]
        for _ in range(number):
            n, m = (int(size) for size in np.exp(rng.uniform(np.log(5), np.log(4000), 2)))
            cases.append([visible, hidden, n, m, float(rng.uniform(low, high))])
    return cases


FAST = {
    ("spin", "bit", "usual"): 160, ("spin", "spin", "none"): 20, ("bit", "spin", "none"): 16,
    ("spin", "spin", "usual"): 2, ("bit", "spin", "usual"): 1, ("bit", "bit", "none"): 1,
}  # fmt: skip
SLOW = {
    ("spin", "bit", "usual"): 100, ("spin", "bit", "large"): 25, ("spin", "spin", "usual"): 25,
    ("bit", "spin", "usual"): 25, ("bit", "bit", "usual"): 25,
}  # fmt: skip
EDGES = [
    ["spin", "bit", 1, 1, 0.0],
    ["spin", "bit", 10_000_000, 1, -100.0],
    ["spin", "bit", 10_000_000, 1, 2.0],
    ["spin", "bit", 1, 10_000_000, 0.0],
    ["spin", "bit", 1, 10_000_000, 3.0],
    ["spin", "bit", 1, 10_000_000, -30.0],  # no maximum
    ["spin", "bit", 1, 1000, -30.0],  # a jump
    ["spin", "bit", 10, 10, -30.0],  # replica symmetry broken
    ["spin", "bit", 20, 1, -10.0],  # corners of the explicit formula
    ["spin", "bit", 20, 1, 2.0],
    ["spin", "bit", 1, 20, -10.0],
    ["spin", "bit", 1, 20, 2.0],
    ["spin", "bit", 1, 10, 5.0],  # a higher maximum further on
    ["spin", "spin", 10_000_000, 1, 0.0],
    ["spin", "spin", 1, 10_000_000, 0.0],
    ["spin", "spin", 100, 100, 1e-7],  # as steep as it gets
    ["bit", "spin", 1, 10_000_000, 0.0],
    ["bit", "bit", 100, 100, -1.0],
]
PAIRS = [("spin", "bit"), ("spin", "spin"), ("bit", "spin"), ("bit", "bit")]
FURTHER = [
    [*pair, 100, m, c]
    for pair, biases in (
        (("categorical(2)", "bit"), (0.0, -3.0)),
        (("categorical(4)", "bit"), (0.0,)),
        (("categorical(21)", "bit"), (0.0, -2.0)),
        (("categorical(3)", "spin"), (0.0,)),
        (("categorical(4)", "relu"), (0.0, 0.7)),
        (("spin", "relu"), (0.0, -1.5, 2.0)),
        (("bit", "relu"), (0.0,)),
        (("spin", "gaussian"), (0.0,)),
        (("gaussian", "spin"), (0.0,)),
        (("categorical(4)", "gaussian"), (0.0,)),
    )
    for c in biases
    for m in (64, 450)
]
GROUPS = {
    "random": draw_cases(1, FAST),
    "edges": EDGES,
    "tiny": [["spin", "spin", 100, 70, 0.99e-7], ["spin", "spin", 100, 70, 1e-7]],
    "curve": [[*pair, 100, m, c, BETAS] for pair in PAIRS for m, c in ((64, 0.0), (230, -1.5))],
    "formula": [["spin", "bit", 784, 500, -5.0], ["spin", "bit", 784, 500, 2.1], ["spin", "bit", 1, 21, 0.0]],
    "snippets": [[*pair, 30, 20, -1.5] for pair in PAIRS],
    "further": FURTHER,
    "labels": [["categorical(4)", "bit", 30, 20, -1.5]],
}


@pytest.fixture(scope="module")
def browse(tmp_path_factory):
    """A function from the address's hash to the page's HTML once its scripts have run."""
    profile = tmp_path_factory.mktemp("chromium")

    def dump(fragment: str) -> str:
        assert CHROMIUM is not None, "PARAMAGNET_BROWSER is 'required', but there is no chromium on the PATH"
        run = subprocess.run(
            [
                CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--disable-background-networking", "--no-first-run", f"--user-data-dir={profile}",
                "--host-resolver-rules=MAP * ~NOTFOUND", "--timeout=60000", "--dump-dom",
                f"{(FOLDER / 'index.html').as_uri()}#{fragment}",
            ],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
        return run.stdout

    return dump


def in_chromium(browse, cases):
    page = browse(f"selftest={quote(json.dumps(cases))}")
    found = re.search(r'<pre id="selftest">(.*?)</pre>', page, flags=re.DOTALL)
    return json.loads(html.unescape(found.group(1)))


def run_node(files, code):
    script = "".join((FOLDER / name).read_text("utf-8") for name in files) + code
    run = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(run.stdout)


def in_node(cases):
    script = "".join(
        (FOLDER / name).read_text("utf-8") for name in ("coefficients.js", "units.js", "theory.js")
    )
    script += f"""
    console.log(JSON.stringify({json.dumps(cases)}.map(([visible, hidden, n, m, c, betas]) => {{
      const machine = Theory.makeMachine(visible, hidden, m / n, c);
      return {{ ...Theory.findMaximum(machine), formula: Theory.formula(m / n, c),
                curve: (betas || []).map((beta) => Theory.measure(machine, beta).value) }};
    }})));
    """
    run = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, timeout=300, check=True)
    return {"answers": json.loads(run.stdout)}


@pytest.fixture(scope="module")
def calculate(browse):
    """A function from an engine and the name of a group of cases to what the calculator computes for them.

    All groups are computed in one go: starting a browser takes longer than that.
    """

    @cache
    def everything(engine):
        cases = [case for group in GROUPS.values() for case in group]
        return in_chromium(browse, cases) if engine == "chromium" else in_node(cases)

    def pick(engine, name):
        names = list(GROUPS)
        start = sum(len(GROUPS[other]) for other in names[: names.index(name)])
        return everything(engine)["answers"][start : start + len(GROUPS[name])]

    pick.everything = everything
    return pick


@cache
def expect(visible, hidden, n, m, c):
    return pm.theory.find_beta_max(m / n, visible=visible, hidden=hidden, c=c)


def assert_equal(answers, cases):
    assert len(answers) == len(cases)
    for answer, case in zip(answers, cases, strict=True):
        expected = expect(*case)
        assert answer["status"] == expected.status, (case, answer, expected)
        if expected.status not in ("none", "jump"):
            assert answer["beta"] == pytest.approx(expected.beta, rel=CLOSE), case
            assert answer["stability"] == pytest.approx(expected.stability, abs=1e-7), case


@pytest.mark.parametrize("engine", ENGINES)
def test_two_hundred_random_machines(engine, calculate):
    assert len(GROUPS["random"]) == 200
    assert_equal(calculate(engine, "random"), GROUPS["random"])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_machines_that_take_the_library_long(engine, browse):
    cases = draw_cases(2, SLOW)
    found = in_chromium(browse, cases) if engine == "chromium" else in_node(cases)
    assert_equal(found["answers"], cases)


@pytest.mark.parametrize("engine", ENGINES)
def test_edges_of_the_domain(engine, calculate):
    answers = calculate(engine, "edges")
    assert_equal(answers, EDGES)
    statuses = {answer["status"] for answer in answers}
    assert statuses >= {"maximum", "transition", "none", "jump", "unstable", "rival"}


@pytest.mark.parametrize("engine", ENGINES)
def test_gaussian_categorical_and_relu_units(engine, calculate):
    answers = calculate(engine, "further")
    assert_equal(answers, FURTHER)
    statuses = {answer["status"] for answer in answers}
    assert statuses == {"maximum", "transition", "edge (continuous)", "edge (condensation)"}


@pytest.mark.skipif(NODE is None, reason="no node is installed")
def test_functions_of_the_normal_distribution_have_all_digits():
    """On both sides of the limits between series and continued fraction, at 2.5 and -5."""
    special = pytest.importorskip("scipy.special")
    from paramagnet.half_line import half_moments

    points = [-30.0, -6.0, -5.01, -4.99, -2.51, -2.49, -1.0, 0.0, 0.3, 2.49, 2.51, 9.0]
    code = f"console.log(JSON.stringify({points}.map((x) => [Units.normal(x), ...Units.halfMoments(x)])));"
    found = np.array(run_node(["units.js"], code))
    np.testing.assert_allclose(found[:, 0], special.ndtr(points), rtol=1e-12)
    np.testing.assert_allclose(found[:, 1:].T, half_moments(np.array(points)), rtol=2e-12)


@pytest.mark.skipif(NODE is None, reason="no node is installed")
@pytest.mark.parametrize(
    ("n", "m", "pair"), [(784, 500, ("spin", "bit")), (40, 90, ("categorical(4)", "spin"))]
)
def test_scales_over_ours_are_one_number(n, m, pair):
    """The calculator, the table of `paramagnet schemes`, the page of packages and the figure."""
    reports = {r.name.lower(): r for r in pm.compare_schemes(n, m, visible=pair[0], hidden=pair[1])}
    ours = reports.pop("layer-correlation")
    code = f"console.log(JSON.stringify(rateScales({n}, {m}, {ours.sigma!r}, () => NaN)));"
    rated = run_node(["coefficients.js", "units.js", "theory.js", "scales.js"], code)
    assert {entry["name"].lower() for entry in rated} == set(reports)
    for entry in rated:
        report = reports[entry["name"].lower()]
        assert entry["sigma"] == pytest.approx(report.sigma, rel=1e-12)
        assert entry["ratio"] == pytest.approx(report.to_ours, rel=1e-8), entry["name"]
        if entry.get("units") == "bit-bit":
            assert entry["height"] == pytest.approx(abs(report.correlation), rel=1e-6)


def test_pages_and_figure_have_the_same_numbers():
    reports = {r.name: r for r in pm.compare_schemes(784, 500)}
    page = (DOCS / "against.md").read_text("utf-8")
    for report in reports.values():
        numbers = f"{report.sigma:.3g} | {show_ratio(report.to_ours)}"
        row = f"| {report.name} | {report.visible}, {report.hidden} | {numbers} |"
        assert row in page, row
    assert f"{reports['rbms 0.5'].to_ours:.2g}" == "0.00079"
    assert f"{reports['D-Wave plugin 0.4'].to_ours:.2f}" == "2.50"
    path = Path(__file__).parents[2] / "benchmarks" / "overview_figure.py"
    spec = importlib.util.spec_from_file_location("overview_figure", path)
    figure = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figure)
    names = {figure.NAMES.get(name, name): report for name, report in reports.items()}
    for place, name in figure.scales():
        assert place / pm.weight_std(784, 500) == pytest.approx(names[name].to_ours, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_spin_bias_too_small_to_matter_is_none(engine, calculate):
    below, at = calculate(engine, "tiny")
    assert (below["status"], at["status"]) == ("transition", "maximum")
    transition = pm.beta_max(0.7, hidden="spin")
    assert below["beta"] == pytest.approx(transition, rel=1e-14)
    assert at["beta"] == pytest.approx(transition, rel=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_curve_is_that_of_the_library(engine, calculate):
    for answer, case in zip(calculate(engine, "curve"), GROUPS["curve"], strict=True):
        visible, hidden, n, m, c, _ = case
        expected = pm.theory.layer_correlation_slope(
            np.array(BETAS), m / n, visible=visible, hidden=hidden, c=c
        )
        np.testing.assert_allclose(answer["curve"], expected, rtol=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_formula_starts_the_search_where_it_holds(engine, calculate):
    inside, *outside = calculate(engine, "formula")
    assert inside["formula"] == pytest.approx(pm.theory.beta_max_formula(500 / 784, -5.0), abs=1e-12)
    assert all(answer["formula"] is None for answer in outside)


def test_coefficients_are_those_of_the_library():
    text = (FOLDER / "coefficients.js").read_text("utf-8")
    table = json.loads(re.sub(r",\s*\]$", "]", text[text.index("= [") + 2 :].strip().rstrip(";")))
    assert tuple(map(tuple, table)) == NANO


@needs_chromium
def test_scales_are_those_of_the_library(calculate):
    scales = calculate.everything("chromium")["scales"]
    expected = {kind.__name__.lower(): kind().scale(784, 500) for kind in (Xavier, He, LeCun, Hinton)}
    expected |= {package.name.lower(): package.scale(784, 500) for package in PACKAGE_DEFAULTS}
    assert {name.lower(): value for name, value in scales.items()} == pytest.approx(expected, rel=1e-14)


def test_units_of_packages_are_those_of_the_library():
    text = (FOLDER / "scales.js").read_text("utf-8")
    for package in PACKAGE_DEFAULTS:
        units = f'units: "{package.visible}-{package.hidden}", ' if package.visible else ""
        assert f'{{ name: "{package.name}", {units}scale:' in text


def test_small_self_contained_and_linked():
    files = sorted(FOLDER.iterdir())
    assert sum(path.stat().st_size for path in files) < 100_000
    page = (FOLDER / "index.html").read_text("utf-8")
    for target in re.findall(r'(?:src|href)="([^"]+)"', page):
        if target.startswith("../"):  # pages of the site
            assert (DOCS / target.removeprefix("../").replace(".html", ".md")).is_file(), target
        elif not target.startswith("data:"):
            assert (FOLDER / target).is_file(), target
    for path in files:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, path.name
        assert "https:" not in text, path.name
    assert 'href="calculator/index.html"' in (DOCS / "index.md").read_text("utf-8")


def text_of(page: str, name: str) -> str:
    """The text of the element of that id (which holds no element of its own kind)."""
    _, content = re.search(rf'<(\w+)[^>]*\bid="{name}"[^>]*>(.*?)</\1>', page, flags=re.DOTALL).groups()
    return html.unescape(re.sub(r"<[^>]+>", " ", content)).strip()


def is_hidden(page: str, name: str) -> bool:
    tag = re.search(rf'<\w+[^>]*\bid="{name}"[^>]*>', page).group()
    return re.search(r"\bhidden\b(?!=\")|\bhidden=\"\"", tag.replace(f'id="{name}"', "")) is not None


@needs_chromium
def test_page_shows_the_result(browse):
    page = browse("n=784&m=500&visible=spin&hidden=bit&c=-5")
    sigma = pm.weight_std(784, 500, hidden_bias=-5.0)
    assert float(text_of(page, "sigma")) == pytest.approx(sigma, rel=1e-5)
    assert float(text_of(page, "beta")) == pytest.approx(3.428338, abs=1e-6)
    assert text_of(page, "notes") == ""
    assert is_hidden(page, "problem")
    assert not is_hidden(page, "answer")
    for scheme in ("Xavier", "He", "LeCun", "Hinton", "PyDeep", "D-Wave", "of this page"):
        assert scheme in text_of(page, "scales")
    assert page.count('class="badge') >= 2 * 10  # in the chart and in the table
    assert "hidden_bias=-5.0" in text_of(page, "code")


@needs_chromium
@pytest.mark.parametrize(
    ("given", "units", "words"),
    [
        ("visible=categorical&q=21&hidden=bit", ("categorical(21)", "bit"), ""),
        ("visible=categorical&q=21&hidden=spin", ("categorical(21)", "spin"), "for more than four states"),
        ("visible=spin&hidden=relu", ("spin", "relu"), "the stability edge"),
        ("visible=spin&hidden=gaussian", ("spin", "gaussian"), ""),
    ],
)
def test_page_shows_further_units(browse, given, units, words):
    page = browse(f"n=31&m=100&{given}")
    sigma = pm.weight_std(31, 100, visible=units[0], hidden=units[1])
    assert float(text_of(page, "sigma")) == pytest.approx(sigma, rel=1e-5)
    assert words in text_of(page, "notes")
    assert is_hidden(page, "problem")
    assert is_hidden(page, "q-field") == (units[0] == "spin")
    assert f'visible="{units[0]}", hidden="{units[1]}"' in text_of(page, "code")
    assert "NaN" not in text_of(page, "result") + text_of(page, "scales")


@needs_chromium
def test_fewer_relu_units_than_visible_ones_are_warned_of(browse):
    page = browse("n=100&m=31&visible=bit&hidden=relu")
    assert "single ReLU units grow without bound" in text_of(page, "notes")
    assert float(text_of(page, "sigma")) == pytest.approx(0.2, rel=1e-5)  # 2/sqrt(n)


@needs_chromium
@pytest.mark.parametrize("q", ["1", "2.5", "1001", "", "x"])
def test_bad_numbers_of_states_are_explained_in_their_place(browse, q):
    page = browse(f"visible=categorical&q={q}")
    assert text_of(page, "q-error") != ""
    assert re.search(r'<input id="q"[^>]*aria-invalid="true"', page)
    assert is_hidden(page, "answer")
    assert not is_hidden(page, "problem")


@needs_chromium
@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (
            {"n": "0", "m": "2.5", "c": "NaN"},
            {
                "n": "A layer needs at least one unit, got 0.",
                "m": "The number of units must be whole, got 2.5.",
                "c": "“NaN” is not a number; enter one like 0 or -5.",
            },
        ),
        (
            {"n": "-3", "m": "", "c": "Infinity"},
            {
                "n": "A layer needs at least one unit, got -3.",
                "m": "Enter a number, for example 500.",
                "c": "“Infinity” is not a number; enter one like 0 or -5.",
            },
        ),
        (
            {"n": "1e12", "m": "1,000", "c": "0,5"},
            {
                "n": "At most 10 000 000 units, got 1e12.",
                "m": "Write it without separators: 1000.",
                "c": "Write it with a point: 0.5.",
            },
        ),
        (
            {"n": "1e3", "c": "\u2212101"},
            {"c": "The bias must lie between \u2212100 and 100, got \u2212101."},
        ),
    ],
)
def test_bad_input_is_explained_in_its_place(browse, given, messages):
    page = browse("&".join(f"{name}={quote(value)}" for name, value in given.items()))
    for name in ("n", "m", "c"):
        assert text_of(page, f"{name}-error") == messages.get(name, "")
        assert bool(re.search(rf'<input id="{name}"[^>]*aria-invalid="true"', page)) == (name in messages)
    assert not is_hidden(page, "problem")
    for name in ("answer", "use", "curve"):
        assert is_hidden(page, name)


@needs_chromium
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("visible=bit&hidden=bit", "No trustworthy criterion for bits in both layers"),
        ("visible=bit&hidden=spin&c=1", "No trustworthy criterion for bit visible units and biased spin"),
        pytest.param("visible=bit&hidden=spin&n=10", "layers exchanged", marks=pytest.mark.slow),
        pytest.param("visible=spin&hidden=spin&n=10", "theory is for large layers", marks=pytest.mark.slow),
        ("n=100&m=1000&c=-9", "Replica symmetry is broken at the maximum"),
        pytest.param("n=100&m=300&c=5", "higher maximum at β =", marks=pytest.mark.slow),
    ],
)
def test_doubtful_results_say_so(browse, given, words):
    page = browse(given)
    assert words in text_of(page, "notes")
    assert not is_hidden(page, "answer")


@pytest.fixture(scope="module")
def snippets(calculate):
    """Code by unit types and library, and its sigma."""
    answers = calculate("chromium", "snippets")
    return {
        pair: (answer["snippets"], answer["beta"] / 50**0.5)
        for pair, answer in zip(PAIRS, answers, strict=True)
    }


def run_snippet(code: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(code, names)
    return names


def expected_machine(pair, sigma):
    weights = np.random.default_rng(0).normal(0.0, sigma, size=(30, 20))
    return pm.RBM(weights, np.zeros(30), np.full(20, -1.5), *pair)


@needs_chromium
def test_snippets_of_numpy_and_the_package_give_one_machine(snippets):
    codes, sigma = snippets["spin", "bit"]
    expected = expected_machine(("spin", "bit"), sigma)
    plain = run_snippet(codes["NumPy"])
    np.testing.assert_allclose(plain["weights"], expected.weights, rtol=1e-12)
    assert plain["visible_bias"].tolist() == [0.0] * 30
    assert plain["hidden_bias"].tolist() == [-1.5] * 20
    rbm = run_snippet(codes["paramagnet"])["rbm"]
    np.testing.assert_allclose(rbm.weights, expected.weights, rtol=1e-8)
    assert (str(rbm.visible), str(rbm.hidden), rbm.hidden_bias[0]) == ("spin", "bit", -1.5)


@needs_chromium
def test_snippets_of_labels_are_in_the_zero_sum_gauge(calculate):
    (answer,) = calculate("chromium", "labels")
    plain = run_snippet(answer["snippets"]["NumPy"])
    rbm = run_snippet(answer["snippets"]["paramagnet"])["rbm"]
    np.testing.assert_allclose(plain["weights"], rbm.weights, rtol=1e-7, atol=1e-12)
    assert np.abs(rbm.weights_by_state.sum(axis=1)).max() < 1e-14
    assert plain["visible_bias"].shape == (120,)
    for library, module in (("PyTorch", "torch"), ("JAX", "jax")):
        pytest.importorskip(module)
        weights = np.asarray(run_snippet(answer["snippets"][library])["weights"])
        assert np.abs(weights.reshape(30, 4, 20).sum(axis=1)).max() < 1e-5


@needs_chromium
@pytest.mark.parametrize(("library", "module"), [("PyTorch", "torch"), ("JAX", "jax")])
def test_snippets_of_other_libraries_run(snippets, library, module):
    pytest.importorskip(module)
    codes, sigma = snippets["spin", "bit"]
    made = run_snippet(codes[library])
    weights = np.asarray(made["weights"])
    assert weights.shape == (30, 20)
    assert weights.std() == pytest.approx(sigma, rel=0.1)  # 600 draws: 3 %
    assert np.asarray(made["hidden_bias"]).tolist() == [-1.5] * 20
    assert np.asarray(made["visible_bias"]).tolist() == [0.0] * 30


@needs_chromium
def test_snippets_of_scikit_learn_are_the_same_machine_in_bits(snippets):
    pytest.importorskip("sklearn")
    for pair, (codes, sigma) in snippets.items():
        expected = expected_machine(pair, sigma).to_bits()
        rbm = run_snippet(codes["scikit-learn"])["rbm"]
        np.testing.assert_allclose(rbm.components_.T, expected.weights, rtol=1e-12)
        np.testing.assert_allclose(rbm.intercept_visible_, expected.visible_bias, atol=1e-12)
        np.testing.assert_allclose(rbm.intercept_hidden_, expected.hidden_bias, atol=1e-12)
        before = rbm.components_.copy()
        rbm.partial_fit(np.random.default_rng(0).integers(0, 2, size=(10, 30)).astype(float))
        assert 0.0 < np.abs(rbm.components_ - before).max() < 0.2  # learned, from these


@needs_chromium
def test_no_maximum_is_said_and_no_code_offered(browse):
    page = browse("n=1&m=1000&c=-30")
    assert "jumps (a first-order transition)" in text_of(page, "problem")
    assert is_hidden(page, "answer")
    assert is_hidden(page, "use")
    assert not is_hidden(page, "curve")
