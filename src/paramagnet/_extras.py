"""What to say where an optional package is not installed.

The package is on no index yet, so its extras are installed from a checkout. Once it is, `how_to_install` is
the one place to change.
"""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """The command that installs an extra, and where to type it."""
    return f'pip install ".[{extra}]" in a checkout of paramagnet'


def missing_extra(what: str, package: str, extra: str) -> ImportError:
    """The error of ``what``, which needs ``package`` and so the extra ``extra``."""
    return ImportError(f"{what} needs {package}: {how_to_install(extra)}.")
