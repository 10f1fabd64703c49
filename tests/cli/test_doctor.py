"""``paramagnet doctor``."""

import json

import pytest
from typer.testing import CliRunner

from paramagnet.cli import app, doctor_command
from paramagnet.estimates import Estimate

runner = CliRunner()


def test_all_facts_are_there_and_the_trial_works():
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    for words in (
        "paramagnet: 0.",
        "numba: ",
        "threads: ",
        "sampling: ",
        "compiled code: ",
        "Everything works.",
    ):
        assert words in result.output
    assert "ln Z by mAIS less the exact one: " in result.output


def test_json_holds_the_same():
    result = runner.invoke(app, ["doctor", "--json", "--no-warm-up"])
    facts = json.loads(result.output)
    assert set(facts) == {"versions", "extras", "data", "kernels"}
    assert set(facts["extras"]) == set(doctor_command._EXTRAS)


def test_missing_extra_comes_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(doctor_command, "_EXTRAS", {"sweep": ("no_such_package",)})
    result = runner.invoke(app, ["doctor", "--no-warm-up"])
    assert 'not installed (no_such_package): pip install ".[sweep]" in a checkout' in result.output


def test_named_folder_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setenv("PARAMAGNET_DATA", "no/such/folder")
    result = runner.invoke(app, ["doctor", "--no-warm-up"])
    assert "no/such/folder, which is not a folder" in result.output


def test_kernels_that_the_environment_forbids_are_named(monkeypatch):
    monkeypatch.setenv("PARAMAGNET_KERNELS", "portable")
    result = runner.invoke(app, ["doctor", "--no-warm-up"])
    assert "portable (PARAMAGNET_KERNELS asks for them)" in result.output


@pytest.mark.parametrize("place", ["likelihood.log_likelihood", "evaluation.LogZ.__call__"])
def test_wrong_numbers_are_found(monkeypatch, place):
    values = iter([float("nan"), float("nan")] if "likelihood" in place else [1.0, 100.0, 1.0, 100.0])
    monkeypatch.setattr(
        f"paramagnet.learning.{place}", lambda *args, **options: Estimate(next(values, 1.0), 0.01)
    )
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "Something is wrong: " in result.output


def test_extras_are_those_of_the_package():
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    named = project["project"]["optional-dependencies"]
    assert set(doctor_command._EXTRAS) == set(named) - {"all"}
