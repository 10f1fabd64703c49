"""Data sets, data files and binarization.

The names below are the public ones; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramagnet._lazy import lazy_exports

if TYPE_CHECKING:
    from paramagnet.data.alignment import Alignment as Alignment
    from paramagnet.data.alignment import read_alignment as read_alignment
    from paramagnet.data.alignment import write_fasta as write_fasta
    from paramagnet.data.binarize import Binarizer as Binarizer
    from paramagnet.data.binarize import ConstantDataWarning as ConstantDataWarning
    from paramagnet.data.binarize import fit_binarizer as fit_binarizer
    from paramagnet.data.datasets import Dataset as Dataset
    from paramagnet.data.datasets import load_dataset as load_dataset
    from paramagnet.data.download import DownloadError as DownloadError
    from paramagnet.data.files import read_data as read_data
    from paramagnet.data.files import read_table as read_table
    from paramagnet.data.fitting import ColumnWarning as ColumnWarning
    from paramagnet.data.fitting import fit_preparation as fit_preparation
    from paramagnet.data.kinds import ColumnInfo as ColumnInfo
    from paramagnet.data.kinds import describe_columns as describe_columns
    from paramagnet.data.letters import AlignmentWarning as AlignmentWarning
    from paramagnet.data.preparation import Preparation as Preparation
    from paramagnet.data.sequence_preparation import SequencePreparation as SequencePreparation
    from paramagnet.data.similarity import sequence_weights as sequence_weights
    from paramagnet.data.similarity import site_frequencies as site_frequencies
    from paramagnet.data.summary import log_likelihood_bounds as log_likelihood_bounds

_MODULE_OF = {
    "load_dataset": "datasets",
    "Dataset": "datasets",
    "read_data": "files",
    "read_table": "files",
    "fit_binarizer": "binarize",
    "Binarizer": "binarize",
    "fit_preparation": "fitting",
    "Preparation": "preparation",
    "ColumnWarning": "fitting",
    "describe_columns": "kinds",
    "ColumnInfo": "kinds",
    "log_likelihood_bounds": "summary",
    "ConstantDataWarning": "binarize",
    "DownloadError": "download",
    "read_alignment": "alignment",
    "write_fasta": "alignment",
    "Alignment": "alignment",
    "AlignmentWarning": "letters",
    "sequence_weights": "similarity",
    "site_frequencies": "similarity",
    "SequencePreparation": "sequence_preparation",
}

__all__ = [*_MODULE_OF]

__getattr__, __dir__ = lazy_exports(__name__, _MODULE_OF)
