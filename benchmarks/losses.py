"""Counts, skewed and heavy-tailed targets, quantiles and outliers, by every loss.

    python benchmarks/losses.py [TASK ...] [--rows 12000]

Each task has a loss, a measure and rows: tables of the folder `suite` below the one that RFLAF_DATA
names (see tables.py), or synthetic ones whose mean is known. `error` is the mean deviance, the mean
pinball loss or the mean absolute error on test rows, over that of the best constant; for synthetic
rows `truth` is that of the known mean. Peers are HistGradientBoostingRegressor with the same loss
(squared error for Huber and Poisson for Tweedie, which it lacks) and a linear model:
PoissonRegressor, GammaRegressor, TweedieRegressor, QuantileRegressor, HuberRegressor. "outliers"
adds 100 standard deviations at most to 5 % of the training targets, all to one side.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _bench import write
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_tweedie_deviance
from sklearn.pipeline import make_pipeline
from tables import codes, numbers, tables

from rflaf import RFLAFRegressor

POWERS = {"poisson": 1.0, "tweedie": 1.5, "gamma": 2.0}
REAL = [
    ("bike_sharing", "poisson"),
    ("diamonds", "gamma"),
    ("diamonds", "absolute_error"),
    ("insurance", "gamma"),
    ("insurance", "huber"),
    ("insurance", "quantile"),
    ("kc_house", "gamma"),
    ("kc_house", "quantile"),
    ("taxis", "gamma"),
    ("taxis", "huber"),
    ("airbnb_mexico", "absolute_error"),
    ("airbnb_mexico", "quantile"),
]
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Rows:
    """Rows of a task: training and test inputs, targets, and the known means of the test rows."""

    x: Any
    y: Any
    x_test: Any
    y_test: Any
    truth: Any = None


def real(folder: Path, wanted: set[str], most: int) -> dict[str, Rows]:
    """Rows of tables, by their names."""
    found = {}
    for name, train, test in tables(folder, "mixed"):
        if name in wanted:
            train = train.sample(min(len(train), most), random_state=0)
            parts = [(t.drop(columns="target"), t["target"].to_numpy(float)) for t in (train, test)]
            found[name] = Rows(*parts[0], *parts[1])
    return found


def synthetic(loss: str, most: int) -> Rows:
    """Targets of a known distribution, whose mean (or median, or quantiles) is known."""
    rng = np.random.default_rng(0)
    n = min(most, 3000)
    x = rng.uniform(-1, 1, (n + 5000, 6))
    signal = np.sin(3 * x[:, 0]) + 2 * x[:, 1] * x[:, 2] + x[:, 3]
    mean = np.exp(signal)
    if loss == "poisson":
        y = rng.poisson(mean).astype(float)
    elif loss == "gamma":
        y = mean * rng.gamma(2.0, 0.5, len(x))
    elif loss == "tweedie":  # a Poisson number of gamma claims: power 1.5
        count = rng.poisson(2 * np.sqrt(mean))
        y = np.where(count > 0, rng.gamma(np.maximum(count, 1), np.sqrt(mean) / 2), 0.0)
    else:
        scale = 0.5 * np.exp(x[:, 4])
        noise = rng.standard_t(3, len(x))
        y, mean = signal + scale * noise, signal
        if loss == "quantile":
            levels = np.quantile(rng.standard_t(3, 1_000_000), QUANTILES)
            mean = signal[:, None] + scale[:, None] * levels
    frame = pd.DataFrame(x, columns=[f"c{k}" for k in range(6)])
    return Rows(frame[:n], y[:n], frame[n:], y[n:], mean[n:])


def with_outliers(rows: Rows) -> Rows:
    """The same with 5 % of the training targets far too large."""
    rng = np.random.default_rng(0)
    off = 100 * np.std(rows.y) * rng.random(len(rows.y)) * (rng.random(len(rows.y)) < 0.05)
    return Rows(rows.x, rows.y + off, rows.x_test, rows.y_test, rows.truth)


def measure(loss: str, y: Any, prediction: Any) -> float:
    """The mean of what the loss is about, on rows with targets y."""
    if loss in POWERS:
        least = 1e-6 * np.mean(y)
        return float(mean_tweedie_deviance(y, np.maximum(prediction, least), power=POWERS[loss]))
    if loss == "quantile":
        pairs = zip(QUANTILES, np.asarray(prediction).T)
        return float(np.mean([mean_pinball_loss(y, each, alpha=q) for q, each in pairs]))
    return float(mean_absolute_error(y, prediction))


class Each:
    """A model per quantile, for peers that have one at a time."""

    def __init__(self, make: Callable[[float], Any]) -> None:
        self.models = [make(q) for q in QUANTILES]

    def fit(self, x: Any, y: Any) -> Each:
        for model in self.models:
            model.fit(x, y)
        return self

    def predict(self, x: Any) -> Any:
        return np.column_stack([model.predict(x) for model in self.models])


def boosted(loss: str, quantile: float | None = None) -> Any:
    named = {"huber": "squared_error", "tweedie": "poisson"}.get(loss, loss)
    model = HistGradientBoostingRegressor(loss=named, quantile=quantile, random_state=0)
    return make_pipeline(codes(), model)


def linear(loss: str, quantile: float = 0.5) -> Any:
    model = {
        "poisson": PoissonRegressor(alpha=1e-3, max_iter=1000),
        "gamma": GammaRegressor(alpha=1e-3, max_iter=1000),
        "tweedie": TweedieRegressor(power=1.5, alpha=1e-3, link="log", max_iter=1000),
        "huber": HuberRegressor(max_iter=1000),
    }.get(loss, QuantileRegressor(quantile=quantile, alpha=1e-4))
    return make_pipeline(numbers(), model)


def models(loss: str) -> dict[str, Any]:
    """What is compared, by name."""
    if loss == "quantile":
        return {
            "rflaf": RFLAFRegressor(loss=loss, quantile=list(QUANTILES), random_state=0),
            "hist_gradient_boosting": Each(lambda q: boosted(loss, q)),
            "linear": Each(lambda q: linear(loss, q)),
        }
    rflaf = RFLAFRegressor(loss=loss, random_state=0)
    return {"rflaf": rflaf, "hist_gradient_boosting": boosted(loss), "linear": linear(loss)}


def constant(loss: str, y: Any, count: int) -> Any:
    best = np.quantile(y, QUANTILES) if loss == "quantile" else np.median(y)
    return np.broadcast_to(np.mean(y) if loss in POWERS else best, (count, *np.shape(best)))


def run(task: str, loss: str, rows: Rows, compared: dict[str, Any]) -> list[dict[str, Any]]:
    """A result per model."""
    results = []
    unit = measure(loss, rows.y_test, constant(loss, rows.y, len(rows.y_test)))
    truth = None if rows.truth is None else measure(loss, rows.y_test, rows.truth) / unit
    for label, model in compared.items():
        start = time.perf_counter()
        model.fit(rows.x, rows.y)
        seconds = time.perf_counter() - start
        prediction = model.predict(rows.x_test)
        found = {
            "task": task, "loss": loss, "model": label, "rows": len(rows.y),
            "error": measure(loss, rows.y_test, prediction) / unit, "seconds": seconds,
        }  # fmt: skip
        if truth is not None:
            found["truth"] = truth
        if loss == "quantile":
            below = rows.y_test[:, None] <= np.asarray(prediction)
            found["share_below"] = below.mean(axis=0).tolist()
            found["crossing"] = float((np.diff(prediction, axis=1) < 0).any(axis=1).mean())
        print(f"{task:16} {loss:15} {label:24} {found['error']:.4f} {seconds:6.1f} s", flush=True)
        results.append(found)
    return results


def outliers(task: str, clean: Rows) -> list[dict[str, Any]]:
    """Robust losses and squared error, with outliers and without."""
    results = []
    for loss in ("huber", "absolute_error", "squared_error"):
        for kind, rows in (("clean", clean), ("outliers", with_outliers(clean))):
            model = RFLAFRegressor(loss=loss, random_state=0)
            results += run(f"{task} {kind}", "absolute_error", rows, {f"rflaf {loss}": model})
    return results


def summary(results: list[dict[str, Any]]) -> None:
    """The geometric mean of errors, over tasks that all models have."""
    for name in dict.fromkeys(row["model"] for row in results):
        errors = [row["error"] for row in results if row["model"] == name]
        print(f"geometric mean {name:24} {np.exp(np.mean(np.log(errors))):.4f}")


def main(chosen: list[str], most: int) -> None:
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    warnings.simplefilter("ignore")
    results = []
    found = real(folder, {name for name, _ in REAL}, most)
    for task, loss in REAL:
        if not chosen or task in chosen:
            results += run(task, loss, found[task], models(loss))
    if not chosen or "synthetic" in chosen:
        for loss in ("poisson", "gamma", "tweedie", "absolute_error", "huber", "quantile"):
            results += run("synthetic", loss, synthetic(loss, most), models(loss))
    summary(results)
    if not chosen or "outliers" in chosen:
        results += outliers("synthetic", synthetic("huber", most))
        results += outliers("diamonds", found["diamonds"])
    write("losses", results, replace=("task", "loss", "model"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help="tables, synthetic, outliers; all by default")
    parser.add_argument("--rows", type=int, default=12_000, help="most training rows")
    given = parser.parse_args()
    main(given.tasks, given.rows)
