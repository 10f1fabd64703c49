"""What the study of starts runs, in which order."""

from __future__ import annotations

from paramagnet.reproduction.plan import Stage

# Beyond the paper: more starts; some of these settings with larger learning rates; other sparse layers.
STUDY_EXACT = (
    "win/toy_spin", "win/toy_bit_c0", "win/toy_bit_c5", "win/drybean_spin", "win/drybean_bit",
    "win/digits_spin", "win/digits_bit",
)  # fmt: skip

STUDY_RATES = (
    "win/toy_rate3", "win/toy_rate10", "win/drybean_rate3", "win/drybean_rate10", "win/digits_rate3",
    "win/digits_rate10",
)  # fmt: skip

STUDY_SPARSE = ("win/toy_sparse", "win/drybean_sparse", "win/digits_sparse")

STUDY_SAMPLED = ("win/digits_wide", "win/ulc_spin", "win/ulc_bit", "win/mnist_spin", "win/mnist_bit")


def _study(specs: tuple[str, ...], few: int) -> tuple[Stage, ...]:
    """A few trials of one after the other, then all; what the paper's own sweeps may have run comes last."""
    parts = ("starts", "rivals", "paper")
    return tuple(Stage(spec, part, trials) for trials in (few, None) for spec in specs for part in parts)


PLANS: dict[str, tuple[Stage, ...]] = {}
PLANS["win-exact"] = (*_study(STUDY_EXACT, 3), *_study(STUDY_RATES, 3), *_study(STUDY_SPARSE, 3))
PLANS["win-sampled"] = _study(STUDY_SAMPLED, 1)
PLANS["win"] = (*PLANS["win-exact"], *PLANS["win-sampled"])
