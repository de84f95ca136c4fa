"""Rows that a model has not learned from, with what is true of them and what it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.arrays import Array
from rflaf.report.given_rows import GivenRows
from rflaf.report.subject import Subject


@dataclass(frozen=True)
class Evidence:
    """What the charts of a page are made of.

    The model has not seen `tested` rows; each of the others was predicted by a member that has not.
    """

    where: str  # what these rows are, in the plural: "test rows"
    rows: GivenRows
    at: NDArray[np.intp]  # which of the rows these are
    y: Array  # n × C numbers, or n class numbers
    predicted: Array  # n × C numbers, or probabilities
    unknown: int = 0  # rows that were left out, because the model does not know their class
    tested: bool = True

    @property
    def residual_sizes(self) -> Array:
        """Residuals of numbers without their sign, in standard deviations of each target, n × C."""
        residual = self.y - self.predicted
        spread = residual.std(axis=0)
        return np.abs(residual / np.where(spread > 0, spread, 1.0))


@dataclass(frozen=True)
class TrainingRows:
    """Rows that the model was fitted to, with targets as `Evidence` has them."""

    rows: GivenRows
    y: Array
    where: str = "training rows"


def on_test_rows(subject: Subject, X: Any, y: Any) -> Evidence:
    rows = GivenRows(X, "X_test", subject.dates)
    targets = check_targets(subject, y, rows.count, "y_test")
    at = np.arange(rows.count)
    if subject.classes is not None:
        at = at[targets >= 0]
        if not len(at):
            raise ValueError(
                "The 'y_test' must hold classes that the model knows. Got none of them in "
                f"{rows.count} rows."
            )
    predicted = subject.outputs(rows.X)
    if subject.classes is None and predicted.shape != targets.shape:
        raise ValueError(
            f"The 'y_test' must have {predicted.shape[1]} columns, as in the fit. "
            f"Got {targets.shape[1]} instead."
        )
    left = rows.count - len(at)
    return Evidence("test rows", rows, at, targets[at], predicted[at], left)


def out_of_fold(subject: Subject, training: TrainingRows) -> Evidence | None:
    """What the fit has kept of its own rows, where it has."""
    kept = getattr(subject.estimator, "oof_prediction_", None)
    if kept is None or len(kept) != len(training.y):
        return None
    predicted = subject.shown(kept)
    at = np.flatnonzero(np.isfinite(predicted).all(axis=1))
    if not len(at) or (subject.classes is None and predicted.shape != training.y.shape):
        return None
    where = "training rows, out of fold"
    return Evidence(where, training.rows, at, training.y[at], predicted[at], tested=False)


def training_rows(subject: Subject, X: Any, y: Any) -> TrainingRows:
    """The rows of the fit, as the caller has them."""
    rows = GivenRows(X, "X_train", subject.dates)
    return TrainingRows(rows, check_targets(subject, y, rows.count, "y_train"))


def check_targets(subject: Subject, y: Any, count: int, argument: str) -> Array:
    """Numbers, n × C, or the numbers of classes, with -1 for one that the model does not know."""
    values = np.asarray(y)
    if not values.ndim or len(values) != count:
        found = len(values) if values.ndim else "a single value"
        raise ValueError(f"The '{argument}' must have {count} rows. Got {found} instead.")
    if subject.classes is not None:
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(
                f"The '{argument}' must be classes, one per row. Got shape {values.shape} instead."
            )
        place = {known: k for k, known in enumerate(subject.classes.tolist())}
        return np.array([place.get(value, -1) for value in values.tolist()], np.intp)
    numbers = np.asarray(values, np.float64).reshape(count, -1)
    if not np.isfinite(numbers).all():
        raise ValueError(f"The '{argument}' must be finite numbers. Got NaN or infinity.")
    return numbers
