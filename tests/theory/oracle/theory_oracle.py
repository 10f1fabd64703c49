"""Answers of the theory at fifty random calls, slowly: an oracle that shares nothing with the package.

It knows the saddle-point equations, the free energy and the definitions of what is asked, and nothing else:
no formula for a susceptibility, no change of variable, no nested search. Averages of spins and bits are sums
of the plain trapezoid rule over 80-bit floats, with a step and a range for 19 digits; those of Gaussian units
are taken by hand. The saddle point is a root in (ln q, ln V) of a binary layer, V its variance, by Newton's
method with differences from many starting points; of several solutions the one of lowest free energy is
taken. Susceptibilities are seven-point differences of magnetizations and overlaps in the biases. beta_max is
the root of a seven-point difference of the logarithm of what is maximized in ln(beta), near a rough value
that is given; that nothing of the kind lies below is looked for (where two phases meet, beta_max is where
their free energies are the same). All differences are taken twice, the second time twice as wide, to tell
their error.

    PYTHONPATH=tests/theory python -m oracle.theory_oracle            rewrites theory.json beside this file
    PYTHONPATH=tests/theory python -m oracle.theory_oracle --only 3   recomputes one call, beside the stored
"""

import argparse
import json
import re
from pathlib import Path

import numpy as np
from oracle.theory_grid import make_call

STORED = Path(__file__).with_name("theory.json")

# the number of a call of theory_grid.py; for a maximum also its kind and a rough beta to start from. These
# are calls whose answers differences resolve to 2e-10 (biases of 90 make susceptibilities of 1e-39).
POINTS = [
    (0, None, None),
    (7, "maximum", 4.46),
    (13, "maximum", 45.9),
    (19, None, None),
    (26, None, None),
    (29, "maximum", 16.6),
    (38, "unstable", 90.5),
    (57, None, None),
    (64, None, None),
    (76, None, None),
    (88, None, None),
    (95, "transition", 0.61),
    (121, None, None),
    (133, "maximum", 1.05),
    (152, None, None),
    (178, None, None),
    (190, "maximum", 0.4),
    (197, "maximum", 0.498),
    (233, None, None),
    (247, "maximum", 2.64),
    (254, "maximum", 10.4),
    (261, "first-order", 4.63),
    (273, None, None),
    (292, None, None),
    (304, None, None),
    (311, "maximum", 0.0261),
    (323, None, None),
    (342, "maximum", 2.79),
    (349, "maximum", 5.46),
    (361, None, None),
    (368, None, None),
    (384, None, None),
    (387, None, None),
    (399, "maximum", 4.51),
    (437, "maximum", 2.22),
    (456, None, None),
    (463, "maximum", 1.73),
    (513, None, None),
    (525, "maximum", 0.221),
    (532, None, None),
    (539, None, None),
    (577, None, None),
    (596, None, None),
    (615, "maximum", 4.77),
    (621, "first-order", 30.0),
    (627, None, None),
    (798, "maximum", 2.21),
    (874, None, None),
    (931, None, None),
    (969, None, None),
]
REAL = np.longdouble
STENCIL = {1: REAL(45) / 60, 2: REAL(-9) / 60, 3: REAL(1) / 60}  # first derivative, error of sixth order
STENCIL_2 = {0: REAL(-490) / 180, 1: REAL(270) / 180, 2: REAL(-27) / 180, 3: REAL(2) / 180}  # second
PI = 2 * np.arcsin(REAL(1))


class Layer:
    """One layer: its units, biases and their weights."""

    def __init__(self, unit, biases):
        match = re.fullmatch(r"gaussian(?:\((.*)\))?", unit)
        self.kind, self.variance = ("gaussian", REAL(float(match[1] or 1))) if match else (unit, None)
        self.symmetric = self.kind != "bit"
        biases = np.atleast_1d(biases).astype(REAL)
        self.biases = np.abs(biases) if biases.size > 1 and self.symmetric else biases
        self.zero = self.symmetric and not self.biases.any()

    def answer(self, qhat, gap, shift, kind=REAL):
        """M, q, V, E[k2**2] and the mean logarithm of the trace, at biases moved by ``shift``."""
        total = 0
        for bias in self.biases + shift:
            total = total + self.average(kind(bias), qhat, gap, kind)
        return total / len(self.biases)

    def average(self, bias, qhat, gap, kind):
        if self.kind == "gaussian":
            s = kind(self.variance)
            width = 1 / (1 / s - gap)
            square = bias * bias + qhat
            trace = (width * square + np.log(width / s)) / 2
            return np.array([width * bias, width**2 * square, width, width**2, trace])
        slope, centre = np.sqrt(qhat), bias
        if self.kind == "spin":
            slope, centre = 2 * slope, 2 * centre
        else:
            centre = centre + gap / 2
        extension = min(2 * slope, abs(centre) / max(slope, kind(1e-300)), kind(40))
        step = min(kind(0.3), kind(0.3) / max(slope, kind(1e-300)))
        left, right = (12 + (extension if sign * centre > 0 else 0) for sign in (1, -1))
        z = step * np.arange(-np.ceil(left / step), np.ceil(right / step) + 1, dtype=kind)
        weight = np.exp(-z * z / 2) * step / np.sqrt(2 * kind(PI))
        odds = centre + slope * z
        decay = np.exp(-np.abs(odds))
        likely = 1 / (1 + decay)
        unlikely = decay * likely
        k2, trace = likely * unlikely, np.maximum(odds, 0) + np.log1p(decay)
        if self.kind == "spin":
            mean, k2, trace = np.sign(odds) * (1 - decay) * likely, 4 * k2, trace - odds / 2 + gap / 2
        else:
            mean = np.where(odds > 0, likely, unlikely)
        return np.array([weight @ x for x in (mean, mean * mean, k2, k2 * k2, trace)])


class Machine:
    """A random machine; the unknowns are those of a binary layer, called the first."""

    def __init__(self, visible, hidden, alpha, b, c):
        self.layers = Layer(visible, b), Layer(hidden, c)
        self.alpha = REAL(alpha)
        self.first = 1 if self.layers[0].kind == "gaussian" else 0
        self.width = REAL(1)  # of all differences; twice as wide tells their error
        self.both_gaussian = all(layer.kind == "gaussian" for layer in self.layers)

    def around(self, beta, unknowns, shifts, kind=REAL):
        """From the first layer's (q, V) to the second one and back: the answers of both."""
        couplings = self.couplings(beta, kind)
        first, second = self.first, 1 - self.first
        q, variance = unknowns
        two = self.layers[second].answer(
            couplings[second] * q, couplings[second] * variance, shifts[second], kind
        )
        one = self.layers[first].answer(
            couplings[first] * two[1], couplings[first] * two[2], shifts[first], kind
        )
        return one, two

    def couplings(self, beta, kind=REAL):
        alpha, beta = kind(self.alpha), kind(beta)
        return alpha * beta**2 / (1 + alpha), beta**2 / (1 + alpha)

    def polish(self, beta, start, shifts, kind=REAL, tolerance=1e-18):
        """Newton's method in (ln q, ln V), or in ln q where V = 1 - q (spins); None if it fails."""
        spin = self.layers[self.first].kind == "spin"
        tiny = kind(1e-9 if kind is REAL else 1e-7)

        def miss(x):
            q = np.exp(x[0])
            unknowns = (q, 1 - q if spin else np.exp(x[1]))
            one, _ = self.around(beta, unknowns, shifts, kind)
            if not (one[1] > 0 and one[2] > 0):
                return None
            return np.array(
                [np.log(one[1]) - x[0]] if spin else [np.log(one[1]) - x[0], np.log(one[2]) - x[1]]
            )

        x = np.array([np.log(kind(start[0]))] if spin else [np.log(kind(y)) for y in start])
        f, best = miss(x), None
        for _ in range(100):
            if f is None or not np.isfinite(f).all():
                return None
            size = np.abs(f).max()
            if best is None or size < best[0]:
                best, idle = (size, x), 0
            else:
                idle += 1
            if size < tolerance or idle > 4:
                break
            columns = []
            for k in range(len(x)):
                moved = x.copy()
                moved[k] += tiny
                g = miss(moved)
                if g is None:
                    return None
                columns.append((g - f) / tiny)
            if len(x) == 1:
                change = -f / columns[0]
            else:
                (a, c), (b, d) = columns
                determinant = a * d - b * c
                change = np.array([(b * f[1] - d * f[0]) / determinant, (c * f[0] - a * f[1]) / determinant])
            length = min(kind(1), 1 / np.abs(change).max())
            for _ in range(30):
                new = x + length * change
                g = miss(np.minimum(new, 0) if not spin else np.minimum(new, -kind(1e-19)))
                if g is not None and np.isfinite(g).all() and np.abs(g).max() < max(size, kind(1e-17)):
                    break
                length = length / 2
            x, f = (np.minimum(new, 0) if not spin else np.minimum(new, -kind(1e-19))), g
        if best[0] > max(tolerance, kind(1e-15) if kind is REAL else kind(1e-9)):
            return None
        q = np.exp(best[1][0])
        return q, (1 - q if spin else np.exp(best[1][1]))

    def solve(self, beta, shifts=(0, 0), start=None):
        """The answers (M, q, V, E[k2**2], trace) of the visible and the hidden layer."""
        if self.both_gaussian:
            return self.solve_gaussians(beta, shifts)
        if start is None:
            start = self.search(beta, shifts)
        if start is not None:
            start = self.polish(beta, start, shifts)
            if start is None:
                raise ArithmeticError("the saddle point was not found")
            self.last = start
            one, two = self.around(beta, start, shifts)
        else:  # no overlap at all
            self.last = None
            one, two = self.around(beta, (REAL(0), REAL(1)), shifts)
        return (two, one) if self.first else (one, two)

    def search(self, beta, shifts):
        """A solution of lowest free energy, by ordinary floats from many starting points."""
        return self.phases(beta, shifts)[0]

    def phases(self, beta, shifts=(0, 0)):
        """All solutions that were found, the lowest free energy first; [None] where the overlap is zero."""
        if all(layer.zero for layer in self.layers) and not any(shifts):
            one, two = self.around(beta, (REAL(0), REAL(1)), shifts)
            a, b = self.couplings(beta)
            if a * b * one[3] * two[3] <= 1:
                return [None]
        found = []
        means = (1e-9, 1e-4, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.9999, 1 - 1e-8)
        starts = [(m, 1 - m) for m in means]
        if self.layers[self.first].kind == "spin":
            starts += self.sign_changes(beta, shifts)
        else:
            starts = [(m * (1 - r), m * r) for m in means for r in (1e-4, 0.01, 0.1, 0.5, 0.95)]
        starts += [self.substitute(beta, start, shifts) for start in (starts[0], starts[len(starts) // 2])]
        for start in starts:
            if not min(start) > 0:
                continue
            with np.errstate(all="ignore"):
                rough = self.polish(beta, start, shifts, np.float64, 1e-12)
            if rough is None or any(
                abs(rough[0] / x[0] - 1) < 1e-6 and abs(rough[1] / x[1] - 1) < 1e-5 for x in found
            ):
                continue
            if np.isfinite(self.free_energy(beta, rough, shifts)):
                found.append(rough)
        return sorted(found, key=lambda x: self.free_energy(beta, x, shifts))

    def sign_changes(self, beta, shifts):
        """One unknown: every change of sign of the new overlap minus the old one, on a dense grid."""
        grid, signs = np.linspace(-40.0, 40.0, 401), []
        pairs = [(1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))) for x in grid]
        with np.errstate(all="ignore"):
            for q, variance in pairs:
                one, _ = self.around(beta, (q, variance), shifts, np.float64)
                signs.append(one[1] > q if q < 0.5 else one[2] < variance)
        return [pairs[i] for k in np.flatnonzero(np.diff(signs)) for i in (k, k + 1)]

    def substitute(self, beta, start, shifts):
        """Plain substitution with damping: another starting point."""
        q, variance = start
        with np.errstate(all="ignore"):
            for _ in range(60):
                one, _ = self.around(beta, (q, variance), shifts, np.float64)
                if not (one[1] > 0 and one[2] > 0):
                    return 0.0, 0.0
                q, variance = np.sqrt(q * one[1]), np.sqrt(variance * one[2])
        return q, variance

    def free_energy(self, beta, unknowns, shifts=(0, 0)):
        with np.errstate(all="ignore"):
            one, two = self.around(beta, unknowns, shifts)
        visible, hidden = (two, one) if self.first else (one, two)
        product = visible[2] * hidden[2] + visible[2] * hidden[1] + visible[1] * hidden[2]
        trace = visible[4] + self.alpha * hidden[4]
        return (self.couplings(beta)[0] / 2 * product - trace) / (1 + self.alpha)

    def solve_gaussians(self, beta, shifts):
        """Widths by substitution from the free units; overlaps from two linear equations."""
        a, b = self.couplings(beta)
        (v,), (h,) = ([layer.variance] for layer in self.layers)
        s_v, s_h = v, h
        for _ in range(200000):
            new = 1 / (1 / s_v - a * h)
            h, old = 1 / (1 / s_h - b * new), v
            v = new
            if abs(v - old) < 1e-19 * v:
                break
        squares = [
            np.mean((layer.biases + shift) ** 2) for layer, shift in zip(self.layers, shifts, strict=True)
        ]
        means = [np.mean(layer.biases + shift) for layer, shift in zip(self.layers, shifts, strict=True)]
        q_v = (v * v * squares[0] + a * v * v * h * h * squares[1]) / (1 - a * b * v * v * h * h)
        q_h = h * h * (squares[1] + b * q_v)
        trace = lambda t, s, q: (q / t + np.log(t / s)) / 2  # noqa: E731
        return (
            np.array([v * means[0], q_v, v, v * v, trace(v, s_v, q_v)]),
            np.array([h * means[1], q_h, h, h * h, trace(h, s_h, q_h)]),
        )

    def difference(self, beta, which, layer, entry, order=1):
        """A derivative of an answer of a layer (0: visible) in the bias of the layer ``which``."""
        step = self.width / 256
        centre = self.solve(beta, start=getattr(self, "near", None))
        start = None if self.both_gaussian else self.last
        total = STENCIL_2[0] * centre[layer][entry] if order == 2 else REAL(0)
        for k, weight in (STENCIL if order == 1 else STENCIL_2).items():
            if k == 0:
                continue
            values = []
            for sign in (1, -1):
                shifts = [REAL(0), REAL(0)]
                shifts[which] = sign * k * step
                values.append(self.solve(beta, shifts, start)[layer][entry])
            total += weight * (values[0] + (values[1] if order == 2 else -values[1]))
        self.last = start
        return total / step**order

    def chi(self, beta, row, column):
        """dM_row/d(bias of column), per unit of the whole machine."""
        share = (1 if row == 0 else self.alpha) / (1 + self.alpha)
        return share * self.difference(beta, column, row, 0)

    def criterion(self, beta):
        """What beta_max maximizes; the layer of bits, where there is one beside another, is the second."""
        visible, hidden = self.layers
        one, two = (1, 0) if hidden.symmetric and not visible.symmetric else (0, 1)
        first, second = self.layers[one], self.layers[two]
        if first.kind == "gaussian" and not second.symmetric:
            return self.difference(beta, two, one, 1)
        order = 2 if second.zero else 1
        return self.difference(beta, two, one, 2 if first.zero else 0, order)

    def slope(self, log_beta, step):
        total = REAL(0)
        for k, weight in STENCIL.items():
            values = [np.log(abs(self.criterion(np.exp(log_beta + sign * k * step)))) for sign in (1, -1)]
            total += weight * (values[0] - values[1])
        return total / step

    def beta_max(self, rough):
        if all(layer.zero for layer in self.layers):
            return self.transition(rough)
        x = np.log(REAL(rough))
        if not self.both_gaussian:
            self.check_that_it_is_the_first(rough)
            self.near = self.search(rough, (0, 0))
        step, x0, f0 = self.width / 512, None, None
        new = x
        for _ in range(40):
            f = self.slope(new, step)
            x0, f0, x, f1 = x, f0, new, f
            self.near = self.last
            if f0 is None:
                new, f0 = x + REAL(1) / 2048, f1
                continue
            new = x - f1 * (x - x0) / (f1 - f0)
            f0 = f1
            if abs(new - x) < 1e-8:  # the secant method's error is of higher order
                return np.exp(new)
        raise ArithmeticError("the maximum was not found")

    def check_that_it_is_the_first(self, rough):
        """What is maximized grows all the way up to the maximum, along the solution of small beta."""
        self.near, values = self.search(REAL(rough), (0, 0)), []
        for beta in REAL(rough) * REAL(1.06) ** np.arange(-1, -50, -1):
            values.insert(0, abs(self.criterion(beta)))
            self.near = self.last
            if values[0] < 1e-9 * max(values):
                break
        # differences do not resolve what is many orders below its maximum
        values = [value for value in values if value > 1e-9 * max(values)]
        if not (np.diff(values)[:-1] > 0).all():
            raise ArithmeticError("there is an earlier maximum")
        self.near = None

    def transition(self, rough):
        """Two symmetric layers without biases: where A B (E_v[k2**2]) (E_h[k2**2]) = 1 without overlaps."""
        if self.both_gaussian:
            a, b = (layer.variance for layer in self.layers)
            return np.sqrt((1 + self.alpha) / (a * b)) / (1 + np.sqrt(self.alpha))
        low, high = REAL(rough) / 2, REAL(rough) * 2
        for _ in range(80):
            middle = (low + high) / 2
            a, b = self.couplings(middle)
            one, two = self.around(middle, (REAL(0), REAL(1)), (0, 0))
            with np.errstate(all="ignore"):
                above = not (two[2] > 0 and one[2] > 0) or a * b * one[3] * two[3] > 1
            low, high = (low, middle) if above else (middle, high)
        return low

    def crossing(self, rough):
        """The beta at which two phases have the same free energy."""
        starts = self.phases(rough)[:2]

        def difference(beta):
            energies = []
            for i in range(2):
                starts[i] = self.polish(beta, starts[i], (0, 0))
                energies.append(self.free_energy(beta, starts[i]))
            return energies[0] - energies[1]

        x0, x1 = REAL(rough), REAL(rough) * REAL(1.0001)
        f0, f1 = difference(x0), difference(x1)
        for _ in range(30):
            x0, f0, x1 = x1, f1, x1 - f1 * (x1 - x0) / (f1 - f0)
            if abs(x1 / x0 - 1) < 1e-15:
                break
            f1 = difference(x1)
        return x1


def make_row(point):
    """The call of one of ``POINTS``."""
    call, kind, rough = point
    function, positional, named = make_call(call)
    row = {"call": call, "function": function, "positional": positional, "named": named}
    return row | ({} if kind is None else {"kind": kind, "rough": rough})


def compute(row):
    """The answers to a call as strings, and their estimated relative error."""
    fine, coarse = answer(row, REAL(1)), answer(row, REAL(2))
    errors = [abs(fine[key] - coarse[key]) / abs(fine[key]) for key in fine if abs(fine[key]) > 1e-15]
    return {key: text(value) for key, value in fine.items()}, float(f"{max(errors, default=0):.1e}")


def answer(row, width):
    """The answers to a call, with differences of one width."""
    name, positional, named = row["function"], row["positional"], row["named"]
    b, c = named.get("b", 0.0), named.get("c", named.get("hidden_bias", 0.0))
    alpha = positional[-1]
    if name == "weight_std":
        alpha = positional[1] / positional[0]
    machine = Machine(named["visible"], named["hidden"], alpha, b, c)
    machine.width = width
    if name in ("beta_max", "find_beta_max", "weight_std"):
        find = machine.crossing if row["kind"] == "first-order" else machine.beta_max
        return {"beta_max": find(row["rough"])}
    beta = REAL(positional[0])
    if name == "susceptibility":
        return {f"chi{i}{j}": machine.chi(beta, i, j) for i in range(2) for j in range(2)}
    if name == "layer_correlation":
        vanishes = any(layer.zero for layer in machine.layers)
        return {"value": REAL(0) if vanishes else machine.chi(beta, 0, 1)}
    if name == "overlap_response":
        order = 2 if machine.layers[1].zero else 1
        return {"value": -machine.difference(beta, 1, 0, 1, order) / (1 + machine.alpha)}
    visible, hidden = machine.solve(beta)
    if name == "replica_stability":
        a, b = machine.couplings(beta)
        return {"value": 1 - a * b * visible[3] * hidden[3]}
    names = ("magnetization", "q")
    found = {f"{x}_{y}": z[i] for y, z in (("v", visible), ("h", hidden)) for i, x in enumerate(names)}
    product = visible[2] * hidden[2] + visible[2] * hidden[1] + visible[1] * hidden[2]
    energy = machine.couplings(beta)[0] / 2 * product - visible[4] - machine.alpha * hidden[4]
    return found | {"free_energy": energy / (1 + machine.alpha)}


def text(x):
    return np.format_float_scientific(x, precision=16)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, metavar="I", help="recompute one call, write nothing")
    only = parser.parse_args().only
    if only is not None:
        stored = json.loads(STORED.read_text()) if STORED.exists() else []
        print(make_row(POINTS[only]), compute(make_row(POINTS[only])), *stored[only : only + 1])
        return
    rows = []
    for point in POINTS:
        rows.append(make_row(point))
        rows[-1]["answers"], rows[-1]["error"] = compute(rows[-1])
        print(rows[-1], flush=True)
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    STORED.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
