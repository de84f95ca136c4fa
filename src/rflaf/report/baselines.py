"""What simple models make of the same rows: a linear one, and one that is always the same."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rflaf.report.evidence import Evidence, TrainingRows
from rflaf.report.given_rows import GivenColumn

Array = NDArray[Any]

MOST_COLUMNS = 1000  # of the given ones, and of the design
_MOST_LEVELS = 30  # of a category, that have a column of their own
_MOST_ROWS = 20_000
_FOLDS = 5
_FEWEST = 20  # rows that can be cut into folds


@dataclass(frozen=True)
class Baselines:
    """Predictions for the rows of the evidence, by name of the model, and how they came about."""

    predictions: dict[str, Array]
    how: str


def fit_baselines(
    evidence: Evidence, training: TrainingRows | None, names: list[str], classes: int | None
) -> Baselines | None:
    """Fitted to the training rows where these are given, else to the evidence in five folds.

    None where there are too many columns or too few rows.
    """
    if evidence.rows.width > MOST_COLUMNS:
        return None
    if evidence.tested and training is not None:
        some = np.random.default_rng(0).permutation(training.rows.count)[:_MOST_ROWS]
        fit_y = training.y[some]
        if classes is not None:
            some, fit_y = some[fit_y >= 0], fit_y[fit_y >= 0]
        columns = [training.rows.column(j, name) for j, name in enumerate(names)]
        design = [Encoding(column, some) for column in columns]
        fit_x = np.hstack([encode(c.values[some]) for encode, c in zip(design, columns)])
        own = [evidence.rows.column(j, name) for j, name in enumerate(names)]
        x = np.hstack([encode(c.values[evidence.at]) for encode, c in zip(design, own)])
        found = _fit_both(fit_x, fit_y, x, classes)
        return Baselines(found, "fitted to the training rows")
    n = len(evidence.y)
    if n < _FEWEST:
        return None
    columns = [evidence.rows.column(j, name) for j, name in enumerate(names)]
    some = evidence.at
    x = np.hstack([Encoding(c, some)(c.values[some]) for c in columns])
    fold = np.random.default_rng(0).permutation(n) % _FOLDS
    parts: dict[str, Array] = {}
    for k in range(_FOLDS):
        fit = np.flatnonzero(fold != k)[:_MOST_ROWS]
        for name, part in _fit_both(x[fit], evidence.y[fit], x[fold == k], classes).items():
            parts.setdefault(name, np.empty((n, part.shape[1])))[fold == k] = part
    return Baselines(parts, f"fitted in five folds to the {evidence.where}")


class Encoding:
    """A column as numbers, with missing values filled, or one column per common level."""

    def __init__(self, column: GivenColumn, rows: Array) -> None:
        values = column.values[rows]
        self._category = column.kind == "category"
        if self._category:
            there = values[column.present[rows]].astype(str)
            levels, counts = np.unique(there, return_counts=True)
            self._levels = levels[np.argsort(-counts, kind="stable")][:_MOST_LEVELS]
            return
        there = values[np.isfinite(values)]
        self._middle = float(np.median(there)) if len(there) else 0.0

    def __call__(self, values: Array) -> Array:
        """n × the columns that it becomes."""
        if self._category:
            return np.column_stack(
                [np.array([v == level for v in values], float) for level in self._levels]
                or [np.zeros(len(values))]
            )
        gone = ~np.isfinite(values)
        return np.column_stack([np.where(gone, self._middle, values), gone])


def _fit_both(fit_x: Array, fit_y: Array, x: Array, classes: int | None) -> dict[str, Array]:
    if classes is None:
        constant = np.broadcast_to(fit_y.mean(axis=0), (len(x), fit_y.shape[1]))
        linear: Any = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
        found = linear.fit(fit_x, fit_y).predict(x)
        return {"linear": found.reshape(len(x), -1), "constant": constant}
    shares = np.bincount(fit_y, minlength=classes) / len(fit_y)
    constant = np.broadcast_to(shares, (len(x), classes))
    known = np.unique(fit_y)
    if len(known) < 2:
        return {"linear": constant, "constant": constant}
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    # many small products: more threads of BLAS would wait for each other
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        # near its end is near enough for a line to compare with
        warnings.simplefilter("ignore", ConvergenceWarning)
        linear.fit(fit_x, fit_y)
    found = np.zeros((len(x), classes))
    found[:, known] = linear.predict_proba(x)
    return {"linear": found, "constant": constant}
