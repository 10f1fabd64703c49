"""What the functions of the data refuse in words: masked arrays, other kinds of values, no paths."""

import numpy as np
import pytest

import paramagnet as pm

SPINS = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]])
POINTS = SPINS + np.arange(12.0).reshape(4, 3)
RULE = pm.fit_binarizer(POINTS)
DRAWN = pm.fit_binarizer(POINTS, "stochastic")

TAKERS = {
    "fit_binarizer": pm.fit_binarizer,
    "apply": RULE.apply,
    "apply, stochastic": DRAWN.apply,
    "thresholds_of": RULE.thresholds_of,
    "partition": lambda data: RULE.partition(data, RULE.thresholds),
    "log_likelihood_bounds": pm.data.log_likelihood_bounds,
}
REFUSED = {
    "masked": (np.ma.masked_array(SPINS, SPINS < 0), r"must not be a masked array.*\.filled"),
    "masked, nothing hidden": (np.ma.masked_array(SPINS), "must not be a masked array"),
    "rows masked": ([np.ma.masked_array(row, row < 0) for row in SPINS], "must not be a masked array"),
    "NaN": (np.where(SPINS > 0, np.nan, SPINS), r"must be finite, found 6 .* row 0, column 0 \(nan\).*Drop"),
    "infinite": (np.where(SPINS > 0, np.inf, SPINS), r"must be finite"),
    "text": (SPINS.astype(str), r"must be an array of real numbers, got dtype <U.*np\.asarray"),
    "complex": (SPINS + 0j, "must be an array of real numbers, got dtype complex128"),
    "dates": (np.full((4, 3), np.datetime64("2020-01-01")), "real numbers, got dtype datetime64"),
    "objects": (SPINS.astype(str).astype(object), "real numbers, got '1.0' among its elements"),
    "ragged": ([[1.0, 2.0], [3.0]], r"with rows of equal length, got \[\[1.0, 2.0\], \[3.0\]\]"),
    "nothing": (None, "must be an array of real numbers, got None"),
    "empty": (np.empty((0, 3)), r"must have shape \(n_points, n_features\) .* got shape \(0, 3\)"),
    "a vector": (SPINS[0], r"got shape \(3,\)"),
    "a cube": (SPINS[None], r"got shape \(1, 4, 3\)"),
    "longer floats": (SPINS * np.longdouble("1e4000"), "must be finite"),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("kind", REFUSED)
def test_tables_are_checked(taker, kind):
    data, words = REFUSED[kind]
    with pytest.raises(ValueError, match=f"`data` .*{words}|`data` {words}"):
        TAKERS[taker](data)


def test_sparse_tables_are_taken():
    from scipy.sparse import csr_array

    assert np.array_equal(RULE.apply(csr_array(POINTS)), RULE.apply(POINTS))
    assert (
        pm.data.log_likelihood_bounds(csr_array(SPINS)).entropy
        == pm.data.log_likelihood_bounds(SPINS).entropy
    )


def test_tensors_are_taken_with_and_without_gradients():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.tensor(POINTS, requires_grad=True)
    assert np.array_equal(pm.fit_binarizer(tensor).thresholds, RULE.thresholds)
    assert np.array_equal(RULE.apply(tensor), RULE.apply(POINTS))
    assert np.array_equal(pm.fit_binarizer(tensor.to(torch.bfloat16)).thresholds, RULE.thresholds)


def test_frames_are_taken():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert np.array_equal(RULE.apply(pandas.DataFrame(POINTS)), RULE.apply(POINTS))


@pytest.mark.parametrize("high", [SPINS, [[True]], np.ma.masked_array(SPINS > 0), None])
def test_levels_need_a_partition(high):
    with pytest.raises(ValueError, match="`high` must be an array of truth values"):
        RULE.levels_of(high)


# Bounds


@pytest.mark.parametrize("levels", [(-1.0, 1.0), (0.0, 1.0), (-3.5, 0.0), (0.0, 255.0)])
def test_bounds_of_two_values(levels):
    data = np.where(SPINS > 0, levels[1], levels[0])
    bounds = pm.data.log_likelihood_bounds(data)
    assert bounds.entropy == pytest.approx(-np.log(4.0))
    assert bounds.independent == pytest.approx(-3.0 * np.log(2.0))
    assert pm.data.log_likelihood_bounds(data.astype(np.int64).tolist()).entropy == bounds.entropy


def test_bounds_of_one_value_are_zero():
    bounds = pm.data.log_likelihood_bounds(np.ones((5, 2)))
    assert (bounds.independent, bounds.entropy) == (0.0, 0.0)


@pytest.mark.parametrize("kind", [np.float64, np.int8])
def test_bounds_refuse_a_third_value(kind):
    """Spins among bits, for one."""
    data = np.array([[0, 1], [1, -1], [0, 1]], dtype=kind)
    with pytest.raises(
        ValueError, match=r"`data` must have at most two values, got -1, 0 and 1\. Binarize them"
    ):
        pm.data.log_likelihood_bounds(data)
    with pytest.raises(ValueError, match="got 0, 2 and 255"):
        pm.data.log_likelihood_bounds(np.array([[0, 255], [2, 255]], dtype=np.uint8))


# Other arguments


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"per": ["feature"]}, "`per` must be one of 'feature', 'point', 'all', got"),
        ({"per": np.array(["feature", "all"])}, "`per` must be one of"),
        ({"grey_range": 3.0}, "`grey_range` must be two numbers, black below white, got 3.0"),
        ({"grey_range": (1.0, 2.0, 3.0)}, "`grey_range` must be two numbers"),
        ({"grey_range": (2.0, 1.0)}, "`grey_range` must be two numbers"),
        ({"grey_range": ("a", 1.0)}, "`grey_range` must be"),
    ],
)
def test_options_of_the_fit_are_checked(options, words):
    with pytest.raises(ValueError, match=words):
        pm.fit_binarizer(POINTS, "stochastic", **options)


@pytest.mark.parametrize("path", [None, 3, 1.5, b"abc", ["a.csv"], object(), "a\0b", "\ud800", np.zeros(2)])
def test_paths_are_checked(path):
    for call in (pm.read_data, pm.data.read_table, pm.data.Binarizer.load, RULE.save):
        with pytest.raises(ValueError, match="`path` must"):
            call(path)
    with pytest.raises(ValueError, match="`name` must"):
        pm.load_dataset(path)
    if path is not None:
        with pytest.raises(ValueError, match="`data_dir` must"):
            pm.load_dataset("toy", data_dir=path)


def test_names_that_are_too_long_are_refused():
    for call in (pm.read_data, pm.data.read_table, pm.data.Binarizer.load):
        with pytest.raises(
            ValueError, match="`path` must have names of at most 255 bytes, got one of 100000"
        ):
            call("x" * 100_000)
    with pytest.raises(ValueError, match="`name` must have names of at most 255 bytes"):
        pm.load_dataset("x" * 100_000)
    with pytest.raises(ValueError, match="`path` must be at most 4095 bytes long"):
        pm.read_data("x/" * 10_000)
