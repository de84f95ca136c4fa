"""From a table to training and test rows, as published or corrected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from rflaf.arrays import Array
from rflaf.datasets import Dataset, info, load
from rflaf.datasets.stream import Stream
from rflaf.datasets.synthetic import TARGETS, make_sampled
from rflaf.paper.protocols import PROTOCOL_NAMES, ProtocolName

_BLOCK = 1 << 18  # numbers in a block of rows: float64 temporaries stay in the cache


@dataclass(frozen=True)
class Scaling:
    """Inputs are (column - shift) / scale, after standardising the columns of numbers; targets are
    (y - target_shift) / target_scale, after standardising if `standard_target`."""

    scale: float = 1.0
    shift: float = 0.0
    target_scale: float = 1.0
    target_shift: float = 0.0
    standard_target: bool = False


# The paper's, up to millionsongs; the others are chosen like them, so that w·x falls on the grid.
SCALINGS = {
    "mnist": Scaling(255 * 45.0),
    "cifar10": Scaling(255 * 65.0, shift=255 / 2),
    "adult": Scaling(10.0),
    "protein": Scaling(10.0, target_scale=10.0),
    "ct": Scaling(45.0, target_scale=10.0),
    "workloads": Scaling(7.5, target_scale=100.0),
    "millionsongs": Scaling(20.0, target_scale=10.0, target_shift=2000.0),
    "covtype": Scaling(10.0),
    "kin40k": Scaling(7.5, standard_target=True),
    "bike": Scaling(10.0, standard_target=True),
    "airfoil": Scaling(5.0, standard_target=True),
    "diabetes": Scaling(7.5, target_scale=100.0),
    "friedman1": Scaling(7.5, target_scale=10.0),
    "digits": Scaling(20.0),
    "breast_cancer": Scaling(12.5),
    "wine": Scaling(10.0),
    "iris": Scaling(5.0),
    **{f"{name}{end}": Scaling() for name in TARGETS for end in ("", "-authors")},
}


@dataclass(frozen=True)
class Split:
    """Training and test rows, ready for a model.

    Parameters
    ----------
    name, protocol : str
    task : "regression" or "classification"
    X_train, X_test : array of shape (n, d), float32, C-contiguous
    y_train, y_test : array of shape (n,)
        float32, or int64 classes from 0 to `n_classes` - 1.
    feature_names : tuple of str
    n_classes : int, optional
        None for regression.
    sigma : callable, optional
        The activation that the target was made with, where there is one.
    """

    name: str
    protocol: ProtocolName
    task: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    feature_names: tuple[str, ...]
    n_classes: int | None = None
    sigma: Callable[[Array], Array] | None = None


def load_split(name: str, protocol: ProtocolName = "corrected", *, progress: bool = False) -> Split:
    """Training and test rows of a data set, scaled.

    Parameters
    ----------
    name : str
        One of `rflaf.datasets.names()`.
    protocol : "corrected" or "published"
        As published, inputs are standardised over all rows, and millionsongs does not predict the
        year. Corrected, statistics come from the training rows alone, and it does. f1, f2, f3 have
        their target by sampling as published, and exactly when corrected.
    progress : bool
        Show a bar if files must be downloaded.

    Raises
    ------
    DataNotAvailable, ValueError
        As `rflaf.datasets.load`.

    Examples
    --------
    >>> data = load_split("iris")
    >>> data.X_train.shape, data.X_test.shape, data.n_classes
    ((120, 4), (30, 4), 3)
    """
    if protocol not in PROTOCOL_NAMES:
        raise ValueError(
            f"The 'protocol' parameter of load_split must be one of {PROTOCOL_NAMES}. "
            f"Got {protocol!r} instead."
        )
    published, known = protocol == "published", info(name)
    sampled = published and name in TARGETS
    table = make_sampled(name) if sampled else load(name, progress=progress)
    scaling = SCALINGS[name]
    if published and name == "millionsongs":  # the first timbre average is predicted, not the year
        names, is_number = table.feature_names[1:], table.is_number[1:]
        table = Dataset(table.X[:, 1:], table.X[:, 0], names, is_number=is_number)  # random split
        scaling = replace(scaling, target_shift=0.0)
    train, test = split(table)
    fitting = np.arange(len(table.X)) if published else train
    mean, deviation = statistics(table, fitting)
    mean, divisor = mean + scaling.shift, deviation * scaling.scale
    is_classes = known.task == "classification"
    y = np.asarray(table.y, dtype=np.int64) if is_classes else target(table, scaling, fitting)
    return Split(
        name=name,
        protocol=protocol,
        task=known.task,
        X_train=scaled(table.X, train, mean, divisor),
        y_train=y[train],
        X_test=scaled(table.X, test, mean, divisor),
        y_test=y[test],
        feature_names=table.feature_names,
        n_classes=known.n_outputs if is_classes else None,
        sigma=known.sigma,
    )


def split(table: Dataset) -> tuple[Array, Array]:
    """The set's own split, or the random one: 80/20 with PyTorch's permutation of seed 0."""
    if len(table.is_test):
        return np.flatnonzero(~table.is_test), np.flatnonzero(table.is_test)
    n = len(table.X)
    order = Stream(0).permutation(n)
    return order[: int(0.8 * n)], order[int(0.8 * n) :]


def statistics(table: Dataset, rows: Array) -> tuple[Array, Array]:
    """Mean and population deviation of the columns of numbers; 0 and 1 for the others."""
    if not table.is_number.any():
        return np.zeros(table.X.shape[1]), np.ones(table.X.shape[1])
    total = sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(table.X, rows))
    mean = np.where(table.is_number, total / len(rows), 0.0)
    squares = sum(np.square(block - mean).sum(axis=0) for _, block in blocks(table.X, rows))
    spread = np.sqrt(squares / len(rows))
    return mean, np.where(table.is_number & (spread > 1e-12 * np.abs(mean)), spread, 1.0)


def blocks(inputs: Array, rows: Array) -> Iterator[tuple[slice, Array]]:
    """The rows a block at a time, with their place; neighbours are not copied."""
    together = bool((np.diff(rows) == 1).all())
    step = max(1, _BLOCK // inputs.shape[1])
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        block = inputs[some[0] : some[-1] + 1] if together else inputs[some]
        yield slice(start, start + step), block


def scaled(inputs: Array, rows: Array, mean: Array, divisor: Array) -> Array:
    """(inputs[rows] - mean) / divisor in float32, computed in float64 a block at a time.

    Pixels and what they are shifted and divided by are exact in float32, which is then enough.
    """
    out = np.empty((len(rows), inputs.shape[1]), np.float32)
    single = inputs.dtype == np.uint8
    mean, divisor = (each.astype(np.float32) if single else each for each in (mean, divisor))
    for place, block in blocks(inputs, rows):
        part = out[place]
        shifted = np.subtract(block, mean, out=part if single else None)
        np.divide(shifted, divisor, out=part, casting="same_kind")
    return out


def target(table: Dataset, scaling: Scaling, fitting: Array) -> Array:
    """The numbers to predict, in float32."""
    y = np.asarray(table.y, dtype=np.float64) - scaling.target_shift
    if scaling.standard_target:
        y = (y - y[fitting].mean()) / (y[fitting].std() or 1.0)
    return (y / scaling.target_scale).astype(np.float32)
