"""Accuracy and time of the estimators on real data: python benchmarks/estimators.py [NAME ...]

Data is read from the folder that RFLAF_DATA names. Without it only the synthetic parts run. Every
figure of time is a ratio to a reference in the same run.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _bench import best_seconds, show, write
from _tables import adult, kin40k_or_bike, mnist, protein
from sklearn.datasets import make_friedman1, make_regression
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rflaf import RFLAFClassifier, RFLAFRegressor, datasets

Row = dict[str, Any]


def row(what: str, figure: float, unit: str, target: str, **more: Any) -> Row:
    return {"what": what, "figure": float(figure), "unit": unit, "target": target, **more}


def fitted(model: Any, x: Any, y: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(x, y)
    return model, time.perf_counter() - start


def tuned_fourier(x: Any, y: Any, width: int = 3000) -> tuple[Any, float]:
    """RBFSampler and Ridge, bandwidth and penalty picked from 20 combinations on 6,000 rows."""
    start = time.perf_counter()
    rows = np.random.default_rng(0).permutation(len(x))[:6000]
    cut = int(0.8 * len(rows))
    fit, held = rows[:cut], rows[cut:]
    best: tuple[float, Any] = (np.inf, None)
    for gamma in np.array([0.03, 0.1, 0.3, 1.0, 3.0]) / x.shape[1]:
        for alpha in (1e-3, 1e-2, 1e-1, 1.0):
            model = make_pipeline(
                StandardScaler(),
                RBFSampler(gamma=gamma, n_components=width, random_state=0),
                Ridge(alpha=alpha),
            ).fit(x[fit], y[fit])
            error = float(np.mean((model.predict(x[held]) - y[held]) ** 2))
            if error < best[0]:
                best = error, model
    best[1].fit(x, y)
    return best[1], time.perf_counter() - start


def dense_epochs(x: Any, epochs: int = 30, width: int = 3000, n: int = 17) -> float:
    """Seconds that `epochs` of the paper's dense training would take, from a few batches."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((x.shape[1], width)).astype(np.float32)
    centers = np.linspace(-2, 2, n, dtype=np.float32)
    a = rng.standard_normal(n).astype(np.float32)
    v = (rng.standard_normal(width) / np.sqrt(width)).astype(np.float32)
    z = x[:128].astype(np.float32) @ w

    def batch() -> None:
        values = np.exp((z[..., None] - centers) ** 2 * np.float32(-0.5 / 0.25**2))
        phi = values @ a
        g = np.outer(phi @ v, v)
        np.tensordot(g, values, axes=2), phi.T @ g[:, 0]

    return best_seconds(batch, repeats=3)[0] * epochs * len(x) / 128


def protein_rows() -> list[Row]:
    x, y, x_test, y_test = protein()
    rows = []
    for width, target in ((3000, 0.152), (10_000, 0.135)):
        model, seconds = fitted(RFLAFRegressor(width, random_state=0), x, y)
        error = np.mean((model.predict(x_test) - y_test) ** 2)
        rows.append(
            row(f"protein, M = {width}: test MSE", error, "", f"<= {target}", seconds=seconds)
        )
        if width == 3000:
            share = seconds / dense_epochs(x)
            rows.append(row("protein, M = 3000: time / 30 dense epochs", share, "×", "<= 0.167"))
            model, seconds = fitted(RFLAFRegressor(width, metric="none", random_state=0), x, y)
            error = np.mean((model.predict(x_test) - y_test) ** 2)
            rows.append(row("protein, M = 3000, metric none: test MSE", error, "", "none"))
            fourier, _ = tuned_fourier(x, y)
            error = np.mean((fourier.predict(x_test) - y_test) ** 2)
            rows.append(row("protein, tuned RBFSampler(3000): test MSE", error, "", "none"))
    return rows


def uci_rows(name: str, target: float) -> Callable[[], list[Row]]:
    def run() -> list[Row]:
        x, y, x_test, y_test = kin40k_or_bike(name)
        model, seconds = fitted(RFLAFRegressor(3000, random_state=0), x, y)
        error = np.mean((model.predict(x_test) - y_test) ** 2)
        fourier, reference = tuned_fourier(x, y)
        theirs = np.mean((fourier.predict(x_test) - y_test) ** 2)
        return [
            row(f"{name}, M = 3000: test MSE", error, "", f"<= {target}", seconds=seconds),
            row(f"{name}, tuned RBFSampler(3000): test MSE", theirs, "", "none"),
            row(f"{name}: time / tuning RBFSampler + Ridge", seconds / reference, "×", "<= 1"),
        ]

    return run


def classifier_rows(name: str, width: int, accuracy: float, loss: float) -> Callable[[], list[Row]]:
    def run() -> list[Row]:
        x, y, x_test, y_test = {"mnist": mnist, "adult": adult}[name]()
        model, seconds = fitted(RFLAFClassifier(width, random_state=0), x, y)
        p = model.predict_proba(x_test)
        correct = 100 * np.mean(model.classes_[p.argmax(axis=1)] == y_test)
        return [
            row(f"{name}, M = {width}: accuracy", correct, "%", f">= {accuracy}", seconds=seconds),
            row(f"{name}, M = {width}: cross-entropy", log_loss(y_test, p), "", f"<= {loss}"),
        ]

    return run


def small_rows() -> list[Row]:
    x, y = make_regression(2000, 50, n_informative=20, noise=20.0, random_state=0)
    fit, test = slice(0, 1500), slice(1500, None)
    fitted(RFLAFRegressor(random_state=0), x[fit], y[fit])
    seconds = best_seconds(
        lambda: fitted(RFLAFRegressor(random_state=0), x[fit], y[fit]), repeats=3
    )[0]
    ours = fitted(RFLAFRegressor(random_state=0), x[fit], y[fit])[0].score(x[test], y[test])
    linear = RidgeCV(np.logspace(-3, 3, 13)).fit(x[fit], y[fit]).score(x[test], y[test])
    rows = [
        row("1,500 × 50 rows, default parameters: fit", seconds, "s", "< 2"),
        row("linear data: R² of RidgeCV minus ours", linear - ours, "", "<= 0.005", r2=ours),
    ]
    x, y = make_friedman1(2000, noise=1.0, random_state=0)
    ours = fitted(RFLAFRegressor(random_state=0), x[fit], y[fit])[0].score(x[test], y[test])
    fourier = tuned_fourier(x[fit], y[fit], 1000)[0].score(x[test], y[test])
    rows.append(
        row("friedman1: R² minus that of tuned RBFSampler + Ridge", ours - fourier, "", ">= 0")
    )
    return rows


def prediction_rows() -> list[Row]:
    x, y = make_friedman1(20_000, random_state=0)
    x32 = x.astype(np.float32)
    one = RFLAFRegressor(3000, n_members=1, max_iter=10, random_state=0)  # as many features
    ours, _ = fitted(one, x[:4000], y[:4000])
    theirs = make_pipeline(StandardScaler(), RBFSampler(n_components=3000), Ridge()).fit(
        x32[:4000], y[:4000]
    )
    slow, fast = best_seconds(lambda: theirs.predict(x32), lambda: ours.predict(x32), repeats=9)
    what = "predict: throughput relative to RBFSampler + Ridge"
    return [row(what, slow / fast, "×", ">= 3", rows_per_second=len(x) / fast)]


def growth_rows() -> list[Row]:
    sizes, seconds = [10_000, 30_000, 100_000, 300_000, 1_000_000], []
    rng = np.random.default_rng(0)
    for n in sizes:
        x = rng.standard_normal((n, 10), dtype=np.float32)
        y = np.sin(x[:, 0] * 2) + x[:, 1] * x[:, 2]
        one = RFLAFRegressor(1000, n_members=1, random_state=0)  # as it is for all but the first
        seconds.append(fitted(one, x, y)[1])
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    what = "fit, M = 1000, n = 10k to 1M: slope of log time"
    return [row(what, slope, "", "<= 1.05", seconds=seconds, sizes=sizes)]


PARTS: dict[str, tuple[bool, Callable[[], list[Row]]]] = {
    "small": (False, small_rows),
    "predict": (False, prediction_rows),
    "kin40k": (True, uci_rows("kin40k", 0.005)),
    "bike": (True, uci_rows("bike", 0.0015)),
    "protein": (True, protein_rows),
    "mnist": (True, classifier_rows("mnist", 1000, 96.7, 0.113)),
    "adult": (True, classifier_rows("adult", 3000, 85.9, 0.306)),
    "growth": (False, growth_rows),
}


def main(names: list[str]) -> None:
    here = set(datasets.names(available=True))
    found: list[Row] = []
    for name in names or list(PARTS):
        needs_data, part = PARTS[name]
        if needs_data and name not in here:
            print(f"{name}: left out, its files are not in the folders that RFLAF_DATA names")
            continue
        rows = part()
        show(rows)
        found += [{"part": name, **each} for each in rows]
    write("estimators", found, replace="part")


if __name__ == "__main__":
    main(sys.argv[1:])
