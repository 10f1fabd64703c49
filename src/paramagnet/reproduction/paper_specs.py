"""The specifications of the paper's tables and figures, ``specs/*.toml``.

Each is to be read beside [Y25] section 4: M. Yasuda, R. Maeno and C. Takahashi, Neural Networks 187 (2025)
107297.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from paramagnet._checks import near_names
from paramagnet.sweeps.spec import Spec
from paramagnet.sweeps.spec_files import parse_spec, read_spec


def paper_specs() -> tuple[str, ...]:
    """The names of the specifications of the paper's tables and figures."""
    return names_in(files("paramagnet.reproduction") / "specs")


def names_in(folder: Traversable) -> tuple[str, ...]:
    """The names of the specifications in a folder."""
    names = (item.name for item in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def find_spec(source: str | Path) -> Spec:
    """The paper's specification of that name, or the one in the file of that path."""
    path = Path(source)
    if path.suffix != ".toml":
        known = paper_specs()
        if str(source) not in known:
            raise ValueError(
                f"`spec` must be a specification of the paper's, such as {known[0]}, or the path of a .toml "
                f"file, got {str(source)[:100]!r}{near_names(str(source)[:100], known)}."
            )
        text = (files("paramagnet.reproduction") / "specs" / f"{source}.toml").read_text(encoding="utf-8")
        return parse_spec(text, str(source))
    if path.is_file() and path.stem in paper_specs():
        raise ValueError(
            f"`spec` must not have the name of a specification of the paper's, got {path.name}. Rename it: "
            "its records would be taken for the paper's."
        )
    return read_spec(path)
