"""A model of a table: the estimator and its scores."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.utils._param_validation import Interval

from rflaf._version import __version__
from rflaf.bases.base import checked
from rflaf.estimators import RFLAFClassifier, RFLAFRegressor
from rflaf.report import write_report
from rflaf.tabular.reading import TableError, listed
from rflaf.tabular.splitting import Task, split_target, unique_columns

Progress = Callable[[str], AbstractContextManager[Any]]
_LEAST_ROWS = 20  # with fewer, nothing is held out


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted estimator and what `fit_table` knows of it; `rflaf.save` keeps both.

    Attributes
    ----------
    estimator : RFLAFRegressor or RFLAFClassifier
        Fitted to the frame of all columns except the target.
    target : str
        The column that is predicted.
    task, reason : str
        "regression" or "classification", and why.
    scores : dict
        Scores on held-out rows of a first fit: "r2" and "rmse", or "accuracy" and "log_loss"; and
        the number of these rows, "held_out_rows".
    fitted : dict
        Rows, seconds, version.
    """

    estimator: Any
    target: str
    task: str
    reason: str
    scores: dict[str, float]
    fitted: dict[str, Any]

    @property
    def columns(self) -> dict[str, str]:
        """Kind of each column that is used, by name."""
        encoder = self.estimator.encoder_
        used = set(encoder.origin_.tolist())
        names = zip(encoder.feature_names_in_, encoder.kinds_)
        return {str(name): kind for k, (name, kind) in enumerate(names) if k in used}

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes in the order of `predict_proba`, or None for regression."""
        return getattr(self.estimator, "classes_", None)

    def predict(self, table: Any) -> NDArray[Any]:
        """Predictions. Columns are matched by name; others are ignored."""
        return self.estimator.predict(self.frame(table))

    def predict_proba(self, table: Any) -> NDArray[Any]:
        """Probabilities of the classes, a column each."""
        self._check_task("classification", "probabilities")
        return self.estimator.predict_proba(self.frame(table))

    def predict_std(self, table: Any) -> NDArray[Any]:
        """The standard deviation of a new observation around each prediction."""
        self._check_task("regression", "standard deviation")
        return self.estimator.predict_std(self.frame(table))

    def predict_quantiles(self, table: Any, quantiles: Sequence[float]) -> NDArray[Any]:
        """The `quantiles` of a new observation at each row, a column each."""
        self._check_task("regression", "quantiles")
        return self.estimator.predict_quantiles(self.frame(table), quantiles)

    def _check_task(self, task: str, what: str) -> None:
        if self.task != task:
            raise TableError(f"{self.task.capitalize()} of {self.target!r} has no {what}.")

    def explain(self, table: Any) -> Any:
        """Attributions of the score of each row: see `RFLAFRegressor.explain`."""
        return self.estimator.explain(self.frame(table))

    def importances(self) -> dict[str, float]:
        """Importance of each column that is used, largest first."""
        shares = self.estimator.feature_importances_.tolist()
        pairs = zip(map(str, self.estimator.feature_names_in_), shares)
        used = self.columns
        return dict(sorted((pair for pair in pairs if pair[0] in used), key=lambda pair: -pair[1]))

    def frame(self, table: Any) -> Any:
        """The columns of the estimator, in its order; ignored ones may be missing."""
        names = [str(name) for name in self.estimator.feature_names_in_]
        used = self.columns
        frame = unique_columns(table)
        frame = frame.rename({name: str(name) for name in frame.columns})
        there = set(frame.columns)
        missing = [name for name in names if name not in there]
        needed = [name for name in missing if name in used]
        if needed:
            raise TableError(f"The table lacks {listed(needed)}, which the model needs.")
        empty = [nw.lit(None, nw.String).alias(name) for name in missing]
        return frame.with_columns(*empty).select(names).to_native()


@checked(
    validation=[Interval(Real, 0, 1, closed="left")],
    quantile=[Interval(Real, 0, 1, closed="neither")],
    time_limit=[Interval(Real, 0, None, closed="neither"), None],
)
def fit_table(
    table: Any,
    target: str,
    *,
    task: str = "auto",
    loss: str = "squared_error",
    quantile: float = 0.5,
    power: float = 1.5,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    n_components: int | str = "auto",
    activation: str = "rbf",
    n_basis: int = 32,
    metric: str = "auto",
    effort: str = "default",
    time_limit: float | None = None,
    validation: float = 0.2,
    strict: bool = False,
    random_state: int | None = None,
    progress: Progress | None = None,
    report: str | os.PathLike[str] | None = None,
) -> TableModel:
    """Train a model to predict one column of a table.

    Parameters
    ----------
    table : frame of pandas, polars and so on
        Rows with a missing target are dropped.
    target : str
        The column to predict.
    task : {"auto", "regression", "classification"}
        See `choose_task`. With a loss other than "squared_error", "auto" is regression.
    loss, quantile, power
        Loss of a regression, as for RFLAFRegressor; one quantile.
    drop : names
        Columns to ignore.
    categorical : names
        Further columns to treat as categories.
    n_components, activation, n_basis, metric, effort, random_state
        As for RFLAFRegressor.
    time_limit : float or None
        Seconds for both fits together; each gets half.
    validation : float
        Share of rows held out from a first fit, for the scores; the model is then fitted to all
        rows. 0, or fewer than 20 rows: no scores.
    strict : bool
        Whether to refuse dates, identifiers and free text.
    progress : callable, optional
        Called with a line of text; returns a context manager around that work.
    report : path, optional
        Also write a page with `rflaf.report.write_report`, for the first fit and its held-out rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rflaf.tabular import fit_table
    >>> table = load_iris(as_frame=True).frame
    >>> model = fit_table(table, "target", n_components=100, random_state=1)
    >>> model.task, model.reason
    ('classification', "'target' has 3 distinct integers in 150 rows")
    >>> model.scores["accuracy"] > 0.9
    True
    """
    by_loss = task == "auto" and loss != "squared_error"  # all other losses are for numbers
    rows, chosen = split_target(table, target, "regression" if by_loss else task, drop, strict)
    if by_loss:
        chosen = chosen._replace(reason=f"loss={loss!r} is for numbers")
    working = progress or (lambda _: nullcontext())
    scored = validation > 0 and len(rows) >= _LEAST_ROWS
    given: dict[str, Any] = {}
    if chosen.name == "regression":
        given = {"loss": loss, "quantile": quantile, "power": power}
    if not given and loss != "squared_error":
        raise TableError(f"loss={loss!r} is for regression. Got classification: {chosen.reason}.")
    estimator: Any = (RFLAFRegressor if given else RFLAFClassifier)(
        **given,
        n_components=n_components,
        activation=activation,
        n_basis=n_basis,
        metric=metric,
        effort=effort,
        time_limit=time_limit if time_limit is None or not scored else time_limit / 2,
        random_state=random_state,
        categorical_features=list(categorical) or "from_dtype",
    )
    scores: dict[str, float] = {}
    start = time.perf_counter()
    if scored:
        with working(f"Scoring on {validation:.0%} of {len(rows):,} rows"):
            scores = _held_out(estimator, rows, chosen, validation, random_state, target, report)
    with working(f"Fitting to {len(rows):,} rows"):
        estimator.fit(rows, chosen.values)
    if report is not None and not scores:
        write_report(estimator, report, X_train=rows, y_train=chosen.values, target=target)
    seconds = round(time.perf_counter() - start, 3)
    fitted = {"rows": len(rows), "seconds": seconds, "version": __version__}
    return TableModel(estimator, target, chosen.name, chosen.reason, scores, fitted)


def _held_out(
    estimator: Any,
    rows: Any,
    task: Task,
    share: float,
    seed: int | None,
    target: str,
    report: str | os.PathLike[str] | None,
) -> dict[str, float]:
    """Scores on rows that a first fit does not see, and a page about it where that is asked for."""
    classes = task.name == "classification"
    counts = np.unique(task.values, return_counts=True)[1]
    held = max(1, round(share * len(rows)))
    # every class on both sides, where there are rows enough
    enough = classes and counts.min() >= 2 and min(held, len(rows) - held) >= len(counts)
    given: Any = {"random_state": seed, "stratify": task.values if enough else None}
    parts = train_test_split(rows, task.values, test_size=held, **given)
    fit_rows, held_rows, fit_y, held_y = parts
    if len(np.unique(fit_y)) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit to all rows gives them again
        model = clone(estimator).fit(fit_rows, fit_y)
        predicted = model.predict(held_rows)
    if report is not None:
        note = (
            "This is about a first fit, which has not seen the test rows. The model that is kept "
            f"was fitted to all {len(rows):,} rows."
        )
        train: Any = {"X_train": fit_rows, "y_train": fit_y}
        write_report(model, report, held_rows, held_y, target=target, notes=[note], **train)
    scores = {"held_out_rows": float(held)}
    if not classes:
        scores["r2"] = float(r2_score(held_y, predicted)) if held > 1 else float("nan")
        return {**scores, "rmse": float(root_mean_squared_error(held_y, predicted))}
    scores["accuracy"] = float(accuracy_score(held_y, predicted))
    if np.isin(held_y, model.classes_).all():
        proba = model.predict_proba(held_rows)
        scores["log_loss"] = float(log_loss(held_y, proba, labels=model.classes_))
    return scores
