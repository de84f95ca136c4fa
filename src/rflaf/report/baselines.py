"""What simple models make of the same rows: a linear one, and one that is always the same."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rflaf.arrays import Array
from rflaf.inputs.encoder import ColumnEncoder
from rflaf.report.evidence import Evidence, TrainingRows
from rflaf.report.given_rows import GivenRows

MOST_COLUMNS = 1000  # of the given ones
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
    rng, n = np.random.default_rng(0), len(evidence.y)
    if evidence.rows.width > MOST_COLUMNS:
        return None
    if evidence.tested and training is not None:
        rows, at, y = training.rows, np.arange(training.rows.count), training.y
        known = at if classes is None else at[y >= 0]
        parts = [(rng.permutation(known), np.arange(n))]
        how = "fitted to the training rows"
    elif n >= _FEWEST:
        rows, at, y = evidence.rows, evidence.at, evidence.y
        fold = rng.permutation(n) % _FOLDS
        parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(_FOLDS)]
        how = f"fitted in five folds to the {evidence.where}"
    else:
        return None
    # the same columns are categories as on the page
    categories = [rows.column(j, name).kind == "category" for j, name in enumerate(names)]
    listed = categories if any(categories) else "from_dtype"
    kind = "numbers" if classes is None else "classes"
    encoder = ColumnEncoder(listed, target_type=kind, random_state=0)
    found: dict[str, Array] = {}
    for fit, held in parts:
        some = fit[:_MOST_ROWS]
        given = _dense(rows, at[some]), y[some], _dense(evidence.rows, evidence.at[held])
        for name, part in _fit_both(encoder, *given, classes).items():
            found.setdefault(name, np.empty((n, part.shape[1])))[held] = part
    return Baselines(found, how)


def _dense(rows: GivenRows, at: Array) -> Any:
    part = rows.take(at)
    return part.toarray() if sparse.issparse(part) else part


def _fit_both(
    encoder: ColumnEncoder, fit_x: Any, fit_y: Array, x: Any, classes: int | None
) -> dict[str, Array]:
    n = x.shape[0]
    # many small products: more threads of BLAS would wait for each other
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        # the model has warned of columns; near its end is near enough for a line to compare with
        warnings.simplefilter("ignore")
        if classes is None:
            linear: Any = make_pipeline(encoder, StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
            found = linear.fit(fit_x, fit_y).predict(x).reshape(n, -1)
            return {"linear": found, "constant": np.tile(fit_y.mean(axis=0), (n, 1))}
        shares = np.bincount(fit_y, minlength=classes) / len(fit_y)
        constant = np.tile(shares, (n, 1))
        known = np.flatnonzero(shares)
        if len(known) < 2:
            return {"linear": constant, "constant": constant}
        linear = make_pipeline(encoder, StandardScaler(), LogisticRegression(max_iter=300))
        found = np.zeros((n, classes))
        found[:, known] = linear.fit(fit_x, fit_y).predict_proba(x)
        return {"linear": found, "constant": constant}
