"""The specifications of the study of starts."""

from __future__ import annotations

import pytest

from paramagnet.reproduction.paper_specs import find_spec
from studies.starts.specs_of_study import read_study_spec, study_specs
from studies.starts.study_plan import STUDY_SPARSE


def test_the_study_shares_runs_with_the_paper():
    for name in ("toy_spin", "toy_bit_c0", "drybean_spin", "drybean_bit"):
        paper, study = find_spec(name), read_study_spec(f"win/{name}")
        shared = {run.digest for run in study.runs()} & {run.digest for run in paper.runs()}
        cells = len(study.n_hidden) * len(study.hidden_bias)
        assert len(shared) == cells * study.trials * (len(paper.gains) + len(paper.rivals))


@pytest.mark.parametrize("name", study_specs())
def test_study_compares_the_same_starts_everywhere(name):
    spec, first = read_study_spec(name), read_study_spec("win/toy_spin")
    gains_only = name in STUDY_SPARSE
    assert (spec.rivals, spec.starts) == (((), ()) if gains_only else (first.rivals, first.starts))
    assert set(spec.gains) <= set(first.gains)
    assert len(first.gains) == 9
    assert {0.5, 0.7071, 1.0} <= set(spec.gains)
