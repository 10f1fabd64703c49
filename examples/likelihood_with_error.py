"""Two machines, one set of points: which is the better model, and is the difference larger than its error?

The machines have 64 visible and 40 hidden units, too many to enumerate, so ln Z is estimated by mAIS. Needs
scikit-learn for the digits: pip install ".[sklearn]" in a checkout
"""

from __future__ import annotations

import math

import numpy as np

import paramagnet as pm


def main() -> None:
    digits = pm.load_dataset("digits", n_points=1000)
    held_out = digits.held_out
    each, errors = [], []
    for gain in (1.0, 0.1):
        start = pm.initialize(64, 40, hidden_bias=-2.0, gain=gain, rng=1)
        result = pm.train(
            start,
            digits.data,
            epochs=10,
            batch_size=100,
            gradient=pm.CD(1),
            optimizer=pm.Adam(0.01),
            evaluate=[],
            rng=2,
        )
        log_z = pm.estimate_log_partition(result.rbm, n_samples=500, n_temperatures=300, rng=3)
        estimate = pm.log_likelihood(result.rbm, held_out, log_partition=log_z)
        print(f"gain {gain:3g}: {estimate:.3f} nats per point")
        each.append(-result.rbm.free_energy(held_out) - log_z.value)
        errors.append(log_z.error)
    difference = each[0] - each[1]
    of_points = difference.std(ddof=1) / math.sqrt(len(difference))
    of_log_z = math.hypot(*errors)
    print(f"first minus second: {np.mean(difference):.3f} nats per point")
    print(f"  +- {of_log_z:.3f} from ln Z, +- {of_points:.3f} from having {len(difference)} points")
    sure = abs(np.mean(difference)) > 2.0 * math.hypot(of_log_z, of_points)
    print("more than two errors apart" if sure else "not to be told apart")


if __name__ == "__main__":
    main()
