"""Several models on one table, by cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rflaf.estimators import RFLAFClassifier, RFLAFRegressor
from rflaf.inputs.encoder import ColumnEncoder
from rflaf.tabular.reading import TableError
from rflaf.tabular.splitting import split_target

PENALTIES = np.logspace(-4, 4, 17)


@dataclass(frozen=True)
class Comparison:
    """The result of one model.

    Attributes
    ----------
    model, score : str
        Names of the model and of the score.
    scores : tuple of float
        One per fold.
    fit_seconds, predict_seconds : float
    """

    model: str
    score: str
    scores: tuple[float, ...]
    fit_seconds: float
    predict_seconds: float

    @property
    def mean(self) -> float:
        """Of the folds' scores."""
        return float(np.mean(self.scores))

    @property
    def sd(self) -> float:
        """Standard deviation between the folds."""
        return float(np.std(self.scores, ddof=1))


def compare_models(
    table: Any,
    target: str,
    *,
    task: str = "auto",
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    n_components: int | str = "auto",
    folds: int = 5,
    strict: bool = False,
    random_state: int | None = 0,
) -> Iterator[Comparison]:
    """Cross-validate learned and fixed activations, a linear model and gradient boosting.

    "Fixed" random features have ReLU or tanh as activation, no metric and no ranks; their number,
    members and penalty are chosen as for RFLAF. All models get the same columns, encoded by
    ColumnEncoder, and the same folds.

    Parameters
    ----------
    table, target, task, drop, categorical, n_components, strict
        As for `fit_table`.
    folds : int
        At least 2. The score is R² or the accuracy.
    random_state : int, optional

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rflaf.tabular import compare_models
    >>> table = load_diabetes(as_frame=True).frame
    >>> lines = compare_models(table, "target", n_components=50, folds=2)
    >>> next(lines).model
    'RFLAF, learned activation'
    """
    rows, chosen = split_target(table, target, task, drop, strict)
    if not 2 <= folds <= len(rows):
        raise TableError(f"'folds' must be between 2 and the {len(rows)} rows. Got {folds}.")
    classes = chosen.name == "classification"
    if classes and np.unique(chosen.values, return_counts=True)[1].min() < folds:
        raise TableError(f"A class of {target!r} has fewer than {folds} rows, one per fold.")
    splitter: Any = StratifiedKFold if classes else KFold
    score = "accuracy" if classes else "r2"
    how: Any = {"cv": splitter(folds, shuffle=True, random_state=random_state), "scoring": score}
    levels: Any = list(categorical) or "from_dtype"
    for name, model in _models(classes, n_components, random_state, levels).items():
        found = cross_validate(model, rows, chosen.values, **how, error_score="raise")
        seconds = (float(np.mean(found[part])) for part in ("fit_time", "score_time"))
        yield Comparison(name, score, tuple(found["test_score"].tolist()), *seconds)


def _models(
    classes: bool, n_components: int | str, seed: int | None, levels: Any
) -> dict[str, Any]:
    given: Any = {"random_state": seed, "categorical_features": levels}
    kind: Any = RFLAFClassifier if classes else RFLAFRegressor
    linear: Any = LogisticRegression(max_iter=1000) if classes else RidgeCV(PENALTIES)
    boosting: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    encoder = ColumnEncoder(target_type="classes" if classes else "numbers", **given)
    found = {"RFLAF, learned activation": kind(n_components, **given)}
    for name in ("relu", "tanh"):
        plain = kind(n_components, activation=name, metric="none", input_form="raw", **given)
        found[f"random features, {name}"] = plain
    found["linear"] = make_pipeline(encoder, StandardScaler(), linear)
    found["gradient boosting"] = make_pipeline(encoder, boosting(random_state=seed))
    return found
