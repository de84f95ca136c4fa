"""Attributions: how exactly they add up, what they cost, and whether others agree.

    python benchmarks/explain.py [--quick]

`explain` is timed on 2,000 rows of 70 columns, LightGBM's TreeSHAP on the same rows where lightgbm
is installed. Where shap is, its KernelExplainer explains the same models with the same background,
and the columns are ranked by both: Spearman's correlation, in the median of 20 rows. Models with
local models are timed against the same models without them. The effects of 50 columns, as the model
page has them, are timed against predictions of all changed rows, in processor time.
"""

from __future__ import annotations

import argparse
import warnings
from copy import copy
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from _bench import best_seconds, show, write
from scipy.stats import spearmanr
from sklearn.datasets import load_diabetes, make_friedman1

from rflaf import RFLAFRegressor
from rflaf.datasets import load
from rflaf.report.effects import effects_of
from rflaf.report.evidence import on_test_rows
from rflaf.report.subject import Subject

ROWS, COLUMNS = 2000, 70


def wide() -> tuple[Any, Any]:
    """Rows of 70 columns, of which five matter."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3000, COLUMNS))
    noise = 0.1 * rng.standard_normal(len(x))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3] + x[:, 4] ** 2 + noise


def sum_error(model: Any, x: Any, y: Any) -> float:
    """The largest difference between sums and predictions, in standard deviations of the target."""
    why = model.explain(x)
    sums = why.values.sum(axis=1) + why.base_values
    return float(np.abs(sums - model.predict(x)).max() / np.std(y))


def agreement(model: Any, x: Any) -> float:
    """The median correlation with KernelSHAP's ranks of the columns, over rows."""
    import shap

    kernel = shap.KernelExplainer(model.predict, model.background_)
    theirs = kernel.shap_values(x, silent=True)
    ours = model.explain(x).values
    return float(np.median([spearmanr(a, b).statistic for a, b in zip(ours, theirs)]))


def local_ratios(settings: dict[str, Any], repeats: int) -> list[dict[str, Any]]:
    """Times of a model with local models, relative to the same model without them."""
    airfoil = load("airfoil")
    model = RFLAFRegressor(**settings).fit(airfoil.X, airfoil.y)
    plain = copy(model)
    plain.members_ = [replace(member, local=()) for member in model.members_]
    found = []
    for what, count in (("predict", 1), ("predict", 1000), ("explain", 200), ("gradient", 200)):
        some = airfoil.X[:count]
        calls = [partial(getattr(each, what), some) for each in (model, plain)]
        both = best_seconds(*calls, repeats=repeats)
        name = f"{what}, {count:,} rows of airfoil: time relative to no local models"
        found.append(_row(name, both[0] / both[1], "", "<= 3"))
    return found


def effect_times(model: Any, x: Any, y: Any) -> list[dict[str, Any]]:
    """Processor time of the effects of 50 columns, and relative to predictions for one in ten."""
    subject, columns = Subject(model), list(range(50))
    evidence = on_test_rows(subject, x, y)
    effects_of(subject, evidence, columns[:1], [""] * COLUMNS)  # compiles
    start = process_time()
    effects = effects_of(subject, evidence, columns, [""] * COLUMNS)
    taken = process_time() - start
    some = np.random.default_rng(0).permutation(len(x))[:200]
    start = process_time()
    for j in columns[::10]:
        changed = np.tile(x[some], (len(effects[j].at), 1))
        changed[:, j] = np.repeat(effects[j].at, len(some))
        subject.outputs(changed)
        subject.member_outputs(changed)
    ratio = taken / (10 * (process_time() - start))
    name = f"effects of 50 columns, {len(x):,} rows"
    return [
        _row(f"{name}: processor time", taken, "s", "<= 10"),
        _row(f"{name}: relative to predictions", ratio, "", "<= 0.5"),
    ]


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    settings: dict[str, Any] = {"random_state": 0, "max_iter": 4} if quick else {"random_state": 0}
    x, y = wide()
    model = RFLAFRegressor(**settings).fit(x, y)
    some, repeats = x[:ROWS], 1 if quick else 5
    (seconds,) = best_seconds(lambda: model.explain(some), repeats=repeats)
    rows = [
        _row("sums, error in standard deviations", sum_error(model, some, y), "", "<= 1e-6"),
        _row(f"explain, {ROWS:,} rows × {COLUMNS} columns", seconds, "s", "<= 2"),
    ]
    if find_spec("lightgbm"):
        import lightgbm

        trees = lightgbm.LGBMRegressor(verbose=-1).fit(x, y)
        taken = best_seconds(lambda: trees.predict(some, pred_contrib=True), repeats=repeats)
        rows.append(_row("TreeSHAP of LightGBM, the same rows", taken[0], "s", "-"))
    rows += effect_times(model, some, y[:ROWS])
    rows += local_ratios(settings, repeats)
    tables = {
        "friedman1": make_friedman1(1000, noise=0.5, random_state=0),
        "diabetes": load_diabetes(return_X_y=True),
    }
    for name, (inputs, target) in tables.items() if find_spec("shap") else ():
        fitted = RFLAFRegressor(**settings).fit(inputs, target)
        found = agreement(fitted, inputs[: 3 if quick else 20])
        rows.append(_row(f"rank agreement with KernelSHAP, {name}", found, "", ">= 0.9"))
    show(rows)
    if not quick:
        write("explain", rows, replace="what")


def _row(what: str, figure: float, unit: str, target: str) -> dict[str, Any]:
    return {"what": what, "figure": figure, "unit": unit, "target": target}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test, with small models")
    main(parser.parse_args().quick)
