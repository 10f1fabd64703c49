"""What `diagnose` measures on a machine, its data and its samples, each number with its statistical error.

No function here runs a chain or decides what is wrong; `paramagnet.learning.verdict` compares the numbers
with their limits.

Points may have weights ``w``. Averages over data then are ``sum w x / sum w``, their errors those of weighted
means, with ``sum (w (x - mean))**2 / (sum w)**2`` as the variance, and shares of points count as those of
``(sum w)**2 / sum w**2`` points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paramagnet.learning.likelihood import average, error_of_mean, free_energies
from paramagnet.rbm import RBM
from paramagnet.units import FloatArray, Unit

LEVEL = 1e-3  # probability of a false alarm of each check, on a machine that equals the source of its data
_MOST_FREE = 1000  # points whose free energies give the error of a difference
_STEP = 1e-4  # of the field, for the variance of units with numbers of their own
_MOST_COLUMNS = 1000  # indicators of labels whose covariances are compared
_BLOCK_FIELDS = 1 << 22  # fields in memory at a time
_BLOCK_VALUES = 1 << 20  # states, or indicators of labels, whose products are made at a time


def spread_of(unit: Unit, n_units: int) -> FloatArray:
    """The standard deviation of every unit of a layer without field."""
    if not unit.parameters:
        return np.full(n_units, unit.spread)
    fields = np.full(n_units, _STEP)
    return np.sqrt((unit.mean(fields) - unit.mean(-fields)) / (2.0 * _STEP))


def effective_count(n_points: int, weights: FloatArray | None) -> float:
    """How many points of equal weight these are worth: ``(sum w)**2 / sum w**2``."""
    return float(n_points) if weights is None else float(weights.sum() ** 2 / (weights @ weights))


def column_means(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """The mean of every column."""
    result: FloatArray = values.mean(axis=0) if weights is None else weights @ values / weights.sum()
    return result


# Hidden units


@dataclass(frozen=True, eq=False)
class HiddenActivity:
    """How much every hidden unit does.

    Attributes
    ----------
    variation : ndarray
        Standard deviation over the data of ``E[h_j | v]``, in units of that of the unit without field.
    loss : ndarray
        What the log-likelihood of the data would lose, in nats per point, if the unit were replaced by
        biases; negative if it would gain.
    """

    variation: FloatArray
    loss: FloatArray


def measure_activity(
    rbm: RBM,
    points: FloatArray,
    samples: FloatArray,
    weights: FloatArray | None = None,
    weights_of_samples: FloatArray | None = None,
) -> HiddenActivity:
    """The activity of the hidden units on ``points``, where ``samples`` are states of the machine.

    Unit ``j`` is replaced by its mean ``m_j`` over the points, that is by the visible biases ``w_ij m_j``.
    The free energy then changes by ``d_j(v) = log_trace(f_j) - m_j f_j``, where ``f_j`` is the field of the
    unit, and the log-likelihood falls by ``mean_data d_j + ln mean_samples exp(-d_j)``.
    """
    means = np.zeros(rbm.n_hidden)
    squares = np.zeros(rbm.n_hidden)
    visible, hidden = rbm.units
    shift = hidden.mean(rbm.hidden_bias)  # so that the difference of squares keeps its digits
    for rows in _blocks(len(points), rbm.n_hidden):
        deviation = hidden.mean(visible.multiply(points[rows], rbm.weights) + rbm.hidden_bias) - shift
        means += _sum(deviation, weights, rows)
        squares += _sum(deviation**2, weights, rows)
    total = len(points) if weights is None else weights.sum()
    means /= total
    variance = np.maximum(squares / total - means**2, 0.0)
    means += shift
    data_mean = np.zeros(rbm.n_hidden)
    for rows in _blocks(len(points), rbm.n_hidden):
        data_mean += _sum(_remainders(rbm, points[rows], means), weights, rows)
    data_mean /= total
    exponents = data_mean - _remainders(rbm, samples, means)
    largest = exponents.max(axis=0)
    loss = largest + np.log(column_means(np.exp(exponents - largest), weights_of_samples))
    return HiddenActivity(np.sqrt(variance) / spread_of(hidden, rbm.n_hidden), loss)


def _remainders(rbm: RBM, states: FloatArray, means: FloatArray) -> FloatArray:
    fields = rbm.visible.multiply(states, rbm.weights) + rbm.hidden_bias
    result: FloatArray = rbm.units[1].log_trace(fields) - means * fields
    return result


def _sum(values: FloatArray, weights: FloatArray | None, rows: slice) -> FloatArray:
    """The sum over the points of a block, each times its weight."""
    result: FloatArray = values.sum(axis=0) if weights is None else weights[rows] @ values
    return result


def _blocks(n_rows: int, n_columns: int) -> list[slice]:
    size = max(1, _BLOCK_FIELDS // n_columns)
    return [slice(start, start + size) for start in range(0, n_rows, size)]


def participation_ratio(weights: FloatArray) -> float:
    """``(sum_k s_k**2)**2 / sum_k s_k**4`` of the singular values ``s_k``: the number of directions that the
    weights use, from 1 to the size of the smaller layer. Without weights it is 0.

    For ``n x m`` independent weights of one variance it is about ``n m/(n + m)``.
    """
    largest = float(np.abs(weights).max())
    if largest == 0.0:
        return 0.0
    scaled = weights / largest
    small = scaled.T @ scaled if weights.shape[0] >= weights.shape[1] else scaled @ scaled.T
    return float(np.trace(small) ** 2 / np.sum(small**2))


# Mirrored chains


@dataclass(frozen=True, eq=False)
class Overlaps:
    """On which side of the data chains are.

    Attributes
    ----------
    data, chains : ndarray
        Overlap of every point and of every chain with the mean of the data: 1 on average for the data, about
        -1 for a state that is the negative of the data.
    share : float
        Share of chains with a negative overlap, less the share of points; means are those of the other half
        of the points.
    error : float
        Its standard error.
    p_value : float
        Probability of at least this share if chains and points had the same distribution.
    """

    data: FloatArray
    chains: FloatArray
    share: float
    error: float
    p_value: float


def mirror_centre(unit: Unit) -> float | None:
    """The number about which ``unit`` can be mirrored: 0 for spins and Gaussian units, 1/2 for bits; None if
    its values have no mirror image.
    """
    if unit.response is not None:
        return unit.response.centre
    return 0.0 if unit.symmetric else None


def measure_overlaps(
    unit: Unit,
    points: FloatArray,
    chains: FloatArray,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> Overlaps | None:
    """The overlaps ``sum_i x_i m_i / sum_i m_i**2`` of points and chains with the mean ``m`` of the data, on
    the scale of spins, and the share of mirrored chains; None if there is no mirror image or no mean.

    Where the data have no mean, the two halves of the points are on either side of each other's mean as often
    as the chains are, and the share is zero within its error.
    """
    centre = mirror_centre(unit)
    if centre is None or len(points) < 2:
        return None
    spread = spread_of(unit, points.shape[1])
    scaled, states = (points - centre) / spread, (chains - centre) / spread
    mean = column_means(scaled, weights)
    size = float(mean @ mean)
    order = rng.permutation(len(points))
    halves = order[::2], order[1::2]
    of_data = of_chains = 0.0
    for half, other in (halves, halves[::-1]):
        direction = column_means(scaled[half], None if weights is None else weights[half])
        negative = _negative(scaled[other] @ direction)
        of_data += float(negative.sum() if weights is None else weights[other] @ negative)
        of_chains += 0.5 * float(_negative(states @ direction).sum())
    if size < 1e-20 * scaled.shape[1]:
        return None
    n_points = len(points)
    if weights is not None:  # as many points as they are worth
        n_points = max(1, int(effective_count(n_points, weights)))
        of_data = min(of_data * n_points / float(weights.sum()), n_points)
    p_data, p_chains = of_data / n_points, of_chains / len(chains)
    error = math.sqrt(share_variance(p_data, n_points) + share_variance(p_chains, len(chains)))
    p_value = chance_of_more(of_chains, len(chains), of_data, n_points)
    return Overlaps(scaled @ mean / size, states @ mean / size, p_chains - p_data, error, p_value)


def _negative(overlaps: FloatArray) -> FloatArray:
    """1 for negative overlaps; those of exactly zero count one half."""
    result: FloatArray = (overlaps < 0.0) + 0.5 * (overlaps == 0.0)
    return result


def share_variance(share: float, count: int) -> float:
    """The variance of a share, with half a count added to both sides so that it is not 0 at the ends."""
    smooth = (share * count + 0.5) / (count + 1.0)
    return smooth * (1.0 - smooth) / count


def chance_of_more(found: float, of: int, others: float, of_others: int) -> float:
    """Fisher's test: the probability of ``found`` or more out of ``of`` if the others, ``others`` out of
    ``of_others``, have the same share.
    """
    from scipy.special import gammaln

    k, total = math.floor(found), math.floor(found) + math.ceil(others)
    counts = np.arange(k, min(of, total) + 1)

    def log_choose(n: int, r: npt.NDArray[np.int_]) -> FloatArray:
        result: FloatArray = gammaln(n + 1.0) - gammaln(r + 1.0) - gammaln(n - r + 1.0)
        return result

    possible = counts[total - counts <= of_others]
    if possible.size == 0:
        return 1.0
    whole = log_choose(of + of_others, np.array(total))
    terms = log_choose(of, possible) + log_choose(of_others, total - possible) - whole
    return float(min(1.0, np.exp(terms).sum()))


# Means and correlations


@dataclass(frozen=True, eq=False)
class MomentComparison:
    """Averages of data and samples beside each other.

    Attributes
    ----------
    data, samples : ndarray
        The averages: means, or covariances of pairs.
    beyond : ndarray
        By how much the two differ more than chance explains at the level `LEVEL` for all of them together, in
        spreads of the unit (for covariances squared); 0 where chance explains the difference.
    """

    data: FloatArray
    samples: FloatArray
    beyond: FloatArray

    def count(self, tolerance: float) -> int:
        """How many of them differ by more than ``tolerance`` beyond chance."""
        return int(np.sum(self.beyond > tolerance))


def compare_means(
    unit: Unit, points: FloatArray, samples: FloatArray, weights: FloatArray | None = None
) -> MomentComparison:
    """The means of every visible unit in data and samples, both of independent points; of labels those of the
    indicators of all states.
    """
    counts = effective_count(len(points), weights), float(len(samples))
    if unit.width > 1:
        return _compare_frequencies(unit, points, samples, weights, counts)
    centre, spread = column_means(points, weights), spread_of(unit, points.shape[1])
    means, squares = [], []
    for states, each in ((points, weights), (samples, None)):
        scaled = (states - centre) / spread
        means.append(column_means(scaled, each))
        if each is None:
            squares.append(np.einsum("ki,ki->i", scaled, scaled) / len(states))
        else:
            squares.append(each**2 @ scaled**2 / (each @ each))
    found = _compare(means, squares, counts)
    data, drawn = (spread * average + centre for average in (found.data, found.samples))
    return MomentComparison(data, drawn, found.beyond)


def _compare_frequencies(
    unit: Unit,
    points: FloatArray,
    samples: FloatArray,
    weights: FloatArray | None,
    counts: tuple[float, float],
) -> MomentComparison:
    """The frequencies of all states; an indicator is its own square."""
    shares = [unit.column_means(points, weights), unit.column_means(samples)]
    centre, spread = shares[0], unit.spread
    means = [(share - centre) / spread for share in shares]
    of_squares = [shares[0] if weights is None else unit.column_means(points, weights**2), shares[1]]
    squares = [(share * (1.0 - 2.0 * centre) + centre**2) / spread**2 for share in of_squares]
    found = _compare(means, squares, counts)
    return MomentComparison(shares[0], shares[1], found.beyond)


def _blocks_of_rows(unit: Unit, states: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Some rows at a time, and their states; of labels the indicators of their states, of some units evenly
    spread where they are many.
    """
    n_units = states.shape[1]
    count = n_units if unit.width == 1 else min(n_units, max(2, _MOST_COLUMNS // unit.width))
    some = np.linspace(0, n_units - 1, count).round().astype(np.int64)
    n_rows = max(1, _BLOCK_VALUES // (count * unit.width))
    for start in range(0, len(states), n_rows):
        rows = slice(start, start + n_rows)
        if unit.width == 1:
            yield rows, states[rows]
        else:
            indicators = states[rows, some, None] == np.arange(unit.width)
            yield rows, indicators.reshape(-1, count * unit.width).astype(np.float64)


def _pair_averages(
    unit: Unit, states: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The averages of the products of all pairs of columns, around their means and in units of the spread
    without field, as a matrix; those of the squared products; and the spread. The squares are about the
    averages where points have weights, as the variance of a weighted mean has them.
    """
    n_points = len(states)
    shares = np.full(n_points, 1.0 / n_points) if weights is None else weights / weights.sum()
    centre = np.array(0.0)
    for rows, values in _blocks_of_rows(unit, states):
        centre = centre + shares[rows] @ values
    spread = spread_of(unit, len(centre))
    averages, squares, products = (np.zeros((len(centre), len(centre))) for _ in range(3))
    for rows, values in _blocks_of_rows(unit, states):
        deviations = (values - centre) / spread
        if weights is None:  # the product of a matrix with itself takes half the time of others
            averages += deviations.T @ deviations / n_points
            deviations **= 2
            squares += deviations.T @ deviations / n_points
            continue
        averages += (deviations.T * shares[rows]) @ deviations
        of_squares = weights[rows] ** 2 / (weights @ weights)
        products += (deviations.T * of_squares) @ deviations
        deviations **= 2
        squares += (deviations.T * of_squares) @ deviations
    if weights is not None:
        squares += 2.0 * averages * (averages - products)
    return averages, squares, spread


def compare_correlations(
    unit: Unit, points: FloatArray, samples: FloatArray, weights: FloatArray | None = None
) -> MomentComparison:
    """The covariances of all pairs of visible units, ``i < j``; of labels those of indicators of states."""
    counts = effective_count(len(points), weights), float(len(samples))
    found = [_pair_averages(unit, points, weights), _pair_averages(unit, samples, None)]
    spread = found[0][2]
    upper = np.triu_indices(len(spread), k=1)
    averages, squares = ([each[index][upper] for each in found] for index in range(2))
    compared = _compare(averages, squares, counts)
    scale = np.outer(spread, spread)[upper]
    return MomentComparison(scale * compared.data, scale * compared.samples, compared.beyond)


def _compare(
    averages: list[FloatArray], squares: list[FloatArray], counts: tuple[float, float]
) -> MomentComparison:
    """Averages of the same quantities in data and samples, with their mean squares.

    The variance of each is the larger one of its own and of that of both together, so that a value that only
    one of the two has seen is not taken for impossible. The limit is Student's, for as many degrees of
    freedom as the fewer points have, and is divided among all quantities (Bonferroni).
    """
    from scipy.special import stdtrit

    n_data, n_samples = counts
    total = n_data + n_samples
    pooled_mean = (n_data * averages[0] + n_samples * averages[1]) / total
    # A constant has the variance 0, but the rounding of a difference can be below that.
    pooled = np.maximum((n_data * squares[0] + n_samples * squares[1]) / total - pooled_mean**2, 0.0)
    own = [square - average**2 for square, average in zip(squares, averages, strict=True)]
    error = np.sqrt(np.maximum(own[0], pooled) / n_data + np.maximum(own[1], pooled) / n_samples)
    limit = -float(stdtrit(max(min(counts) - 1, 1), 0.5 * LEVEL / max(error.size, 1)))
    difference = np.abs(averages[1] - averages[0])
    return MomentComparison(averages[0], averages[1], np.maximum(difference - limit * error, 0.0))


# The level of independent units


@dataclass(frozen=True)
class IndependentLevel:
    """The log-likelihood of points under independent units that are fitted to the data.

    Attributes
    ----------
    value : float
        Nats per point.
    error : float
        Standard error of the difference between the machine and independent units, from the differences of
        all points.
    optimism : float
        How far the fit to the same points raises it on average: half a nat per fitted number, one per visible
        unit (``q - 1`` of labels), over the number of points; 0 for held-out points.
    """

    value: float
    error: float
    optimism: float = 0.0


def measure_independent(
    rbm: RBM,
    data: FloatArray,
    points: FloatArray | None,
    weights: FloatArray | None = None,
    weights_of_points: FloatArray | None = None,
) -> IndependentLevel | None:
    """The level of independent units fitted to ``data``, on held-out ``points`` or, for None, on the data;
    None for units of which no field is known that gives a mean. Data and points may have weights.

    For units of two values it is minus the sum of the entropies of the units, but for half a count that is
    added to both values.
    """
    unit, on = rbm.units[0], data if points is None else points
    each = weights if points is None else weights_of_points
    try:
        bias = unit.bias_from(data, "data", None if weights is None else weights / weights.mean())
    except ValueError:
        return None
    levels = unit.multiply(on, bias) - unit.log_trace(bias).sum() + unit.log_base(on)
    some = slice(0, _MOST_FREE)
    differences = levels[some] + free_energies(rbm, on[some])  # but for ln Z, which all points share
    if each is None:
        error = float(differences.std() / math.sqrt(len(on))) if len(on) > 1 else math.inf
    else:
        mean, few = average(differences, each[some]), effective_count(len(differences), each[some])
        error = error_of_mean(differences, mean, each[some])
        error *= math.sqrt(few / effective_count(len(on), each))
    n_numbers = rbm.n_visible * max(1, unit.width - 1)
    optimism = 0.5 * n_numbers / effective_count(len(data), weights) if points is None else 0.0
    return IndependentLevel(average(levels, each), error, optimism)
