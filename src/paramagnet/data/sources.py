"""The named data sets: addresses, hashes, sizes, licences, and how each is read.

An entry here is all that a new set needs.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from paramagnet.data.source_readers import draw_toy, read_digits, read_images, read_tables
from paramagnet.data.table import Table

SELECTION_SEED = 0  # of the points selected from a larger set, for everybody who asks for no other

_UCI = "https://archive.ics.uci.edu/static/public"
_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be downloaded: its name, its hash, and the addresses that offer it, best first."""

    name: str
    sha256: str
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class SourceFile:
    """A file of a data set: what it is called, its hash (line ends of text as LF), and what to download.

    ``remote`` is the file itself or, if ``packed``, a zip that has it as a member.
    """

    name: str
    sha256: str
    remote: RemoteFile
    packed: bool = False


@dataclass(frozen=True)
class Source:
    """What is known of a data set before it is loaded.

    ``chosen`` is the number of points that [Y25] learned from, ``per`` what shares a threshold there.
    ``read`` makes a table from the contents of ``files``. Data that are computed have ``draw`` in its place,
    which takes the number of points; ``place`` says where data are that have no files. ``seed`` is that of
    the selection or the draw that everybody gets who asks for none in particular.
    """

    name: str
    title: str
    n_points: int
    n_features: int
    n_classes: int
    chosen: int
    per: str
    licence: str
    reference: str
    files: tuple[SourceFile, ...] = ()
    image_shape: tuple[int, int] | None = None
    grey_range: tuple[float, float] | None = None
    read: Callable[[Source, Sequence[bytes]], Table] = read_tables
    draw: Callable[[int, np.random.Generator], Table] | None = None
    place: str = ""
    seed: int = SELECTION_SEED

    @property
    def folder(self) -> str:
        """The folder of the files, shared by the parts of a set."""
        return self.name.removesuffix("-test")


def _packed(remote: RemoteFile, **members: str) -> tuple[SourceFile, ...]:
    return tuple(SourceFile(name, sha256, remote, packed=True) for name, sha256 in members.items())


def _mnist(part: str, images: str, labels: str) -> tuple[SourceFile, ...]:
    files = ((f"{part}-images-idx3-ubyte.gz", images), (f"{part}-labels-idx1-ubyte.gz", labels))
    return tuple(
        SourceFile(name, sha256, RemoteFile(name, sha256, tuple(f"{base}/{name}" for base in _MNIST)))
        for name, sha256 in files
    )


_DRYBEAN_ZIP = RemoteFile(
    "dry+bean+dataset.zip",
    "0a64eff5be87f48c3dbbfc0a12a56c5d5b5167ef8e61cd45d69b3e7c7130c06f",
    (f"{_UCI}/602/dry+bean+dataset.zip",),
)
_ULC_ZIP = RemoteFile(
    "urban+land+cover.zip",
    "277a27000a4a4b593f655595b92904ccb30ece48b8bb2a35cf5d3854d7204f79",
    (f"{_UCI}/295/urban+land+cover.zip",),
)

_ALL = (
    Source(
        "toy",
        "four patterns of 20 spins, 15 % of the spins flipped",
        400,
        20,
        4,
        400,
        "all",
        "none needed",
        "drawn here as [Y25] section 4.1 says",
        draw=draw_toy,
        place="drawn by the program",
        seed=2025,
    ),
    Source(
        "drybean",
        "Dry Bean: shapes of 13,611 beans",
        13_611,
        16,
        7,
        10_000,
        "feature",
        "CC BY 4.0",
        "Koklu and Ozkan 2020, UCI 602, doi 10.24432/C50S4B",
        _packed(
            _DRYBEAN_ZIP,
            **{"Dry_Bean_Dataset.arff": "b2a4a76a2aedfb8ed415adfc1bfc70b5f202cb00cb72e500766e364c14834014"},
        ),
    ),
    Source(
        "ulc",
        "Urban Land Cover: 675 pieces of an aerial image",
        675,
        147,
        9,
        500,
        "feature",
        "CC BY 4.0",
        "Johnson and Xie 2013, UCI 295, doi 10.24432/C53S48",
        _packed(
            _ULC_ZIP,
            **{
                "training.csv": "d1f89b98e90c3256cc5acd500fa82a673388656b7ae2a7d7f9ab94bf30a2ed90",
                "testing.csv": "785615528b02a9822e9fd31d117c0ddb94a65da4ed03a388e2908c195c733416",
            },
        ),
    ),
    Source(
        "mnist",
        "MNIST: handwritten digits, the training images",
        60_000,
        784,
        10,
        3_000,
        "point",
        "CC BY-SA 3.0",
        "LeCun, Cortes and Burges 1998",
        _mnist(
            "train",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        (28, 28),
        (0.0, 255.0),
        read_images,
    ),
    Source(
        "mnist-test",
        "MNIST: handwritten digits, the test images",
        10_000,
        784,
        10,
        10_000,
        "point",
        "CC BY-SA 3.0",
        "LeCun, Cortes and Burges 1998",
        _mnist(
            "t10k",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        (28, 28),
        (0.0, 255.0),
        read_images,
    ),
    Source(
        "digits",
        "Digits: small handwritten digits that scikit-learn brings along",
        1_797,
        64,
        10,
        1_797,
        "point",
        "CC BY 4.0",
        "Alpaydin and Kaynak 1998, UCI 80, doi 10.24432/C50P49",
        (),
        (8, 8),
        (0.0, 16.0),
        read_digits,
        place="in scikit-learn",
    ),
)

SOURCES = {source.name: source for source in _ALL}


def is_drawn(name: str) -> bool:
    """Whether ``name`` is a set of which there is another draw for every seed."""
    return name in SOURCES and SOURCES[name].draw is not None
