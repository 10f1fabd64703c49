"""Thresholds against an exact oracle and scikit-image; the binarizer, its file, and what it refuses."""

import json
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from paramagnet.data import thresholds as thresholds_module
from paramagnet.data.binarize import Binarizer, ConstantDataWarning, fit_binarizer
from paramagnet.data.thresholds import fit_rows, otsu_rows
from paramagnet.kernels.otsu import byte_thresholds
from paramagnet.units import BIT, SPIN, BinaryUnit

RNG = np.random.default_rng(5)
GREY = RNG.integers(0, 256, size=(40, 30)).astype(np.uint8)


def variance_between(values, n_low):
    """Of the split of sorted values after the first ``n_low``; exact."""
    values = [Fraction(float(value)) for value in values]
    n = len(values)
    low, high = sum(values[:n_low]) / n_low, sum(values[n_low:]) / (n - n_low)
    return Fraction(n_low * (n - n_low), n * n) * (low - high) ** 2


def otsu_oracle(values):
    """Threshold and variance by trying all splits in rational numbers; the lowest of equals."""
    values = sorted(float(value) for value in values)
    splits = [i for i in range(1, len(values)) if values[i - 1] != values[i]]
    if not splits:
        return None, None
    best = max(splits, key=lambda i: (variance_between(values, i), -i))
    return (Fraction(values[best - 1]) + Fraction(values[best])) / 2, variance_between(values, best)


def bytes_of(rows):
    rows = np.ascontiguousarray(rows, dtype=np.uint8)
    result, constant = np.empty(len(rows)), np.empty(len(rows), bool)
    byte_thresholds(rows, result, constant)
    assert np.array_equal(constant, rows.min(axis=1) == rows.max(axis=1))
    return result


def sorted_otsu(rows):
    return otsu_rows(np.sort(np.asarray(rows, dtype=float), axis=1))[0]


# Otsu


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        ([0, 1], 0.5),
        ([0, 0, 0, 1], 0.5),
        ([0, 1, 10, 11], 5.5),
        ([0, 1, 2], 0.5),  # both splits are equally good: the lower one
        ([0, 1, 2, 3], 1.5),
        ([7, 7, 7, 200], 103.5),
        ([5, 5, 5], 5.0),
        ([9], 9.0),
        ([255, 255, 0, 0, 0, 128], 64.0),  # 0 | 128 255: variance 2 against 1.8
    ],
)
def test_otsu_of_a_few_values(values, threshold):
    assert bytes_of([values]).tolist() == [threshold]
    assert sorted_otsu([values]).tolist() == [threshold]


@settings(deadline=None)
@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 3), st.integers(1, 13)), elements=st.integers(0, 255)))
def test_both_ways_equal_the_oracle_on_bytes(rows):
    for row, ours, other in zip(rows, bytes_of(rows), sorted_otsu(rows), strict=True):
        threshold, _ = otsu_oracle(row)
        assert ours == other == (row[0] if threshold is None else threshold)


@settings(deadline=None)
@given(hnp.arrays(np.uint8, st.integers(2, 12), elements=st.integers(0, 3)))
def test_ties_take_the_lowest_split(row):
    threshold, _ = otsu_oracle(row)
    assert bytes_of([row])[0] == sorted_otsu([row])[0] == (row[0] if threshold is None else threshold)


@settings(deadline=None)
@given(
    hnp.arrays(
        np.float64,
        st.integers(2, 9),
        elements=st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True),
    )
)
def test_any_floats_get_a_split_as_good_as_the_best(row):
    threshold = sorted_otsu([row])[0]
    assert np.isfinite(threshold)
    n_low = int((row <= threshold).sum())
    _, best = otsu_oracle(row)
    if best is None:
        assert threshold == row[0]
        return
    assert 0 < n_low < len(row)
    assert variance_between(np.sort(row), n_low) >= best * (1 - Fraction(1, 10**11))


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e15])
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_scale_and_offset_do_not_matter(offset, scale):
    steps = RNG.integers(0, 50, size=(5, 40)) * 8.0
    partition = steps > sorted_otsu(steps)[:, None]
    moved = (steps + offset) * scale if offset == 0.0 or scale == 1.0 else steps * scale
    assert np.array_equal(moved > sorted_otsu(moved)[:, None], partition)


def test_neighbouring_floats_are_told_apart():
    one = np.nextafter(1.0, 2.0)
    assert sorted_otsu([[one, 1.0, one]])[0] < one
    assert sorted_otsu([[np.nextafter(one, 2.0), one]])[0] < np.nextafter(one, 2.0)
    huge = np.finfo(float).max
    assert sorted_otsu([[-huge, huge, huge]]).tolist() == [0.0]
    assert sorted_otsu([[0.75 * huge, huge]]).tolist() == [0.875 * huge]
    assert sorted_otsu([[0.0, 5e-324]]).tolist() == [0.0]


@pytest.mark.parametrize("levels", [2, 5, 17, 256])
def test_partition_is_that_of_scikit_image(levels):
    filters = pytest.importorskip("skimage.filters", reason="scikit-image is not installed")
    rng = np.random.default_rng(levels)
    images = (rng.beta(0.5, 0.7, size=(60, 97)) * levels).astype(np.uint8)
    images[:, 0], images[:, 1] = 0, levels - 1
    ours = bytes_of(images)
    for image, threshold in zip(images, ours, strict=True):
        assert np.array_equal(image > threshold, image > filters.threshold_otsu(image))


def test_large_tables_take_blocks_and_bytes_in_floats_take_the_kernel(monkeypatch):
    grey = RNG.integers(0, 256, size=(50, 21)).astype(float)
    expected = sorted_otsu(grey)
    monkeypatch.setattr(thresholds_module, "_BLOCK", 64)
    assert np.array_equal(fit_rows(grey + 0.5, "otsu")[0], expected + 0.5)
    assert np.array_equal(fit_rows(grey, "otsu")[0], expected)
    assert np.array_equal(fit_rows(-grey, "otsu")[0] < 0, np.ones(50, bool))


# The binarizer


def test_per_feature_per_point_and_over_all():
    data = GREY.astype(float)
    by_feature, by_point = fit_binarizer(data), fit_binarizer(data, per="point")
    assert np.array_equal(by_feature.thresholds, sorted_otsu(data.T))
    assert np.array_equal(by_feature.apply(data), np.where(data > sorted_otsu(data.T), 1.0, -1.0))
    assert by_point.thresholds is None
    assert np.array_equal(by_point.thresholds_of(data), sorted_otsu(data))
    assert np.array_equal(by_point.apply(data), np.where(data > sorted_otsu(data)[:, None], 1.0, -1.0))
    over_all = fit_binarizer(data, per="all")
    assert over_all.thresholds.tolist() == sorted_otsu(data.reshape(1, -1)).tolist()
    assert np.array_equal(over_all.apply(data[:3]), np.where(data[:3] > over_all.thresholds[0], 1.0, -1.0))


@pytest.mark.parametrize("per", ["feature", "point", "all"])
@pytest.mark.parametrize("method", ["otsu", "median", 99.5, 99.0, -3, 300.0, "stochastic"])
def test_bytes_and_floats_give_the_same(method, per):
    for units in ("spin", "bit"):
        one, other = (
            fit_binarizer(data, method, per=per, units=units) for data in (GREY, GREY.astype(float))
        )
        result = one.apply(GREY, rng=3)
        assert np.array_equal(result, other.apply(GREY.astype(float), rng=3))
        assert np.array_equal(result, one.apply(GREY.astype(float), rng=3))
        assert result.dtype == np.float64
        assert set(np.unique(result)) <= set(one.units.levels)


def test_thresholds_fitted_once_serve_other_data():
    train, test = GREY[:30].astype(float), GREY[30:].astype(float)
    binarizer = fit_binarizer(train)
    assert np.array_equal(binarizer.apply(test), np.where(test > binarizer.thresholds, 1.0, -1.0))
    with pytest.raises(ValueError, match=r"`data` must have 30 columns, those the binarizer was fitted to"):
        binarizer.apply(test[:, :7])


@pytest.mark.parametrize(
    ("values", "threshold"),
    [([1, 2, 3, 10], 2.5), ([1, 2, 3], 2), ([0, 1, 1], 0.5), ([0, 0, 0, 5], 0.0), ([1, 4, 4, 4, 4], 2.5)],
)
def test_median(values, threshold):
    column = np.array([values], dtype=float).T
    binarizer = fit_binarizer(column + 10, "median")
    assert binarizer.thresholds.tolist() == [threshold + 10]
    assert set(np.unique(binarizer.apply(column + 10))) == {-1.0, 1.0}


@pytest.mark.parametrize("method", ["otsu", "median"])
@pytest.mark.parametrize("seed", range(20))
def test_weights_of_points_are_repetitions(method, seed):
    rng = np.random.default_rng(seed)
    n_points = int(rng.integers(2, 12))
    table = rng.integers(0, 6, (n_points, 7)) + 0.5 * rng.integers(0, 2)
    table[0] = np.arange(7) * 1.5  # not a binary table
    counts = rng.integers(0, 4, n_points)
    counts[0] = 1
    again = np.repeat(table, counts, axis=0)
    if len(again) == 1:
        again = np.repeat(again, 2, axis=0)
        counts, table = np.array([1, 1]), again
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantDataWarning)
        found = fit_binarizer(table, method, sample_weight=counts)
        scaled = fit_binarizer(table, method, sample_weight=counts / 7.0)
        wanted = fit_binarizer(again, method)
    np.testing.assert_array_equal(found.thresholds, wanted.thresholds)
    np.testing.assert_array_equal(scaled.thresholds, wanted.thresholds)


def test_weights_that_do_not_fit_are_refused():
    table = np.arange(12.0).reshape(4, 3)
    with pytest.raises(ValueError, match="`sample_weight` must be left out where `per` is not 'feature'"):
        fit_binarizer(table, per="all", sample_weight=np.ones(4))
    with pytest.raises(ValueError, match="`sample_weight` must hold one number for each of the 4 points"):
        fit_binarizer(table, sample_weight=np.ones(3))


def test_fixed_threshold():
    binarizer = fit_binarizer([[0.2, 0.5], [0.7, 0.5]], 0.5, units="bit")
    assert binarizer.apply([[0.2, 0.5], [0.7, 0.5]]).tolist() == [[0, 0], [1, 0]]
    assert "threshold 0.5" in repr(binarizer)


def test_stochastic_draws_have_the_grey_values_as_means():
    row = np.array([[0.0, 64, 128, 255]])
    binarizer = fit_binarizer(row, "stochastic", units="bit", grey_range=(0, 255))
    draws = binarizer.apply(np.repeat(row, 20_000, axis=0), rng=1)
    assert draws.mean(axis=0) == pytest.approx(row[0] / 255, abs=5 * 0.5 / np.sqrt(20_000))
    assert draws[:, 0].max() == 0.0
    assert draws[:, 3].min() == 1.0
    again = binarizer.apply(np.repeat(row, 20_000, axis=0), rng=1)
    assert np.array_equal(draws, again)
    by_feature = fit_binarizer([[1.0, 5], [3.0, 9], [2.0, 7]], "stochastic")
    assert by_feature.grey_range.tolist() == [[1, 5], [3, 9]]
    assert by_feature.apply([[0.0, 10.0], [1.0, 9.0]], rng=0).tolist() == [[-1, 1], [-1, 1]]
    by_point = fit_binarizer([[2.0, 5.0, 5.0]], "stochastic", per="point")
    assert by_point.apply([[2.0, 5.0, 5.0], [7.0, 3.0, 3.0]]).tolist() == [[-1, 1, 1], [1, -1, -1]]


# Constants, and data that are binary already


def test_constant_features_become_low_with_a_warning():
    data = np.array([[1.0, 5, 3], [2.0, 5, 3], [8.0, 5, 3]])
    for method in ("otsu", "median", "stochastic"):
        with pytest.warns(
            ConstantDataWarning, match=r"2 of 3 features are constant .* -1 everywhere: number 1, 2"
        ):
            binarizer = fit_binarizer(data, method)
        assert binarizer.apply(data, rng=0)[:, 1:].tolist() == [[-1, -1]] * 3
        assert binarizer.apply([[1.0, 6.0, 2.0]], rng=0)[0, 1:].tolist() == [1, -1]


def test_constant_points_become_low_with_a_warning():
    data = np.array([[1.0, 9, 3], [4.0, 4, 4]])
    for table in (data, data.astype(np.uint8)):
        binarizer = fit_binarizer(table, per="point")
        with pytest.warns(ConstantDataWarning, match="1 of 2 points are constant"):
            assert binarizer.apply(table).tolist() == [[-1, 1, -1], [-1, -1, -1]]
    with pytest.warns(ConstantDataWarning, match="1 of 1 data are constant"):
        fit_binarizer(np.full((3, 2), 7.0), per="all")


@pytest.mark.parametrize("per", ["feature", "point", "all"])
@pytest.mark.parametrize("method", ["otsu", "median", "stochastic"])
def test_data_in_the_alphabet_keep_their_meaning_without_a_warning(method, per):
    spins = np.array([[1.0, -1, 1], [-1.0, -1, 1], [1, -1, 1]])
    bits = (spins + 1) / 2
    for data in (spins, bits, bits.astype(np.uint8), bits.astype(bool), spins.astype(np.int8)):
        binarizer = fit_binarizer(data, method, per=per)
        assert np.array_equal(binarizer.apply(data, rng=0), spins)
        assert np.array_equal(fit_binarizer(data, method, per=per, units="bit").apply(data, rng=0), bits)
        assert "already binary" in repr(binarizer)
    ones = np.ones((4, 3))
    assert np.array_equal(fit_binarizer(ones, method, per=per).apply(ones, rng=0), ones)


# What is refused


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ([[1.0, 2.0]], {}, "at least two points for thresholds per feature, got 1. Take `per='point'`"),
        ([[1.0, np.nan], [2.0, 3.0]], {}, "`data` must be finite, found 1 .* row 0, column 1 .nan.* Drop"),
        ([[1.0, np.inf], [2.0, 3.0]], {}, "`data` must be finite"),
        ([1.0, 2.0], {}, r"`data` must have shape .* got shape \(2,\)"),
        (np.empty((0, 3)), {}, r"`data` must have shape .* got shape \(0, 3\)"),
        ([["a"]], {}, "`data` must be an array of real numbers"),
        (GREY, {"method": "otso"}, "`method` must be one of 'otsu', 'median', 'stochastic' or a number"),
        (GREY, {"method": float("nan")}, "`method` must be finite"),
        (GREY, {"per": "pixel"}, "`per` must be one of 'feature', 'point', 'all', got 'pixel'"),
        (GREY, {"units": "trit"}, "`units` must be a unit type"),
        (
            GREY,
            {"method": "stochastic", "grey_range": (5, 5)},
            "`grey_range` must be two numbers, black below",
        ),
    ],
)
def test_bad_requests_are_refused(data, options, words):
    with pytest.raises(ValueError, match=words):
        fit_binarizer(data, **options)


# Files


@pytest.mark.parametrize("per", ["feature", "point", "all"])
@pytest.mark.parametrize("method", ["otsu", "median", 0.1, "stochastic"])
def test_a_saved_binarizer_comes_back_to_the_last_bit(tmp_path, method, per):
    data = RNG.normal(size=(20, 4))
    binarizer = fit_binarizer(data, method, per=per, units="bit")
    binarizer.save(tmp_path / "b.json")
    again = Binarizer.load(tmp_path / "b.json")
    assert repr(again) == repr(binarizer)
    for name in ("thresholds", "grey_range"):
        assert np.array_equal(getattr(again, name), getattr(binarizer, name), equal_nan=False)
    assert np.array_equal(again.apply(data, rng=4), binarizer.apply(data, rng=4))
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]
    for array in (again.thresholds, again.grey_range, binarizer.thresholds):
        assert array is None or not array.flags.writeable


GOOD = {
    "format": "paramagnet.binarizer", "version": 1, "method": "otsu", "per": "feature", "units": "spin",
    "thresholds": [0.5, 1.0], "grey_range": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"}, {"version": 2}, {"method": "magic"}, {"method": None}, {"per": "line"},
        {"units": "trit"}, {"units": ["spin"]}, {"thresholds": None}, {"thresholds": []},
        {"thresholds": [[1.0]]}, {"thresholds": ["a"]}, {"thresholds": [float("nan")]}, {"per": "all"},
        {"thresholds": {"a": 1}}, {"method": "stochastic"}, {"grey_range": [[0.0], [1.0]]}, {"per": "point"},
        {"method": "stochastic", "thresholds": None, "grey_range": [[1.0, 2.0]]},
        {"method": "stochastic", "thresholds": None, "grey_range": [[1.0, 2.0], [3.0]]},
    ],
)  # fmt: skip
def test_damaged_files_of_binarizers_are_refused(tmp_path, change):
    path = tmp_path / "b.json"
    path.write_text(json.dumps(GOOD))
    assert Binarizer.load(path).thresholds.tolist() == [0.5, 1.0]
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(ValueError, match=r"`path` is no file of a binarizer: .*b\.json \("):
        Binarizer.load(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "b.json").write_bytes(content)
    with pytest.raises(ValueError, match="`path` is no file of a binarizer"):
        Binarizer.load(tmp_path / "b.json")


def test_a_binarizer_of_other_units_works_but_has_no_file(tmp_path):
    binarizer = fit_binarizer(GREY, units=BinaryUnit("odd", 3.0, 4.0))
    assert set(np.unique(binarizer.apply(GREY))) == {3.0, 4.0}
    with pytest.raises(ValueError, match=r"`units` must be 'spin', 'bit', .* to be saved, got BinaryUnit"):
        binarizer.save(tmp_path / "b.json")
    assert {SPIN.name, BIT.name} == {"spin", "bit"}
