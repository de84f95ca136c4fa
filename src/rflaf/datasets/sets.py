"""From the files of each set to its columns."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rflaf.datasets import readers
from rflaf.datasets.types import Array, Dataset

CIFAR10 = (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin")
CASP = ("RMSD", *(f"F{k}" for k in range(1, 10)))
CT = ("patientId", *(f"value{k}" for k in range(384)), "reference")
WORKLOADS = ("x", "y", "x_range", "y_range", "count", "sum_", "avg")
ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")

COVTYPE_NUMBERS = (
    "elevation", "aspect", "slope", "horizontal_distance_to_hydrology",
    "vertical_distance_to_hydrology", "horizontal_distance_to_roadways", "hillshade_9am",
    "hillshade_noon", "hillshade_3pm", "horizontal_distance_to_fire_points",
)  # fmt: skip


def numbered(stem: str, n: int) -> tuple[str, ...]:
    return tuple(f"{stem}{k}" for k in range(n))


def mnist(files: tuple[Path, ...]) -> Dataset:
    images, labels = [], []
    for image_file, label_file in (files[:2], files[2:]):
        image, label = readers.idx(image_file, 3), readers.idx(label_file, 1)
        if image.shape[1:] != (28, 28):
            raise readers.BadFile(image_file, f"images of {image.shape[1:]}, expected (28, 28).")
        if len(image) != len(label):
            raise readers.BadFile(label_file, f"{len(label)} labels for {len(image)} images.")
        if label.max(initial=0) > 9:
            raise readers.BadFile(label_file, "a label above 9.")
        images.append(image.reshape(-1, 784))
        labels.append(label)
    is_test = np.repeat([False, True], [len(part) for part in images])
    return Dataset(np.concatenate(images), np.concatenate(labels), numbered("pixel", 784), is_test)


def cifar10(files: tuple[Path, ...]) -> Dataset:
    for path in set(files):
        if path.suffix == ".gz":
            readers.check_gzip(path)
    parts = [readers.cifar(path, name) for path, name in zip(files, CIFAR10)]
    is_test = np.repeat([False] * 5 + [True], [len(labels) for _, labels in parts])
    pixels, labels = (np.concatenate(each) for each in zip(*parts))
    return Dataset(pixels, labels, numbered("pixel", 3072), is_test)


def adult(files: tuple[Path, ...]) -> Dataset:
    rows, target = _adult_rows(files[0])
    columns: dict[str, Array] = {}
    for name, values in zip(ADULT, map(np.array, zip(*rows))):
        if name in ADULT_NUMBERS:
            columns[name] = values
            continue
        for level in np.unique(values)[1:]:  # "?" is a level like the others
            columns[f"{name}={level}"] = (values == level).astype(np.float64)
    inputs = np.stack(list(columns.values()), axis=1)
    is_number = np.isin(list(columns), ADULT_NUMBERS)
    return Dataset(inputs, np.array(target), tuple(columns), is_number=is_number)


def _adult_rows(path: Path) -> tuple[list[list[Any]], list[int]]:
    rows, target = [], []
    for line, cells in readers.lines(path):
        if len(cells) != len(ADULT) + 1:
            raise readers.BadFile(path, f"line {line} has {len(cells)} cells, expected 15.")
        income = cells.pop()
        if income not in ("<=50K", ">50K"):
            raise readers.BadFile(path, f"line {line}: income is '{income[:40]}'.")
        target.append(int(income == ">50K"))
        named = zip(ADULT, cells)
        numeric = partial(readers.number, path, line)
        rows.append([numeric(cell) if name in ADULT_NUMBERS else cell for name, cell in named])
    if not rows:
        raise readers.BadFile(path, "it has no rows.")
    return rows, target


def protein(files: tuple[Path, ...]) -> Dataset:
    values = readers.table(files[0], 10, header=CASP)
    return numbers(values[:, 1:], values[:, 0], CASP[1:])


def ct(files: tuple[Path, ...]) -> Dataset:
    values = readers.table(files[0], 386, member="slice_localization_data.csv", header=CT)
    return numbers(values[:, 1:-1], values[:, -1], CT[1:-1])


def workloads(files: tuple[Path, ...]) -> Dataset:
    """The id column goes first: it would make every row different from the others."""
    values = readers.table(
        files[0], 8, member="Range-Queries-Aggregates.csv", header=("", *WORKLOADS), allow_nan=True
    )[:, 1:]
    values = values[~np.isnan(values).any(axis=1)]
    values = values[np.sort(np.unique(values, axis=0, return_index=True)[1])]
    if not len(values):
        raise readers.BadFile(files[0], "every row contains NaN.")
    return numbers(values[:, :-1], values[:, -1], WORKLOADS[:-1])


def millionsongs(files: tuple[Path, ...]) -> Dataset:
    """The first 463,715 rows are for training, as the authors ask: no artist is in both parts.

    A shorter file is cut in the same proportion.
    """
    values = readers.table(files[0], 91, member="YearPredictionMSD.txt")
    names = (*numbered("timbre_average_", 12), *numbered("timbre_covariance_", 78))
    n = len(values)
    is_test = np.arange(n) >= n * 463_715 // 515_345
    return numbers(values[:, 1:], values[:, 0], names, is_test=is_test)


def covtype(files: tuple[Path, ...]) -> Dataset:
    values = readers.table(files[0], 55, member="covtype.data")
    target = values[:, -1]
    if not np.isin(target, np.arange(1, 8)).all():
        raise readers.BadFile(files[0], "a class is not one of 1 to 7.")
    names = (*COVTYPE_NUMBERS, *numbered("wilderness_area_", 4), *numbered("soil_type_", 40))
    inputs = values[:, :-1].astype(np.float32)  # whole numbers
    return Dataset(inputs, (target - 1).astype(np.int8), names, is_number=np.arange(54) < 10)


def masked(files: tuple[Path, ...], columns: int) -> Dataset:
    """Inputs and, last, the target; the first column of the other file marks the test rows."""
    values, masks = readers.table(files[0], columns), readers.table(files[1], 10)
    is_test = masks[:, 0] == 1
    if len(masks) != len(values) or not np.isin(masks, (0, 1)).all() or is_test.all():
        raise readers.BadFile(files[1], f"expected {len(values)} rows of masks of 0 and 1.")
    varies = np.ptp(values[~is_test, :-1], axis=0) > 0
    names = tuple(f"x{k + 1}" for k in np.flatnonzero(varies))
    return numbers(values[:, :-1][:, varies], values[:, -1], names, is_test=is_test)


def authors_arrays(files: tuple[Path, ...]) -> Dataset:
    inputs, target = readers.npy(files[0], (None, 2)), readers.npy(files[1], (None,))
    if len(inputs) != len(target):
        raise readers.BadFile(files[1], f"{len(target)} targets for {len(inputs)} points.")
    return Dataset(inputs, target, ("x1", "x2"))


def numbers(inputs: Array, target: Array, names: tuple[str, ...], **more: Array) -> Dataset:
    return Dataset(inputs, target, names, is_number=np.ones(inputs.shape[1], bool), **more)
