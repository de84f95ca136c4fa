"""From the files of each set to its raw columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rflaf.datasets import readers
from rflaf.datasets.types import Array, Raw

CASP = ("RMSD", *(f"F{k}" for k in range(1, 10)))
CT = ("patientId", *(f"value{k}" for k in range(384)), "reference")
WORKLOADS = ("x", "y", "x_range", "y_range", "count", "sum_", "avg")
ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def numbered(stem: str, n: int) -> tuple[str, ...]:
    return tuple(f"{stem}{k}" for k in range(n))


def mnist(files: tuple[Path, ...]) -> Raw:
    images, labels = [], []
    for image_file, label_file in (files[:2], files[2:]):
        image, label = readers.idx(image_file, 3), readers.idx(label_file, 1)
        if image.shape[1:] != (28, 28):
            raise readers.bad(image_file, f"images of {image.shape[1:]}, expected (28, 28).")
        if len(image) != len(label):
            raise readers.bad(label_file, f"{len(label)} labels for {len(image)} images.")
        if label.max(initial=0) > 9:
            raise readers.bad(label_file, "a label above 9.")
        images.append(image.reshape(-1, 784))
        labels.append(label)
    is_test = np.repeat([False, True], [len(part) for part in images])
    return Raw(np.concatenate(images), np.concatenate(labels), numbered("pixel", 784), is_test)


def cifar10(files: tuple[Path, ...]) -> Raw:
    names = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
    paths = files * 6 if len(files) == 1 else files
    parts = [readers.cifar(path, name) for path, name in zip(paths, names)]
    is_test = np.repeat([False] * 5 + [True], [len(labels) for _, labels in parts])
    pixels, labels = (np.concatenate(each) for each in zip(*parts))
    return Raw(pixels, labels, numbered("pixel", 3072), is_test)


def adult(files: tuple[Path, ...]) -> Raw:
    rows, target = [], []
    for number, cells in readers.lines(files[0]):
        if len(cells) != len(ADULT) + 1:
            raise readers.bad(files[0], f"line {number} has {len(cells)} cells, expected 15.")
        income = cells.pop().strip()
        if income not in ("<=50K", ">50K"):
            raise readers.bad(files[0], f"line {number}: income is '{income}'.")
        target.append(income == ">50K")
        rows.append([cell.strip() for cell in cells])
    if not rows:
        raise readers.bad(files[0], "it has no rows.")
    columns, names, is_number = [], [], []
    for name, cells in zip(ADULT, zip(*rows)):
        if name in ADULT_NUMBERS:
            columns.append(_adult_numbers(files[0], name, cells))
            names.append(name)
            is_number.append(True)
        else:
            values = np.array(cells)
            for level in np.unique(values)[1:]:
                columns.append((values == level).astype(np.float64))
                names.append(f"{name}={level}")
                is_number.append(False)
    inputs = np.stack(columns, axis=1)
    return Raw(inputs, np.array(target), tuple(names), is_number=np.array(is_number))


def _adult_numbers(path: Path, name: str, cells: tuple[str, ...]) -> Array:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError as error:
        raise readers.bad(path, f"column {name}: {error}.") from error


def protein(files: tuple[Path, ...]) -> Raw:
    values = readers.table(files[0], 10, header=CASP)
    return _numbers(values[:, 1:], values[:, 0], CASP[1:])


def _numbers(inputs: Array, target: Array, names: tuple[str, ...], **more: Array) -> Raw:
    return Raw(inputs, target, names, is_number=np.ones(inputs.shape[1], bool), **more)


def arrays(files: tuple[Path, ...]) -> Raw:
    inputs, target = (np.load(path, allow_pickle=False) for path in files)
    return Raw(inputs, target, ("x1", "x2"))
