"""The sets by name: what is known of each, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rflaf.datasets import sets
from rflaf.datasets.types import File, Info, Raw

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class Entry:
    """A set: its description, the reader of its files, and the scale of its columns.

    Inputs are (column - shift) / scale, target (column - target_shift) / target_scale; both after
    standardising where the set does that.
    """

    info: Info
    read: Callable[[tuple[Path, ...]], Raw]
    scale: float
    shift: float = 0.0
    target_scale: float = 1.0
    target_shift: float = 0.0


def _mnist_file(name: str, sha256: str, size: int) -> File:
    urls = (
        f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz",
        f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}.gz",
    )
    return File(f"mnist/{name}.gz", urls, sha256, size, (File(f"mnist/{name}"),))


ENTRIES = {
    entry.info.name: entry
    for entry in (
        Entry(
            Info(
                "mnist", "classification", 784, 10, 255 * 45,
                "Handwritten digits, 28 × 28 pixels.", "https://yann.lecun.com/exdb/mnist",
                (
                    _mnist_file("train-images-idx3-ubyte", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9912422),
                    _mnist_file("train-labels-idx1-ubyte", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28881),
                    _mnist_file("t10k-images-idx3-ubyte", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1648877),
                    _mnist_file("t10k-labels-idx1-ubyte", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4542),
                ), 70_000,
            ),
            sets.mnist, 255 * 45,
        ),
        Entry(
            Info("adult", "classification", 100, 2, 10.0, "Income above 50,000 dollars, from the census of 1994.",
                 "https://archive.ics.uci.edu/dataset/2/adult",
                 (File("adult/adult.data", (f"{_UCI}/adult/adult.data",), "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", 3974305,
                       (File("adult/adult.data.gz", (), "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3", 408969),)),), 32_561),
            sets.adult, 10.0,
        ),
        Entry(
            Info("protein", "regression", 9, 1, 10.0, "Deviation of predicted protein structures from the true ones.",
                 "https://archive.ics.uci.edu/dataset/265", (File("protein/CASP.csv", (f"{_UCI}/00265/CASP.csv",), None, None,
                       (File("protein/CASP.csv.gz", (), "7c2b7bc2a75f4ea24f943bb275ac9db25b6f3978df8b72663fa85aeaadee9912", 1639405),)),), 45_730),
            sets.protein, 10.0, target_scale=10.0,
        ),
        Entry(
            Info("cifar10", "classification", 3072, 10, 255 * 65, "Colour photographs of ten kinds of things, 32 × 32 pixels.",
                 "https://www.cs.toronto.edu/~kriz/cifar.html",
                 tuple(File(f"cifar10/{n}.bin", (), None, 30_730_000, (File(f"cifar-10-batches-bin/{n}.bin"),))
                       for n in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch")), 60_000),
            sets.cifar10, 255 * 65, 127.5,
        ),
    )
}  # fmt: skip
