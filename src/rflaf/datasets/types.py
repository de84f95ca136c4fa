"""What a data set is, what is known of it before it is read, and the error when it is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Task = Literal["regression", "classification"]
Protocol = Literal["published", "corrected"]
PROTOCOLS: tuple[Protocol, ...] = ("published", "corrected")


class DataNotAvailable(FileNotFoundError):
    """A file of a data set is in none of the folders, and could not be downloaded."""


@dataclass(frozen=True)
class File:
    """A file that a data set needs.

    Parameters
    ----------
    path : str
        Where it lies below a data folder.
    urls : tuple of str
        Where it can be downloaded, the first that answers.
    sha256 : str, optional
        Digest of the file, where it is known.
    bytes : int, optional
        Its size, where it is known.
    variants : tuple of File
        Other forms of the same content that are accepted in its place.
    """

    path: str
    urls: tuple[str, ...] = ()
    sha256: str | None = None
    bytes: int | None = None
    variants: tuple[File, ...] = ()


@dataclass(frozen=True)
class Info:
    """What is known of a data set without reading it.

    Parameters
    ----------
    name : str
    task : "regression" or "classification"
    n_inputs : int
        Columns of X in the corrected protocol.
    n_outputs : int
        Classes, or 1 for regression.
    scale : float
        What the inputs are divided by, after they are standardised if they are.
    description : str
    source : str
        A page for people, about the data.
    files : tuple of File
        Empty for sets that are generated or ship with scikit-learn.
    n_rows : int, optional
        Rows of the whole published set. Files with fewer rows are read with a warning.
    """

    name: str
    task: Task
    n_inputs: int
    n_outputs: int
    scale: float
    description: str
    source: str
    files: tuple[File, ...] = ()
    n_rows: int | None = None


@dataclass(frozen=True)
class Dataset:
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
    protocol: Protocol
    task: Task
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    feature_names: tuple[str, ...]
    n_classes: int | None = None
    sigma: Callable[[Array], Array] | None = None


@dataclass(frozen=True)
class Raw:
    """A data set as read, before a protocol chooses columns, rows and scale.

    `is_test` marks the test rows of sets that come with a split of their own; an empty array means
    that there is none. `is_number` marks the columns that are standardised.
    """

    inputs: Array
    target: Array
    feature_names: tuple[str, ...]
    is_test: Array = field(default_factory=lambda: np.zeros(0, bool))
    is_number: Array = field(default_factory=lambda: np.zeros(0, bool))
