"""Counting the classes of rows that come in blocks, and how good their probabilities are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_WIDEST = 1e30  # the lighter of two classes would be nothing beside the heavier


class ClassTally:
    """The classes seen, and the weight of their rows."""

    def __init__(self) -> None:
        self.classes: Array = np.zeros(0)
        self.weights = np.zeros(0)

    def add(self, y: Array, weights: Array) -> None:
        """Count rows."""
        values, codes = np.unique(y, return_inverse=True)
        self._count(values, np.bincount(codes.ravel(), weights=weights, minlength=len(values)))

    def merge(self, other: ClassTally) -> None:
        """Add what another tally has counted."""
        if len(other.classes):
            self._count(other.classes, other.weights)

    def _count(self, classes: Array, weights: Array) -> None:
        every = np.union1d(self.classes, classes) if self.classes.size else classes
        old = self.classes, self.weights
        self.classes, self.weights = every, np.zeros(len(every))
        for names, weight in (old, (classes, weights)):
            if len(names):
                self.weights[np.searchsorted(every, names)] += weight

    def class_weights(self, class_weight: Any) -> Array:
        """What the weights of each class's rows are multiplied by.

        An error where fewer than two classes are left.
        """
        if len(self.classes) < 2:
            raise ValueError(
                "A classifier needs samples of at least 2 classes. Got one class: "
                f"{self.classes.tolist()[0]!r}."
            )
        by_class = self._given_weights(class_weight)
        if np.min(by_class) < 0:
            raise ValueError(f"'class_weight' must not be negative. Got {by_class.min()}.")
        by_class = _moderate(by_class)
        if np.count_nonzero(self.weights * by_class > 0) < 2:
            raise ValueError(
                "A classifier needs at least 2 classes with a positive weight. Got fewer."
            )
        return by_class

    def _given_weights(self, class_weight: Any) -> Array:
        if class_weight is None:
            return np.ones(len(self.classes))
        if class_weight == "balanced":
            # rows of weight zero have no part in it, a row of weight 2 counts twice
            there = self.weights > 0
            share = self.weights.sum() / np.count_nonzero(there) if there.any() else 0.0
            balanced = np.divide(share, self.weights, out=np.zeros(len(there)), where=there)
            # the order of the rows, which blocks and partitions change, must not be seen
            return np.array([float(f"{weight:.12g}") for weight in balanced])
        names = self.classes.tolist()
        unknown = [name for name in class_weight if name not in names]
        if unknown:
            raise ValueError(
                f"'class_weight' must have classes of 'y' as keys. Unknown class: {unknown[0]!r}."
            )
        return np.array([float(class_weight.get(name, 1.0)) for name in names])


def _moderate(by_class: Array) -> Array:
    """Weights of classes, divided by the largest where that is far from 1."""
    if not np.isfinite(by_class).all():
        raise ValueError("'class_weight' must be finite. Got NaN or infinity.")
    largest, least = by_class.max(), by_class.min(where=by_class > 0, initial=np.inf)
    if largest > 0 and not least / largest > 1 / _WIDEST:
        raise ValueError(
            f"The weights in 'class_weight' must not differ by more than a factor of {_WIDEST:g}. "
            f"Got {least:g} and {largest:g}."
        )
    return by_class / largest if largest > 0 and not 1e-10 < largest < 1e10 else by_class


def class_metrics(y: Array, p: Array, weights: Array | None = None) -> dict[str, float]:
    """How good probabilities are; ranking is measured where all classes occur.

    Average precision is that of the second of two classes, or the mean over all classes.

    Parameters
    ----------
    y : array of int
        The place of each row's class.
    p : array, n × classes
    weights : array of n, optional

    Examples
    --------
    >>> import numpy as np
    >>> found = class_metrics(np.array([0, 1]), np.array([[0.75, 0.25], [0.5, 0.5]]))
    >>> {name: round(value, 2) for name, value in found.items()}
    {'log-loss': 0.49, 'ROC AUC': 1.0, 'average precision': 1.0, 'accuracy': 0.5}
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    own = np.clip(p[np.arange(len(y)), y], 1e-15, None)
    found = {"log-loss": float(-np.average(np.log(own), weights=weights))}
    count = p.shape[1]
    if len(np.unique(y)) == count:
        classes = [1] if count == 2 else range(count)
        for name, measure in (
            ("ROC AUC", roc_auc_score),
            ("average precision", average_precision_score),
        ):
            each = [measure(y == k, p[:, k], sample_weight=weights) for k in classes]
            found[name] = float(np.mean(each))
    found["accuracy"] = float(np.average(p.argmax(axis=1) == y, weights=weights))
    return found
