"""Make the explicit formula of beta_max: fit it, certify its error, write its table of coefficients.

    python benchmarks/fit_formula.py [--check | --figure]

The solver's values on a Chebyshev grid give the coefficients of a double Chebyshev sum; those too small to
matter are dropped. The certificate: the error is a polynomial (in the two mapped variables) of degree below
that of the grid, up to a tail that is estimated from the last coefficients. Taken on four times as many
Chebyshev points in each variable, its largest value there times ``1/cos(pi/8)**2`` bounds it everywhere
(Ehlich and Zeller, Math. Z. 86 (1964) 41). With ``--check`` nothing is written, the present table is
certified again.
"""

from __future__ import annotations

import argparse
import importlib
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.fft import dct
from scipy.optimize import brentq

import paramagnet as pm
from paramagnet.theory import formula, formula_table

FloatArray = npt.NDArray[np.float64]
GRID = (40, 56)  # Chebyshev points in ln(alpha) and c
OVERSAMPLING = 4
SMALLEST = 7e-8  # coefficients below are dropped
UNIT = 1e-9
TABLE = Path(formula.__file__).with_name("formula_table.py")


def chebyshev_points(n: int) -> FloatArray:
    return np.cos(np.pi * (np.arange(n) + 0.5) / n)


def solve_on(n_alpha: int, n_c: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Both arguments, beta_max and the stability on a grid of Chebyshev points in the mapped variables."""
    log_alpha = formula.unmap_alpha(chebyshev_points(n_alpha))[:, None]
    c = formula.unmap_bias(chebyshev_points(n_c), log_alpha)
    log_alpha = np.broadcast_to(log_alpha, c.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.theory.ReplicaSymmetryWarning)
        found = pm.theory.find_beta_max(np.exp(log_alpha), c=c)
    assert set(np.unique(found.status.astype(str))) <= {"maximum", "unstable"}
    return log_alpha, c, found.beta, found.stability


def coefficients_of(values: FloatArray) -> FloatArray:
    found = dct(dct(values, axis=0), axis=1) / values.size
    found[0] /= 2.0
    found[:, 0] /= 2.0
    return np.asarray(found)


def boundary() -> FloatArray:
    """A cubic in ``ln alpha`` for the bias below which replica symmetry is broken at beta_max."""
    log_alpha = np.linspace(np.log(2.4), np.log(20.0), 30)

    def stability(c: float, x: float) -> float:
        return float(pm.theory.find_beta_max(np.exp(x), c=c).stability)

    zeros = [brentq(stability, -12.0, -5.0, args=(x,), xtol=1e-6) for x in log_alpha]
    cubic = np.polynomial.polynomial.polyfit(log_alpha, zeros, 3)
    worst = np.abs(np.polynomial.polynomial.polyval(log_alpha, cubic) - zeros).max()
    print(f"boundary of replica symmetry: {np.round(cubic, 4).tolist()}, within {worst:.1e}")
    return np.asarray(cubic)


def fit() -> tuple[tuple[int, ...], ...]:
    _, _, beta, _ = solve_on(*GRID)
    found = coefficients_of(beta)
    rows = []
    for row in found:
        kept = np.flatnonzero(np.abs(row) > SMALLEST)
        if kept.size:
            rows.append(tuple(round(float(a) / UNIT) for a in row[: kept[-1] + 1]))
    tail = np.abs(found[-3:]).sum() + np.abs(found[:, -3:]).sum()
    print(f"{sum(map(len, rows))} coefficients in {len(rows)} rows; last of the grid {tail:.1e}")
    return tuple(rows)


def write(rows: tuple[tuple[int, ...], ...]) -> None:
    lines = [
        '"""Coefficients of the explicit formula, in units of 1e-9; written by benchmarks/fit_formula.py.',
        "",
        "Row ``i`` belongs to ``T_i(u)``, its ``j``-th number to ``T_j(v)``.",
        '"""',
        "",
        "# fmt: off",
        "NANO = (",
    ]
    for row in rows:
        line = "    ("
        for a in row:
            if len(line) + len(str(a)) > 104:
                lines.append(line.rstrip())
                line = "     "
            line += f"{a}, "
        lines.append(line.rstrip(", ") + ("," if len(row) == 1 else "") + "),")
    TABLE.write_text("\n".join([*lines, ")", ""]), encoding="utf-8")


def certify() -> None:
    log_alpha, c, beta, stability = solve_on(*(OVERSAMPLING * n for n in GRID))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.theory.ReplicaSymmetryWarning)
        error = pm.theory.beta_max_formula(np.exp(log_alpha), c) - beta
    worst = np.abs(error).max() / np.cos(0.5 * np.pi / OVERSAMPLING) ** 2
    aliased = coefficients_of(error)
    tail = np.abs(aliased[GRID[0] :]).sum() + np.abs(aliased[: GRID[0], GRID[1] :]).sum()
    print(f"largest error on {error.size} points {np.abs(error).max():.2e}; bound everywhere {worst:.2e} "
          f"+ tail {tail:.1e}")  # fmt: skip
    print(f"beta_max from {beta.min():.4f} to {beta.max():.4f}; replica symmetry broken on "
          f"{100 * np.mean(stability < 0):.1f} % of the points")  # fmt: skip
    assert worst + tail < 1e-6


def draw_figure(path: Path) -> None:
    """beta_max over the rectangle, the corner of broken replica symmetry, and the error of the formula."""
    import matplotlib.pyplot as plt

    x, c = np.linspace(np.log(0.05), np.log(20.0), 121), np.linspace(-10.0, 2.0, 121)[:, None]
    alpha = np.exp(x)
    found = pm.theory.find_beta_max(alpha, c=c)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.theory.ReplicaSymmetryWarning)
        error = 1e6 * (pm.theory.beta_max_formula(alpha, c) - found.beta)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.7), layout="constrained", sharey=True)
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xlabel(r"$\alpha$ = hidden units / visible units")
    left.contourf(alpha, c[:, 0], found.stability, levels=[-np.inf, 0.0], colors=["0.82"])
    levels = [1.3, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 12, 14]
    lines = left.contour(alpha, c[:, 0], found.beta, levels=levels, cmap="viridis", vmax=12.0)
    left.clabel(lines, fmt="%g", fontsize=8)
    left.annotate(
        "replica symmetry\nbroken", (5.0, -8.6), xytext=(0.5, -9.0), ha="center", va="center", fontsize=8,
        arrowprops={"arrowstyle": "-", "linewidth": 0.7}, bbox={"facecolor": "white", "edgecolor": "none"},
    )  # fmt: skip
    left.set_ylabel("hidden bias c")
    left.set_title(r"$\beta_{\max}$", fontsize=10)
    picture = right.pcolormesh(alpha, c[:, 0], error, cmap="RdBu_r", vmin=-0.8, vmax=0.8, rasterized=True)
    figure.colorbar(picture, ax=right)
    right.set_title(r"error of the formula, $10^{-6}$", fontsize=10)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="certify the present table, write nothing")
    parser.add_argument("--figure", action="store_true", help="draw the figure of the documentation and stop")
    arguments = parser.parse_args()
    if arguments.figure:
        draw_figure(Path(__file__).parents[1] / "docs" / "figures" / "formula.png")
        return
    if not arguments.check:
        boundary()
        write(fit())
        importlib.reload(formula_table)
        formula.load_table.cache_clear()
    certify()


if __name__ == "__main__":
    main()
