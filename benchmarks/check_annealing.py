"""The paper's check of mAIS again: trained machines of Urban Land Cover measured with S = K = 10,000 too.

    python benchmarks/check_annealing.py [--spec ulc_bit] [--gain 1] [--out results]

Machines that are already in the file are skipped. One of them takes some minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paramagnet.reproduction.annealing_check import FILE, check_annealing, load_checks, save_checks
from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.spec import OURS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spec", nargs="+", default=["ulc_spin", "ulc_bit"])
    parser.add_argument("--gain", nargs="+", type=float, default=[1.0])
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    checks = load_checks(options.out / FILE)
    done = {(c.dataset, c.n_hidden, c.hidden, c.c, c.scheme, c.gain, c.trial) for c in checks}
    for name in options.spec:
        for run in find_spec(name).runs(trials=options.trials, part="paper"):
            key = (run.data.name, run.n_hidden, run.hidden, run.hidden_bias, OURS, run.gain, run.trial)
            if run.gain in options.gain and key not in done:
                check = check_annealing(run)
                checks.append(check)
                save_checks(checks, options.out / FILE)
                print(f"{run.describe()}: {100 * check.change:+.3f} % +- {100 * check.change_error:.3f}")


if __name__ == "__main__":
    main()
