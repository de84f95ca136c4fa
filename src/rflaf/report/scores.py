"""How good predictions are, in a few numbers."""

from __future__ import annotations

import numpy as np

from rflaf.arrays import Array

LOWER_IS_BETTER = {"RMSE", "MAE", "log-loss"}
_RESAMPLES = 200
_MOST_RESAMPLED = 20_000  # rows; with more the error of a score is too small to matter


def number_scores(y: Array, predicted: Array) -> dict[str, float]:
    """R², and for a single target the errors in its units.

    Examples
    --------
    >>> number_scores(np.array([[0.0], [2.0]]), np.array([[1.0], [1.0]]))
    {'R²': 0.0, 'RMSE': 1.0, 'MAE': 1.0}
    """
    error = predicted - y
    scores = {"R²": r_squared(y, predicted)}
    if y.shape[1] == 1:
        scores["RMSE"] = float(np.sqrt(np.mean(error**2)))
        scores["MAE"] = float(np.mean(np.abs(error)))
    return scores


def r_squared(y: Array, predicted: Array) -> float:
    """The mean over targets; NaN where none of them varies."""
    spread = np.sum((y - y.mean(axis=0)) ** 2, axis=0)
    varies = spread > 0
    if not varies.any():
        return float("nan")
    loss = np.sum((predicted - y) ** 2, axis=0)
    return float(np.mean(1 - loss[varies] / spread[varies]))


def log_loss(y: Array, predicted: Array) -> float:
    """The mean of -log p of a row's own class."""
    return float(-np.log(np.clip(predicted[np.arange(len(y)), y], 1e-15, None)).mean())


def score_error(y: Array, predicted: Array) -> float:
    """The standard error of R² or the log-loss, over rows drawn anew; NaN for few rows."""
    n = len(y)
    score = log_loss if y.ndim == 1 else r_squared
    if n < 10 or not np.isfinite(score(y, predicted)):
        return float("nan")
    if n > _MOST_RESAMPLED:
        y, predicted = y[:_MOST_RESAMPLED], predicted[:_MOST_RESAMPLED]
    rng, found = np.random.default_rng(0), []
    for _ in range(_RESAMPLES):
        rows = rng.integers(len(y), size=len(y))
        found.append(score(y[rows], predicted[rows]))
    return float(np.nanstd(found) * np.sqrt(len(y) / n))
