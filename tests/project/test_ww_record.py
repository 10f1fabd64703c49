"""The page of the WW domain has the numbers of the record."""

import importlib.util
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = json.loads((ROOT / "benchmarks" / "data" / "ww_domain.json").read_text("utf-8"))


def load_script(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    spec = importlib.util.spec_from_file_location("ww_domain", ROOT / "benchmarks" / "ww_domain.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_table_of_the_record(monkeypatch):
    page = (ROOT / "docs" / "ww_domain.md").read_text("utf-8")
    script = load_script(monkeypatch)
    rows = script.table(RECORD)
    assert len(rows) == 1 + 10 + 3
    for row in [*rows, *script.course(RECORD), *script.contact_rows(RECORD)]:
        assert row in page, row


def test_estimates_behind_the_table_can_be_trusted():
    """Each run at the time that is best on the validation sequences."""
    for key, points in RECORD["runs"].items():
        best = max(points, key=lambda point: point["validation"])
        assert best["error"] < 0.06, key
        assert best["n_effective"] > 100, key


def test_the_page_states_the_effective_chains_of_the_last_column():
    page = (ROOT / "docs" / "ww_domain.md").read_text("utf-8")
    last = sorted((points[-1]["n_effective"], points[-1]["error"]) for points in RECORD["runs"].values())
    worst, others = last[0], last[1:]
    assert f"{worst[0]:.0f} effective chains and an error of {worst[1]:.2f} nats" in page
    assert f"rest on {others[0][0]:.0f} or more" in page
    assert max(error for _, error in others) < 0.06
