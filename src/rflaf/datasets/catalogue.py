"""The sets by name: what is known of each, and how it is read or made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from rflaf.datasets import sets, synthetic
from rflaf.datasets.types import Dataset, File, Info

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_PAGE = "https://archive.ics.uci.edu/dataset"
_MASKED = "https://raw.githubusercontent.com/treforevans/uci_datasets/master/uci_datasets"


@dataclass(frozen=True)
class Entry:
    """A set: what is known of it, and one function that reads its files or makes it."""

    info: Info
    read: Callable[[tuple[Path, ...]], Dataset] | None = None
    make: Callable[[], Dataset] | None = None


def _forms(path: str, urls: tuple[str, ...], *others: File, **known: str | int) -> File:
    """A file that may also be unpacked, or packed by gzip."""
    plain = path.removesuffix(".zip").removesuffix(".gz")
    names = {f.path for f in others} | {path}
    more = (File(name) for name in (plain, f"{plain}.gz") if name not in names)
    return File(path, urls, variants=(*others, *more), **known)  # type: ignore[arg-type]


def _mnist(name: str, sha256: str, size: int) -> File:
    mirrors = (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    )
    urls = tuple(f"{mirror}/{name}.gz" for mirror in mirrors)
    return _forms(f"mnist/{name}.gz", urls, sha256=sha256, bytes=size)


def _cifar10(name: str) -> File:
    """One of the batches, alone or in the archive of all."""
    archive, folder = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
    packed = File(
        f"cifar10/{archive}",
        (f"https://www.cs.toronto.edu/~kriz/{archive}",),
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        170_052_171,
    )
    alone = (File(f"{where}/{name}") for where in (folder, f"cifar10/{folder}"))
    other = File(archive, (), packed.sha256, packed.bytes)
    return File(f"cifar10/{name}", variants=(*alone, packed, other))


def _zipped(path: str, url: str, table: str) -> File:
    """An archive with a table, which may be there alone."""
    return File(path, (f"{_UCI}/{url}",), variants=(File(table), File(f"{table}.gz")))


def _masked(
    name: str,
    inputs: int,
    description: str,
    rows: int,
    data: tuple[str, int],
    mask: tuple[str, int],
) -> Entry:
    """Two files: the table, and ten masks. The collection keeps them under other names."""
    files = tuple(
        File(
            f"uci/{name}{ending}.csv.gz", (), sha256, size,
            (File(f"uci/{name}/{theirs}.csv.gz", (f"{_MASKED}/{name}/{theirs}.csv.gz",)),),
        )
        for ending, theirs, (sha256, size) in (
            ("", "data", data), (".mask", "test_mask", mask),
        )
    )  # fmt: skip
    source = "https://github.com/treforevans/uci_datasets"
    info = Info(name, "regression", inputs, 1, description, source, files, rows)
    return Entry(info, partial(sets.masked, columns=inputs + 1))


def _of_files() -> list[Entry]:
    """The sets of the paper that are read from files, and covtype."""
    mnist = (
        ("train-images-idx3-ubyte",
         "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9_912_422),
        ("train-labels-idx1-ubyte",
         "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881),
        ("t10k-images-idx3-ubyte",
         "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1_648_877),
        ("t10k-labels-idx1-ubyte",
         "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542),
    )  # fmt: skip
    adult = _forms(
        "adult/adult.data", (f"{_UCI}/adult/adult.data",),
        File("adult/adult.data.gz", (),
             "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3", 408_969),
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", bytes=3_974_305,
    )  # fmt: skip
    protein = _forms(
        "protein/CASP.csv", (f"{_UCI}/00265/CASP.csv",),
        File("protein/CASP.csv.gz", (),
             "7c2b7bc2a75f4ea24f943bb275ac9db25b6f3978df8b72663fa85aeaadee9912", 1_639_405),
    )  # fmt: skip
    ct = _zipped(
        "ct/slice_localization_data.zip", "00206/slice_localization_data.zip",
        "ct/slice_localization_data.csv",
    )  # fmt: skip
    workloads = _zipped(
        "workloads/datasets.zip", "00493/datasets.zip", "workloads/Range-Queries-Aggregates.csv"
    )
    songs = "YearPredictionMSD.txt.zip"
    covtype = _forms(
        "covtype/covtype.data.gz",
        (f"{_UCI}/covtype/covtype.data.gz", "https://ndownloader.figshare.com/files/5976039"),
        sha256="614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
    )
    return [
        Entry(Info(
            "mnist", "classification", 784, 10, "Handwritten digits, 28 × 28 pixels.",
            "https://yann.lecun.com/exdb/mnist", tuple(_mnist(*each) for each in mnist), 70_000,
        ), sets.mnist),
        Entry(Info(
            "cifar10", "classification", 3072, 10,
            "Colour photographs of ten kinds of things, 32 × 32 pixels.",
            "https://www.cs.toronto.edu/~kriz/cifar.html", tuple(map(_cifar10, sets.CIFAR10)),
            60_000,
        ), sets.cifar10),
        Entry(Info(
            "adult", "classification", 100, 2,
            "Income above 50,000 dollars, from the census of 1994.",
            f"{_PAGE}/2/adult", (adult,), 32_561,
        ), sets.adult),
        Entry(Info(
            "protein", "regression", 9, 1,
            "Deviation of predicted protein structures from the true ones, in Å.",
            f"{_PAGE}/265", (protein,), 45_730,
        ), sets.protein),
        Entry(Info(
            "ct", "regression", 384, 1, "Position of a computer-tomography slice in the body.",
            f"{_PAGE}/206", (ct,), 53_500,
        ), sets.ct),
        Entry(Info(
            "workloads", "regression", 6, 1, "Averages that range queries to a data base return.",
            f"{_PAGE}/493", (workloads,), 200_000,
        ), sets.workloads),
        Entry(Info(
            "millionsongs", "regression", 90, 1, "Year of a song from its timbre.",
            f"{_PAGE}/203", (_forms(f"millionsongs/{songs}", (f"{_UCI}/00203/{songs}",)),), 515_345,
        ), sets.millionsongs),
        Entry(Info(
            "covtype", "classification", 54, 7,
            "Kind of forest on a patch of 30 × 30 m, from a map.",
            f"{_PAGE}/31/covertype", (covtype,), 581_012,
        ), sets.covtype),
    ]  # fmt: skip


_PAPER = "https://arxiv.org/abs/2411.19468"
_X = "8b0d19dd36f19e03f8ca96efb15a37172295a4203fb2fc58854a59702f2e55b8"
_AUTHORS = {
    "f1": ("sin", "bc246599523990c7f0e4d59ea73f320c61ada91aafe99c663cd40c0a5671534e"),
    "f2": ("tru", "ad63295eba2c49d9c9cec24256f6f50337a47b47e99a7a73c2673a1676613d13"),
    "f3": ("zoi", "a4deb3c019aebb0d4de53d1b8985bbeab5677b03962553d39c4a8cadfa6cfa6b"),
}


def _synthetic(name: str) -> Entry:
    description = f"The paper's {name}(x) = E[sigma(w·x) v(w)] in two dimensions, sigma known."
    sigma = synthetic.TARGETS[name].sigma
    info = Info(name, "regression", 2, 1, description, _PAPER, (), synthetic.N_POINTS, sigma)
    return Entry(info, make=partial(synthetic.make, name))


def _authors(name: str) -> Entry:
    theirs, digest = _AUTHORS[name]
    files = (
        File(f"synthetic/X_{theirs}.npy", (), _X, 120_128),
        File(f"synthetic/y_{theirs}.npy", (), digest, 60_128),
    )
    info = Info(
        f"{name}-authors", "regression", 2, 1,
        f"The authors' own arrays of {name}, by sampling.", _PAPER, files, 15_000,
        synthetic.TARGETS[name].sigma,
    )  # fmt: skip
    return Entry(info, sets.authors_arrays)


def _make_small(name: str) -> Dataset:
    """The rows as scikit-learn, or the file here, has them."""
    if name == "airfoil":
        file = Path(__file__).with_name("airfoil.csv")
        header = file.read_text(encoding="utf-8").partition("\n")[0].split(",")
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
        return Dataset(rows[:, :-1], rows[:, -1], tuple(header[:-1]), is_number=np.ones(5, bool))
    from sklearn import datasets  # takes a while, and most sets do without

    if name == "friedman1":
        inputs, target = datasets.make_friedman1(2000, noise=1.0, random_state=0)
        names = [f"x{k}" for k in range(10)]
    else:
        bunch = getattr(datasets, f"load_{name}")()
        inputs, target, names = bunch.data, bunch.target, bunch.feature_names
    return Dataset(inputs, target, tuple(map(str, names)), is_number=np.ones(inputs.shape[1], bool))


def _small() -> list[Entry]:
    """Small sets that ship with scikit-learn or this package, for demonstrations and tests."""
    page = "https://scikit-learn.org/stable/datasets"
    uci = "https://archive.ics.uci.edu/dataset/291/airfoil+self+noise"
    infos = [
        Info("airfoil", "regression", 5, 1, "Noise of airfoils in a wind tunnel.", uci, (), 1503),
        Info("diabetes", "regression", 10, 1, "Progress of diabetes in a year.", page, (), 442),
        Info("friedman1", "regression", 10, 1, "Friedman's first function.", page, (), 2000),
        Info("digits", "classification", 64, 10, "Digits, 8 × 8 pixels.", page, (), 1797),
        Info("breast_cancer", "classification", 30, 2, "Tumours.", page, (), 569),
        Info("wine", "classification", 13, 3, "Wines of three growers.", page, (), 178),
        Info("iris", "classification", 4, 3, "Three kinds of iris.", page, (), 150),
    ]
    return [Entry(info, make=partial(_make_small, info.name)) for info in infos]


ENTRIES: dict[str, Entry] = {
    entry.info.name: entry
    for entry in (
        *_of_files(),
        *(_synthetic(name) for name in synthetic.TARGETS),
        *(_authors(name) for name in synthetic.TARGETS),
        _masked(
            "kin40k", 8, "Forward kinematics of a robot arm with eight joints.", 40_000,
            ("9bee7f2a9f39aa61a015f239378368601fb3978c5bb9a96433e88a55d40883ba", 1_144_601),
            ("d15fd645d0e81a9a17ce2d0b8dde470bb2efba4d5f417459965abe4b237e2aea", 49_598),
        ),
        _masked(
            "bike", 17, "Rented bicycles in an hour.", 17_379,
            ("411f76ae426c0e348a2629dcf6b3b29102c7db465eae780a3454c39db1dfac4f", 403_769),
            ("cf13dc25e80c03019cf2b01666f9cc29b03ea222f5c519536023ea56669bf337", 21_560),
        ),
        *_small(),
    )
}  # fmt: skip
