"""Memory of training on many points of one byte a number: nowhere a copy in float64."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import re, sys
import numpy as np
import paramagnet as pm

def status(key):
    return 1024 * int(re.search(key + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1])

points, rng = np.empty((100_000, 100), sys.argv[1]), np.random.default_rng(0)
for rows in np.split(points, 100):
    rows[:] = rng.random(rows.shape) < 0.3
gradients = {"PCD": pm.PCD(100, 1, n_relax=5), "CD": pm.CD(1)}
options = dict(gradient=gradients[sys.argv[2]], evaluate=[1] if sys.argv[3] == "measured" else [])
options |= dict(epochs=1, batch_size=1000, rng=0)
rbm = pm.initialize(100, 20, visible="bit", hidden="bit", rng=0)
pm.train(rbm, points[:5000], **options)
idle = status("VmRSS")
pm.train(rbm, points, **options)
print((status("VmHWM") - idle) / points.size)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("kind", "gradient", "measured", "most"),
    # Two bytes for every number: the values that were checked, and which of them are high. A measurement of
    # the likelihood takes some blocks of points in float64 besides, about 20 MB for any number of points.
    [("uint8", "PCD", "", 3.0), ("int8", "CD", "", 3.0), ("uint8", "PCD", "measured", 5.0)],
)
def test_no_copy_in_float64_of_points_of_one_byte(kind, gradient, measured, most):
    """The peak of training in bytes for every number of the data, which have one byte each themselves."""
    command = [sys.executable, "-c", CODE, kind, gradient, measured]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 1.0 < float(found.stdout) < most
