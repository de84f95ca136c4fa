"""What a data set is, what is known of it before it is read, and the error when it is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Task = Literal["regression", "classification"]


class DataNotAvailable(FileNotFoundError):
    """A file of a data set is in none of the folders, and could not be downloaded."""


@dataclass(frozen=True)
class File:
    """A file that a data set needs.

    Parameters
    ----------
    path : str
        Its path below a data folder.
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
        Columns of X.
    n_outputs : int
        Classes, or 1 for regression.
    description : str
    source : str
        A page for people, about the data.
    files : tuple of File
        Empty for sets that are generated or ship with scikit-learn.
    n_rows : int, optional
        Rows of the whole published set. Files with fewer rows are read with a warning.
    sigma : callable, optional
        The activation that the target was made with, where there is one.
    """

    name: str
    task: Task
    n_inputs: int
    n_outputs: int
    description: str
    source: str
    files: tuple[File, ...] = ()
    n_rows: int | None = None
    sigma: Callable[[Array], Array] | None = None


@dataclass(frozen=True)
class Dataset:
    """A data set as it is, neither split nor scaled.

    Parameters
    ----------
    X : array of shape (n, d)
        Numbers of the type that they are stored in; other columns are one-hot.
    y : array of shape (n,)
        Numbers, or classes from 0.
    feature_names : tuple of str
    is_test : array of bool, shape (n,) or (0,)
        The test rows of a set that has its own split; otherwise empty.
    is_number : array of bool, shape (d,) or (0,)
        The columns whose unit means nothing, and that are standardised for most models. Empty where
        there is none.
    """

    X: Array
    y: Array
    feature_names: tuple[str, ...]
    is_test: Array = field(default_factory=lambda: np.zeros(0, bool))
    is_number: Array = field(default_factory=lambda: np.zeros(0, bool))
