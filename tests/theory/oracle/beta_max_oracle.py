"""beta_max to 20 digits, slowly: an oracle that shares nothing with the package.

It knows the saddle-point equations and the definition of the layer correlation, and nothing else: no
formula for a susceptibility, no stability, no closed form. Overlaps are sums of the trapezoid rule over
multiprecision numbers; the saddle point is a root found by the secant method (two bits: Newton's with
differences); the layer correlation is a five-point difference of an order parameter in the hidden bias,

    chi_vh = (1/(1 + alpha)) dM_v/dc,    and where the visible units are spins without bias, where this is
             zero for all c, its slope in b, which is -(1/(1 + alpha)) dq_v/dc;

and beta_max is the root, by the secant method, of a five-point difference of ln|chi_vh| in ln(beta), in
the first bracket that a scan from small beta upwards finds.

    python tests/theory/oracle/beta_max_oracle.py              rewrites beta_max.json beside this file
    python tests/theory/oracle/beta_max_oracle.py --only 3     recomputes one point, beside the stored one
"""

import argparse
import json
from pathlib import Path

from mpmath import mp, mpf

DIGITS = 50  # of the arithmetic; differences cost 16 of them
STORED = Path(__file__).with_name("beta_max.json")

# visible, hidden, alpha, b, c: none of them is in a table of the paper. The first is the cheapest.
POINTS = [
    ("spin", "bit", "0.618", "0", "-0.7"),
    ("spin", "bit", "0.001", "0", "-0.5"),
    ("spin", "bit", "0.001", "0", "-8.25"),
    ("spin", "bit", "1000", "0", "0.3"),
    ("spin", "bit", "1000", "0", "3"),
    ("spin", "bit", "1000", "0", "-4.5"),
    ("spin", "bit", "0.37", "0", "-25"),
    ("spin", "bit", "1.7", "0", "-15"),
    ("spin", "bit", "0.05", "0", "-8"),
    ("spin", "bit", "12.5", "0", "2.6"),
    ("spin", "bit", "30", "0", "-5.5"),
    ("spin", "bit", "0.9", "0", "3"),
    ("spin", "bit", "0.01", "0", "-12.5"),
    ("spin", "bit", "1.15", "0", "-28.4"),
    ("spin", "bit", "1.3", "0.4", "-1.2"),
    ("spin", "bit", "0.6", "-1.5", "-3.1"),
    ("spin", "spin", "1.4", "0.05", "0.1"),
    ("bit", "spin", "0.8", "-2.3", "0"),
    ("bit", "spin", "2.2", "-1.8", "0.5"),
    ("bit", "bit", "1.1", "0", "-2.2"),
]


class Grid:
    """The trapezoid rule, fixed once for all machines close to one another: its (tiny) error is then a smooth
    function of all parameters and no difference magnifies it.
    """

    def __init__(self, mean, slope, accurate):
        reach = 12 if accurate else 9
        step = min(mpf("0.4"), mpf("0.26") / slope) if accurate else min(mpf("0.5"), mpf("0.5") / slope)
        reach += min(2 * slope, abs(mean) / slope)
        self.start, self.step = -reach, step
        count = int(2 * reach / step) + 2
        nodes = [self.start + k * step for k in range(count)]
        self.weights = [mp.exp(-z * z / 2) * step / mp.sqrt(2 * mp.pi) for z in nodes]

    def moments(self, unit, mean, slope):
        """E[m] and E[m**2] of the mean m of a unit whose log-odds are mean + slope z; the exponentials at
        equally spaced nodes are a geometric series.
        """
        odds = mp.exp(mean + slope * self.start)
        ratio = mp.exp(slope * self.step)
        first = second = mpf(0)
        for weight in self.weights:
            m = odds / (1 + odds) if unit == "bit" else (odds - 1) / (odds + 1)
            weighted = weight * m
            first += weighted
            second += weighted * m
            odds *= ratio
        return first, second


class Machine:
    """A random machine at one alpha; ``solve`` gives the visible magnetization and overlap at beta, b, c."""

    def __init__(self, visible, hidden, alpha, b, c):
        self.exchange = visible == "bit" and hidden == "spin"  # the same machine, its layers named otherwise
        if self.exchange:
            visible, hidden, alpha, b, c = hidden, visible, 1 / alpha, c, b
        self.visible, self.hidden, self.alpha, self.b, self.c = visible, hidden, alpha, b, c
        self.grids = None
        self.last = mpf(0), mpf(0)  # logarithms of q_v, and of Q_v where that is not 1

    @staticmethod
    def odds(unit, bias, qhat, selfhat):
        if unit == "spin":
            return 2 * bias, 2 * mp.sqrt(qhat)
        return bias + (selfhat - qhat) / 2, mp.sqrt(qhat)

    def around(self, beta, c, q, Q, accurate):
        """From q_v, Q_v to the hidden layer and back to (M_v, q_v, Q_v)."""
        A = self.alpha * beta**2 / (1 + self.alpha)
        B = beta**2 / (1 + self.alpha)
        odds_h = self.odds(self.hidden, c, B * q, B * Q)
        grid_h = self.grids[0] if self.grids else Grid(*odds_h, accurate)
        M_h, q_h = grid_h.moments(self.hidden, *odds_h)
        odds_v = self.odds(self.visible, self.b, A * q_h, A * (M_h if self.hidden == "bit" else 1))
        grid_v = self.grids[1] if self.grids else Grid(*odds_v, accurate)
        M_v, q_v = grid_v.moments(self.visible, *odds_v)
        self.used = grid_h, grid_v
        return M_v, q_v, (M_v if self.visible == "bit" else mpf(1))

    def solve(self, beta, c, accurate=True):
        tolerance = mpf(10) ** (-(DIGITS - 5) if accurate else -12)
        if self.visible == "bit":
            return self.solve_two(beta, c, accurate, tolerance)

        def phi(x):
            result = self.around(beta, c, mp.exp(x), mpf(1), accurate)
            return mp.log(result[1]) - x, result

        x0 = self.last[0]
        f0, result = phi(x0)
        if abs(f0) <= tolerance:
            return result
        # phi falls through its root: -inf < x < 0, found between two signs
        x1 = x0 + f0 / 2
        f1, result = phi(x1)
        low = high = None
        for _ in range(200):
            for x, f in ((x0, f0), (x1, f1)):
                if f > 0:
                    low = x if low is None else max(low, x)
                else:
                    high = x if high is None else min(high, x)
            if abs(f1) <= tolerance:
                self.last = x1, mpf(0)
                return result
            x2 = x1 - f1 * (x1 - x0) / (f1 - f0) if f1 != f0 else None
            if x2 is None or (low is not None and x2 < low) or (high is not None and x2 > high):
                if low is None:
                    x2 = high - 5
                elif high is None:
                    x2 = min(mpf(0), low + 5)
                else:
                    x2 = (low + high) / 2
            x0, f0, x1 = x1, f1, x2
            f1, result = phi(x1)
        raise ArithmeticError("the saddle point was not found")

    def solve_two(self, beta, c, accurate, tolerance):
        """Newton's method for (ln q_v, ln Q_v), its Jacobian by differences."""
        x, y = self.last
        delta = mpf(10) ** (-DIGITS // 2)

        def residual(x, y):
            result = self.around(beta, c, mp.exp(x), mp.exp(y), accurate)
            return mp.log(result[1]) - x, mp.log(result[2]) - y, result

        for _ in range(200):
            f, g, result = residual(x, y)
            if max(abs(f), abs(g)) <= tolerance:
                self.last = x, y
                return result
            fx, gx, _ = residual(x + delta, y)
            fy, gy, _ = residual(x, y + delta)
            jacobian = mp.matrix([[(fx - f) / delta, (fy - f) / delta], [(gx - g) / delta, (gy - g) / delta]])
            step = mp.lu_solve(jacobian, -mp.matrix([f, g]))
            size = max(abs(step[0]), abs(step[1]))
            scale = min(mpf(1), 1 / size)
            x, y = min(x + scale * step[0], mpf(0)), min(y + scale * step[1], mpf(0))
        raise ArithmeticError("the saddle point was not found")

    def correlation(self, beta, accurate=True):
        """chi_vh (1 + alpha), or its slope in b where the visible units are spins without bias."""
        step = mpf("1e-8") if accurate else mpf("1e-4")
        which = 1 if self.visible == "spin" and self.b == 0 else 0
        result = {k: self.solve(beta, self.c + k * step, accurate)[which] for k in (-2, -1, 1, 2)}
        return (8 * (result[1] - result[-1]) - (result[2] - result[-2])) / (12 * step)

    def log_correlation(self, log_beta, accurate=True):
        return mp.log(abs(self.correlation(mp.exp(log_beta), accurate)))

    def slope(self, log_beta):
        step = mpf("1e-8")
        f = {k: self.log_correlation(log_beta + k * step) for k in (-2, -1, 1, 2)}
        return (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * step)

    def scan(self):
        """Three neighbouring values of ln(beta), the middle one with the largest correlation."""
        self.grids = None
        step = mpf("0.08")
        points = [mp.log(mpf("0.4"))]
        values = []
        while len(values) < 3 or not values[-2] > max(values[-3], values[-1]):
            self.solve(mp.exp(points[-1]), self.c, accurate=False)
            self.grids = self.used
            values.append(self.log_correlation(points[-1], accurate=False))
            self.grids = None
            points.append(points[-1] + step)
        points.pop()
        return points[-3:], values[-3:]

    def beta_max(self):
        (low, middle, high), (left, top, right) = self.scan()
        x = middle + (high - low) / 4 * (right - left) / (2 * top - left - right)  # vertex of the parabola
        x0 = f0 = None
        for _ in range(60):
            if self.grids is None or high - low > mpf("1e-3"):
                self.grids = None
                self.solve(mp.exp(x), self.c)
                self.grids = self.used
            f = self.slope(x)
            if f > 0:
                low = x
            else:
                high = x
            new = x - f * (x - x0) / (f - f0) if x0 is not None and f != f0 else None
            if new is not None and abs(new - x) < mpf("1e-14"):  # what is left is its square, nearly
                return mp.exp(new)
            if new is None or not low < new < high or abs(new - x) > (high - low) / 2:
                new = (low + high) / 2
            x0, f0, x = x, f, new
        raise ArithmeticError("the maximum was not found")


def compute(point):
    """beta_max of one of ``POINTS``, as a string of 20 digits."""
    visible, hidden, *numbers = point
    with mp.workdps(DIGITS):
        return mp.nstr(Machine(visible, hidden, *(mpf(x) for x in numbers)).beta_max(), 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, metavar="I", help="recompute one point, write nothing")
    only = parser.parse_args().only
    if only is not None:
        stored = json.loads(STORED.read_text()) if STORED.exists() else []
        print(POINTS[only], compute(POINTS[only]), stored[only]["beta_max"] if only < len(stored) else "")
        return
    names = ("visible", "hidden", "alpha", "b", "c")
    rows = []
    for point in POINTS:
        rows.append({**dict(zip(names, point, strict=True)), "beta_max": compute(point)})
        print(rows[-1], flush=True)
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    STORED.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
