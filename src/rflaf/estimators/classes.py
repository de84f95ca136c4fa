"""Counting the classes of rows that come in blocks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

Array = NDArray[Any]


class ClassTally:
    """The classes seen, and the weight of their rows."""

    def __init__(self) -> None:
        self.classes: Array = np.zeros(0)
        self.weights = np.zeros(0)

    def add(self, y: Array, weights: Array) -> None:
        """Count rows."""
        values, codes = np.unique(y, return_inverse=True)
        self.merge(values, np.bincount(codes.ravel(), weights=weights, minlength=len(values)))

    def merge(self, classes: Array, weights: Array) -> None:
        """Add what others have counted."""
        every = np.union1d(self.classes, classes) if self.classes.size else classes
        if len(every) > len(self.classes):
            with warnings.catch_warnings():  # "many classes" is for rows, not for a set of classes
                warnings.simplefilter("ignore", UserWarning)
                check_classification_targets(every)
        old = self.classes, self.weights
        self.classes, self.weights = every, np.zeros(len(every))
        for names, weight in (old, (classes, weights)):
            if len(names):
                self.weights[np.searchsorted(every, names)] += weight

    def check(self, class_weight: Any, owner: str) -> Array:
        """The weight of each class by `class_weight`; an error where fewer than two are left."""
        if len(self.classes) < 2:
            raise ValueError(
                f"{owner} needs samples of at least 2 classes. Got one class: {self.classes[0]!r}."
            )
        if class_weight == "balanced":
            # rows of weight zero have no part in it, a row of weight 2 counts twice
            there = self.weights > 0
            share = self.weights.sum() / np.count_nonzero(there) if there.any() else 0.0
            by_class = np.divide(share, self.weights, out=np.zeros(len(there)), where=there)
            # the order of the rows, which blocks and partitions change, must not be seen
            by_class = np.array([float(f"{weight:.12g}") for weight in by_class])
        else:
            by_class = compute_class_weight(class_weight, classes=self.classes, y=self.classes)
        if np.min(by_class) < 0:
            raise ValueError(f"'class_weight' must not be negative. Got {by_class.min()}.")
        if np.count_nonzero(self.weights * by_class > 0) < 2:
            raise ValueError(f"{owner} needs at least 2 classes with a positive weight. Got fewer.")
        return np.asarray(by_class, np.float64)


def class_codes(classes: Array, y: Array) -> NDArray[np.intp]:
    """The place of each label among the sorted classes."""
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    strange = classes[codes] != y
    if np.any(strange):
        raise ValueError(
            f"The source gave the class {y[strange][0]!r} in a later pass, and not in the first. "
            "Expected the same rows in every pass."
        )
    return codes
