"""A model of a table: its columns by name, the pipeline, and what it scored."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from rflaf._version import __version__
from rflaf.estimators import RFLAFClassifier, RFLAFRegressor
from rflaf.report import write_report
from rflaf.tabular.columns import TableError, column_kinds, prepare
from rflaf.tabular.task import Task, choose_task

Progress = Callable[[str], AbstractContextManager[Any]]
_LEAST_ROWS = 20  # with fewer, nothing is held out


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted model that takes tables; `fit_table` makes it, `rflaf.save` keeps it.

    Attributes
    ----------
    target : str
        The column that was learned.
    task, reason : str
        "regression" or "classification", and why.
    columns : dict
        The columns that are used and the kind of each: "number", "boolean" or "category".
    pipeline : sklearn.pipeline.Pipeline
        Imputation and one-hot columns, then the RFLAF estimator.
    scores : dict
        What was measured on held-out rows before the last fit, which takes all rows.
    fitted : dict
        Rows, seconds, version.
    """

    target: str
    task: str
    reason: str
    columns: dict[str, str]
    pipeline: Pipeline
    scores: dict[str, float]
    fitted: dict[str, Any]

    @property
    def estimator(self) -> Any:
        """The RFLAFRegressor or RFLAFClassifier inside."""
        return self.pipeline[-1]

    @property
    def classes(self) -> NDArray[Any] | None:
        """The classes in the order of `predict_proba`, or None for regression."""
        return getattr(self.estimator, "classes_", None)

    def predict(self, table: Any) -> NDArray[Any]:
        """The target of each row. Columns are found by name; others are ignored."""
        return self.pipeline.predict(prepare(table, self.columns))

    def predict_proba(self, table: Any) -> NDArray[Any]:
        """Probabilities of the classes, a column each."""
        if self.task != "classification":
            raise TableError(f"Regression of {self.target!r} has no probabilities.")
        return self.pipeline.predict_proba(prepare(table, self.columns))

    def predict_std(self, table: Any) -> NDArray[Any]:
        """The standard deviation of a new observation around each prediction."""
        if self.task != "regression":
            raise TableError(f"Classification of {self.target!r} has no standard deviation.")
        rows = self.pipeline[:-1].transform(prepare(table, self.columns))
        return self.estimator.predict(rows, return_std=True)[1]

    def importances(self) -> dict[str, float]:
        """The share of each column in what the activation is applied to, largest first."""
        total = dict.fromkeys(self.columns, 0.0)
        shares = self.estimator.feature_importances_
        for name, share in zip(_sources(self.pipeline[0]), shares, strict=True):
            total[name] += float(share)
        return dict(sorted(total.items(), key=lambda item: -item[1]))


def table_pipeline(columns: dict[str, str], estimator: Any) -> Pipeline:
    """An estimator on the columns of a table, which `column_kinds` has found.

    Missing numbers become the median, with a column that says so; categories become one-hot
    columns, with missing as a level, and levels that the fit has not seen give zeros.
    """
    numbers = [name for name, kind in columns.items() if kind != "category"]
    categories = [name for name, kind in columns.items() if kind == "category"]
    parts = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), numbers),
            (
                "categories",
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                categories,
            ),
        ],
        sparse_threshold=0.0,
    )
    return Pipeline([("columns", parts), ("model", estimator)])


def fit_table(
    table: Any,
    target: str,
    *,
    task: str = "auto",
    drop: Sequence[str] = (),
    n_components: int | str = "auto",
    activation: str = "rbf",
    n_basis: int = 32,
    metric: str = "auto",
    validation: float = 0.2,
    seed: int | None = None,
    progress: Progress | None = None,
    report: str | os.PathLike[str] | None = None,
) -> TableModel:
    """Learn one column of a table from the others.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows without a target are left out.
    target : str
        The column to learn.
    task : {"auto", "regression", "classification"}
        See `choose_task`.
    drop : names
        Columns to leave out.
    n_components, activation, n_basis, metric
        As for RFLAFRegressor.
    validation : float
        The share of rows that are held out and scored in a first fit; the model is then fitted
        to all rows. 0, or fewer than 20 rows: no scores.
    seed : int, optional
    progress : callable, optional
        Called with a line of text; gives a context in which that work is done.
    report : path, optional
        Where to write a page about the model, as `rflaf.report.write_report` does: with the rows
        held out and the model of the first fit, which has not seen them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rflaf.tabular import fit_table
    >>> table = load_iris(as_frame=True).frame
    >>> model = fit_table(table, "target", n_components=100, seed=1)
    >>> model.task, model.reason
    ('classification', "'target' holds 3 different whole numbers in 150 rows")
    >>> model.scores["accuracy"] > 0.9
    True
    """
    if not 0 <= validation < 1:
        raise ValueError(
            "The 'validation' parameter of fit_table must be at least 0 and below 1. "
            f"Got {validation!r} instead."
        )
    table, chosen, columns = split_target(table, target, task, drop)
    rows, working = prepare(table, columns), progress or (lambda _: nullcontext())
    kind = RFLAFRegressor if chosen.name == "regression" else RFLAFClassifier
    estimator = kind(
        n_components, activation=activation, n_basis=n_basis, metric=metric, random_state=seed
    )
    pipeline, scores = table_pipeline(columns, estimator), {}
    start = time.perf_counter()
    if validation and len(rows) >= _LEAST_ROWS:
        with working(f"Scoring on {validation:.0%} of {len(rows):,} rows"):
            scores = _held_out(pipeline, rows, chosen, validation, seed, target, report)
    with working(f"Fitting to {len(rows):,} rows"):
        pipeline.fit(rows, chosen.values)
    if report is not None and not scores:
        write_report(pipeline, report, X_train=rows, y_train=chosen.values, target=target)
    fitted = {
        "rows": len(rows),
        "seconds": round(time.perf_counter() - start, 3),
        "version": __version__,
    }
    return TableModel(target, chosen.name, chosen.reason, columns, pipeline, scores, fitted)


def split_target(
    table: Any, target: str, task: str, drop: Sequence[str]
) -> tuple[Any, Task, dict[str, str]]:
    """Rows that have a target, the task with its values, and the kinds of the other columns."""
    for name in (target, *drop):
        if name not in table.columns:
            known = ", ".join(map(repr, table.columns[:20]))
            raise TableError(f"The table has no column {name!r}. Its columns are {known}.")
    if target in drop:
        raise TableError(f"The target {target!r} cannot be dropped.")
    table = table[table[target].notna()]
    if len(table) == 0:
        raise TableError(f"The target {target!r} is missing in all rows.")
    chosen = choose_task(table[target], task)
    names = [name for name in table.columns if name != target and name not in drop]
    return table, chosen, column_kinds(table, names)


def _held_out(
    pipeline: Pipeline,
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
    stratify = classes and counts.min() >= 2 and min(held, len(rows) - held) >= len(counts)
    fit_rows, held_rows, fit_y, held_y = train_test_split(
        rows,
        task.values,
        test_size=held,
        random_state=seed,
        stratify=task.values if stratify else None,
    )
    if len(np.unique(fit_y)) < 2:
        return {}
    pipeline.fit(fit_rows, fit_y)
    if report is not None:
        note = (
            "This is about a first fit, which has not seen the test rows. The model that is kept "
            f"was fitted to all {len(rows):,} rows."
        )
        train: Any = {"X_train": fit_rows, "y_train": fit_y}
        write_report(pipeline, report, held_rows, held_y, target=target, notes=[note], **train)
    predicted = pipeline.predict(held_rows)
    scores = {"held-out rows": float(held)}
    if not classes:
        scores["R²"] = float(r2_score(held_y, predicted)) if held > 1 else float("nan")
        return {**scores, "RMSE": float(root_mean_squared_error(held_y, predicted))}
    scores["accuracy"] = float(accuracy_score(held_y, predicted))
    if np.isin(held_y, pipeline.classes_).all():
        proba = pipeline.predict_proba(held_rows)
        scores["cross-entropy"] = float(log_loss(held_y, proba, labels=pipeline.classes_))
    return scores


def _sources(parts: ColumnTransformer) -> list[str]:
    """The column that each of the transformer's outputs comes from."""
    made: list[str] = []
    for name, part, columns in parts.transformers_:
        if name == "numbers" and len(columns):
            made += columns
            if part.indicator_ is not None:
                made += [columns[i] for i in part.indicator_.features_]
        elif name == "categories" and len(columns):
            made += [c for c, levels in zip(columns, part.categories_) for _ in levels]
    return made
