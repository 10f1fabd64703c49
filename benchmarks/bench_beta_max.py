"""beta_max against a plain implementation: successive substitution to 1e-12, a 2001-point trapezoid
on [-10, 10], a grid of 300 betas up to 8, then golden section. The plain one is first checked to be right.

    python benchmarks/bench_beta_max.py [--rounds N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

import paramagnet as pm
from ratio import interleave, print_ratios, write_json

Z = np.linspace(-10.0, 10.0, 2001)
PHI = np.exp(-0.5 * Z * Z) / np.sqrt(2.0 * np.pi) * (Z[1] - Z[0])
BETAS = np.linspace(8.0 / 300, 8.0, 300)


def plain_slope(beta: float, alpha: float, c: float) -> float:
    """|d chi_vh/db| at b = 0 for spin visible and bit hidden units."""
    to_v, to_h = beta**2 * alpha / (1 + alpha), beta**2 / (1 + alpha)
    q_v = 0.5
    for _ in range(100_000):
        h = 1.0 / (1.0 + np.exp(-(c + 0.5 * to_h * (1.0 - q_v) + Z * np.sqrt(to_h * q_v))))
        v = np.tanh(Z * np.sqrt(to_v * (PHI @ h**2)))
        new = PHI @ v**2
        if abs(new - q_v) < 1e-12:
            break
        q_v = new
    w_v = PHI @ (1.0 - 4.0 * v**2 + 3.0 * v**4)
    w_h = PHI @ (h**2 - 4.0 * h**3 + 3.0 * h**4)
    u_h = PHI @ (h * (h - h**2))
    return abs(2.0 * beta**2 * alpha / (1 + alpha) ** 2 * w_v * u_h / (1.0 - to_v * to_h * w_v * w_h))


def plain_beta_max(alpha: float, c: float) -> float:
    best = int(np.argmax([plain_slope(beta, alpha, c) for beta in BETAS]))
    low, high = BETAS[max(best - 1, 0)], BETAS[min(best + 1, BETAS.size - 1)]
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    a, b = high - golden * (high - low), low + golden * (high - low)
    f_a, f_b = plain_slope(a, alpha, c), plain_slope(b, alpha, c)
    while high - low > 1e-8:
        if f_a > f_b:
            high, b, f_b = b, a, f_a
            a = high - golden * (high - low)
            f_a = plain_slope(a, alpha, c)
        else:
            low, a, f_a = a, b, f_b
            b = low + golden * (high - low)
            f_b = plain_slope(b, alpha, c)
    return 0.5 * (low + high)


def seconds_of(code: str, repeats: int) -> float:
    """The fastest of some fresh processes, as the process itself measures."""
    timed = f"import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True)
        for _ in range(repeats)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    results: dict[str, object] = {}
    for alpha, c in ((1.0, 0.0), (0.5, -2.0), (1.0, -5.0)):
        assert abs(plain_beta_max(alpha, c) - pm.beta_max(alpha, c=c)) < 1e-6
        rivals = {
            "plain": lambda a=alpha, c=c: plain_beta_max(a, c),
            "paramagnet": lambda a=alpha, c=c: pm.beta_max(a, c=c),
        }
        times = interleave(rivals, rounds=rounds, at_least=0.5)
        print_ratios(f"beta_max({alpha:g}, c={c:g})", times, reference="plain")
        results[f"beta_max({alpha:g}, c={c:g})"] = times
    alphas, cs = np.linspace(0.25, 3.0, 12)[:, None], np.linspace(0.0, -6.0, 7)
    table = interleave({"12 x 7 table in one call": lambda: pm.beta_max(alphas, c=cs)}, rounds=10)
    print_ratios("appendix C", table, reference="12 x 7 table in one call")
    numpy_alone = seconds_of("import numpy", 10)
    imports = {
        "import numpy": numpy_alone,
        "import paramagnet, beyond numpy": seconds_of("import numpy, paramagnet", 10) - numpy_alone,
        "first beta_max of a process": seconds_of("import paramagnet; paramagnet.beta_max(1.0, c=-5.0)", 10),
    }
    for name, seconds in imports.items():
        print(f"  {name:32s} {1e3 * seconds:9.1f} ms")
    results |= {"table": table, "imports": imports}
    out = Path("bench-output")
    out.mkdir(exist_ok=True)
    write_json(out / "beta_max.json", results, "paramagnet", "numpy")


if __name__ == "__main__":
    main()
