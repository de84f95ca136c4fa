"""Wide models by conjugate gradients: python benchmarks/wide.py [NAME ...]

Data is read from the folder that RFLAF_DATA names. Each model is fitted in a process of its own, so
that its peak memory is its own too.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np
from _bench import show, write
from _tables import kin40k_or_bike, protein
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rflaf import RFLAFRegressor

Row = dict[str, Any]
MEMORY = 5 << 29  # bytes that a fit may use for features, of 4 GB for the process

CASES = {
    "protein": ("protein", 30_000, "<= 0.125"),
    "kin40k": ("kin40k", 10_000, "< 0.002"),
    "kin40k-30k": ("kin40k", 30_000, "< 0.002"),
}


def rows_of(name: str) -> Any:
    return protein() if name == "protein" else kin40k_or_bike(name)


def fit(name: str, width: int) -> Row:
    """Error, seconds and peak memory; runs in a child process."""
    x, y, x_test, y_test = rows_of(name)
    model = RFLAFRegressor(width, solver="cg", max_bytes=MEMORY, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(x, y)
    seconds = time.perf_counter() - start
    error = float(np.mean((model.predict(x_test) - y_test) ** 2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    path = [{k: r[k] for k in ("alpha", "scale", "loss", "steps")} for r in model.alpha_path_]
    return {"error": error, "seconds": seconds, "peak": peak, "alpha": model.alpha_, "path": path}


def references(name: str) -> list[Row]:
    """Ridge regression on the inputs, and LightGBM where it is installed."""
    x, y, x_test, y_test = rows_of(name)
    models: dict[str, Any] = {
        "RidgeCV on the inputs": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    }
    if importlib.util.find_spec("lightgbm"):
        from lightgbm import LGBMRegressor

        models["LightGBM, 500 trees"] = LGBMRegressor(n_estimators=500, random_state=0, verbose=-1)
    found = []
    for what, model in models.items():
        start = time.perf_counter()
        model.fit(x, y)
        seconds = time.perf_counter() - start
        error = float(np.mean((model.predict(x_test) - y_test) ** 2))
        found.append(row(f"{name}, {what}: test MSE", error, "", "none", seconds=seconds))
    return found


def row(what: str, figure: float, unit: str, target: str, **more: Any) -> Row:
    return {"what": what, "figure": figure, "unit": unit, "target": target, **more}


def case(name: str) -> list[Row]:
    data, width, target = CASES[name]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(fit, (data, width))
    label = f"{data}, M = {width}"
    more = {"alpha": found["alpha"], "path": found["path"]}
    rows = [
        row(f"{label}: test MSE", found["error"], "", target, **more),
        row(f"{label}: fit", found["seconds"], "s", "< 600"),
        row(f"{label}: peak memory", found["peak"] / 1e9, "GB", "< 4"),
    ]
    return rows + (references(data) if data == name else [])


def main(names: list[str]) -> None:
    for name in names or list(CASES):
        rows = case(name)
        show(rows)
        write("wide", [{"part": name, **each} for each in rows], replace="part")


if __name__ == "__main__":
    main(sys.argv[1:])
