"""The specifications of the study of starts; their records are named ``win/...``."""

from __future__ import annotations

from pathlib import Path

from paramagnet.sweeps.spec import Spec
from paramagnet.sweeps.spec_files import parse_spec

STUDY = "win"  # the first part of the names, and the folder of the records
FOLDER = Path(__file__).parent / "specs"


def study_specs() -> tuple[str, ...]:
    """Their names, which begin with "win/"."""
    return tuple(sorted(f"{STUDY}/{path.stem}" for path in FOLDER.glob("*.toml")))


def read_study_spec(name: str) -> Spec:
    """The specification of that name."""
    if name not in study_specs():
        raise ValueError(f"`name` must be one of {', '.join(study_specs())}, got {name!r}.")
    text = (FOLDER / f"{name.removeprefix(f'{STUDY}/')}.toml").read_text(encoding="utf-8")
    return parse_spec(text, name)
