"""The error of an adapter whose package is not installed."""

from __future__ import annotations


def missing_extra(what: str, package: str, extra: str) -> ImportError:
    """The error of ``what``, which needs ``package`` and so the extra ``extra``."""
    return ImportError(f'{what} needs {package}: pip install "paramagnet[{extra}]".')
