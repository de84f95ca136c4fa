"""Data sets for the benchmarks, as the paper prepares them, from the folder in RFLAF_DATA."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import torch

from rflaf.nn import Data


def data_folder() -> Path | None:
    """The folder in the environment variable RFLAF_DATA, if it is there."""
    folder = os.environ.get("RFLAF_DATA", "")
    return Path(folder) if folder and Path(folder).is_dir() else None


def load_protein(folder: Path) -> Data:
    """Standardised inputs over 10, RMSD over 10; a random 80/20 split with seed 0.

    With PyTorch's permutation the best constant has a test loss of 0.37241, the figure to which the
    authors' KAN, which could only learn a constant, came in all its runs: it is their split.
    """
    with gzip.open(folder / "protein" / "CASP.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    X, y = table[:, 1:], table[:, 0] / 10
    X = (X - X.mean(0)) / X.std(0) / 10
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0)).numpy()
    train, test = np.split(order, [int(0.8 * len(y))])
    single = [array.astype(np.float32) for array in (X[train], y[train], X[test], y[test])]
    return Data(*(torch.from_numpy(array) for array in single))


def load_mnist(folder: Path) -> Data:
    """Pixels over 255 and 45, as published into training and test rows."""
    parts = []
    for name in ("train", "t10k"):
        images = _idx(folder / "mnist" / f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
        labels = _idx(folder / "mnist" / f"{name}-labels-idx1-ubyte.gz", 8)
        parts += [(images / np.float32(255 * 45)).astype(np.float32), labels.astype(np.int64)]
    return Data(*(torch.from_numpy(array) for array in parts))


def _idx(path: Path, header: int) -> np.ndarray:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)
