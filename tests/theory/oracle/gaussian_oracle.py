"""beta_max of machines with a Gaussian layer to 15 digits, slowly: an oracle that shares nothing with the
package.

It knows the saddle-point equations and what is maximized, and nothing else. A Gaussian unit of variance s
in the field h = d + z sqrt(qhat) and the curvature (Qhat - qhat)/2 has the density p0(x) exp(h x + (Qhat -
qhat) x^2/2): its averages are taken by hand. The binary layer's are sums of the trapezoid rule over
multiprecision numbers. The saddle point is a root of two equations in (q, Q) of the binary layer, by
Newton's method with differences, from plain successive substitution. What is maximized is a five-point
difference in the bias of the binary layer, at fixed beta,

    of the Gaussian layer's overlap q        (bits beside it),
    of its magnetization                     (spins beside it, biases in both layers),

and beta_max is the root of a five-point difference of its logarithm in ln(beta), by the secant method.

    python tests/theory/oracle/gaussian_oracle.py              rewrites gaussian.json beside this file
    python tests/theory/oracle/gaussian_oracle.py --only 3     recomputes one point, beside the stored one
"""

import argparse
import json
from pathlib import Path

from mpmath import mp, mpf

DIGITS = 34
STORED = Path(__file__).with_name("gaussian.json")

# visible, hidden, variance of the Gaussian units, alpha, b, c, a rough beta to start from
POINTS = [
    ("gaussian", "bit", "1", "1", "0", "-2", "1.9"),
    ("gaussian", "bit", "1", "0.37", "0", "0.6", "1.5"),
    ("gaussian", "bit", "2.5", "2.2", "0.4", "-1.1", "1.1"),
    ("bit", "gaussian", "1", "1.7", "-1.2", "0", "1.7"),
    ("gaussian", "spin", "1", "0.8", "0.3", "0.2", "1.0"),
    ("spin", "gaussian", "0.6", "1.5", "-0.2", "0.25", "1.3"),
]


class Machine:
    """A Gaussian layer (variance s, bias d) above a binary one (bias e); ratio = binary units per
    Gaussian unit.
    """

    def __init__(self, unit, s, ratio, d, e):
        self.unit, self.s, self.ratio, self.d, self.e = unit, s, ratio, d, e
        step, reach = mpf("0.21"), 13
        nodes = [k * step for k in range(-int(reach / step), int(reach / step) + 1)]
        self.nodes = [(z, mp.exp(-z * z / 2) * step / mp.sqrt(2 * mp.pi)) for z in nodes]
        self.guess = mpf("0.1"), mpf("0.4") if unit == "bit" else mpf(1)

    def around(self, beta, e, q, Q):
        """From the binary layer's (q, Q) to the Gaussian layer and back: (q, Q, q of the Gaussian layer,
        its M).
        """
        to_gaussian = beta**2 * self.ratio / (1 + self.ratio)
        to_binary = beta**2 / (1 + self.ratio)
        width = 1 / (1 / self.s - to_gaussian * (Q - q))
        above = width**2 * (self.d**2 + to_gaussian * q)
        qhat, Qhat = to_binary * above, to_binary * (above + width)
        root = mp.sqrt(qhat)
        first = second = mpf(0)
        for z, weight in self.nodes:
            h = e + z * root
            m = mp.tanh(h) if self.unit == "spin" else 1 / (1 + mp.exp(-h - (Qhat - qhat) / 2))
            first += weight * m
            second += weight * m * m
        return second, (first if self.unit == "bit" else mpf(1)), above, width * self.d

    def solve(self, beta, e):
        q, Q = self.guess
        if self.unit == "spin":
            q = mp.findroot(
                lambda x: self.around(beta, e, x, 1)[0] - x, (q, q * mpf("1.01")), tol=mpf(10) ** -60
            )
            self.guess = q, mpf(1)
            return self.around(beta, e, q, mpf(1))

        def miss(x, y):
            new = self.around(beta, e, x, y)
            return new[0] - x, new[1] - y

        tiny = mpf("1e-12")
        for _ in range(40):
            f, g = miss(q, Q)
            f_q, g_q = ((b - a) / tiny for a, b in zip((f, g), miss(q + tiny, Q), strict=True))
            f_Q, g_Q = ((b - a) / tiny for a, b in zip((f, g), miss(q, Q + tiny), strict=True))
            determinant = f_q * g_Q - f_Q * g_q
            change = (f_Q * g - g_Q * f) / determinant, (g_q * f - f_q * g) / determinant
            q, Q = q + change[0], Q + change[1]
            if max(abs(change[0]), abs(change[1])) < mpf("1e-24"):  # what is left is 1e-12 of it
                break
        self.guess = q, Q
        return self.around(beta, e, q, Q)

    def prepare(self, beta):
        """Plain substitution, with damping, to start Newton's method."""
        q, Q = self.guess
        with mp.workdps(15):
            for _ in range(400):
                new = self.around(beta, self.e, q, Q)
                q, Q = (q + new[0]) / 2, (Q + new[1]) / 2
        self.guess = q, Q

    def maximized(self, beta):
        step, which = mpf("1e-5"), 2 if self.unit == "bit" else 3
        f = {k: self.solve(beta, self.e + k * step)[which] for k in (-2, -1, 1, 2)}
        return (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * step)

    def slope(self, log_beta):
        step = mpf("1e-4")
        f = {k: mp.log(abs(self.maximized(mp.exp(log_beta + k * step)))) for k in (-2, -1, 1, 2)}
        return (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * step)

    def beta_max(self, rough):
        self.prepare(rough)
        x = mp.log(rough)
        root = mp.findroot(self.slope, (x, x + mpf("0.01")), tol=mpf("1e-22"), maxsteps=40)
        return mp.exp(root)


def compute(point):
    """beta_max of one of ``POINTS``, as a string of 15 digits."""
    visible, hidden, *numbers = point
    with mp.workdps(DIGITS):
        s, alpha, b, c, rough = (mpf(x) for x in numbers)
        if visible == "gaussian":
            machine = Machine(hidden, s, alpha, b, c)
        else:
            machine = Machine(visible, s, 1 / alpha, c, b)
        return mp.nstr(machine.beta_max(rough), 15)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, metavar="I", help="recompute one point, write nothing")
    only = parser.parse_args().only
    if only is not None:
        stored = json.loads(STORED.read_text()) if STORED.exists() else []
        print(POINTS[only], compute(POINTS[only]), stored[only]["beta_max"] if only < len(stored) else "")
        return
    names = ("visible", "hidden", "variance", "alpha", "b", "c")
    rows = []
    for point in POINTS:
        rows.append({**dict(zip(names, point, strict=False)), "beta_max": compute(point)})
        print(rows[-1], flush=True)
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    STORED.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
