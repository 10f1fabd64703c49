"""The paper's check of mAIS again: trained machines measured with S = K = 10,000 too.

    python benchmarks/check_annealing.py [--spec ulc_bit] [--gain 1] [--out results]
    python benchmarks/check_annealing.py --spec mnist_spin --epoch 40 --large 3000 10000 --chains 1000 \\
        --state STATES --minutes 4

Machines that are already in the file are skipped. A machine of Urban Land Cover takes some minutes, one of
MNIST half an hour of one core. With ``--state`` the training and the groups of chains that are finished are
kept in that folder, and with ``--minutes`` the command ends in time; repeat it to go on.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

from paramagnet.reproduction.annealing_check import (
    FILE,
    LARGE,
    Pieces,
    check_annealing,
    load_checks,
    save_checks,
)
from paramagnet.reproduction.paper_specs import find_spec
from paramagnet.sweeps.execute import Stop, Stopped
from paramagnet.sweeps.spec import OURS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spec", nargs="+", default=["ulc_spin", "ulc_bit"])
    parser.add_argument("--gain", nargs="+", type=float, default=[1.0])
    parser.add_argument("--bias", nargs="+", type=float, help="hidden biases c; all where left out")
    parser.add_argument("--epoch", type=int, help="measured after this one; the last where left out")
    parser.add_argument("--large", nargs=2, type=int, metavar=("S", "K"), help="in place of 10,000 each")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--state", default="", help="folder for unfinished work")
    parser.add_argument("--chains", type=int, help="most chains of a group; all where left out")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--threads", type=int, help="threads of an estimate; all cores where left out")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    checks = load_checks(options.out / FILE)
    done = {(c.dataset, c.n_hidden, c.hidden, c.c, c.scheme, c.gain, c.trial, c.epoch) for c in checks}
    pieces = Pieces(options.state, options.chains, Stop(deadline=time.time() + 60.0 * options.minutes))
    for name in options.spec:
        for run in find_spec(name).runs(trials=options.trials, part="paper"):
            epoch = options.epoch or max(run.measurement.epochs)
            key = (run.data.name, run.n_hidden, run.hidden, run.hidden_bias, OURS, run.gain, run.trial, epoch)
            wanted = run.gain in options.gain and (options.bias is None or run.hidden_bias in options.bias)
            if wanted and key not in done:
                efforts = (run.measurement.effort(max(run.measurement.epochs)), tuple(options.large or LARGE))
                try:
                    check = check_annealing(
                        run, epoch=epoch, efforts=efforts, n_threads=options.threads, pieces=pieces
                    )
                except Stopped:
                    print(f"{run.describe()}: not finished; repeat the command to go on")
                    raise SystemExit(3) from None
                checks.append(check)
                save_checks(checks, options.out / FILE)
                print(f"{run.describe()}: {100 * check.change:+.3f} % +- {100 * check.change_error:.3f}")


if __name__ == "__main__":
    main()
