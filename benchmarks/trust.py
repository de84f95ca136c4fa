"""Whether probabilities, intervals and importances can be trusted: python benchmarks/trust.py

On the tables of benchmarks/tables.py, thinned to 3,000 training rows: the expected calibration
error of classifiers (ten bins of the highest probability), the share of test rows inside intervals
of 90 %, overall and by quarter of the prediction, and Spearman's correlation of importances with
permutation importance on test rows.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _bench import show, write
from scipy.stats import spearmanr
from sklearn.inspection import permutation_importance
from tables import numbers, tables

from rflaf import RFLAFClassifier, RFLAFRegressor

MOST = 3000
INTERVALS = (("mixed", "diamonds"), ("mixed", "california_housing"), ("reg_extra", "house_8L"))
IMPORTANCES = ("airfoil", "concrete", "energy", "wine", "skillcraft", "autompg")
Split = tuple[Any, Any, Any, Any]


def splits(folder: Path, kind: str) -> dict[str, Split]:
    found = {}
    for name, train, test in tables(folder, kind):
        train = train.sample(min(len(train), MOST), random_state=0)
        encode = numbers().fit(train.drop(columns="target"))
        x, x_test = (np.asarray(encode.transform(p.drop(columns="target"))) for p in (train, test))
        found[name] = x, train["target"].to_numpy(), x_test, test["target"].to_numpy()
    return found


def calibration_error(p: Any, hit: Any) -> float:
    """The mean distance between confidence and accuracy, over ten bins."""
    place = np.minimum((10 * p).astype(int), 9)
    parts = [place == k for k in range(10) if (place == k).any()]
    return float(sum(at.mean() * abs(p[at].mean() - hit[at].mean()) for at in parts))


def synthetic(kind: str) -> Split:
    """Noise that is the same everywhere, grows with an input, or has heavy tails."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (6000, 4))
    noise = {
        "even": 0.3 * rng.standard_normal(6000),
        "growing": (0.1 + 0.5 * (x[:, 0] + 1)) * rng.standard_normal(6000),
        "heavy": 0.3 * rng.standard_t(3, 6000),
    }[kind]
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + noise
    return x[:MOST], y[:MOST], x[MOST:], y[MOST:]


def coverage_rows(name: str, split: Split) -> list[dict[str, Any]]:
    x, y, x_test, y_test = split
    model = RFLAFRegressor(random_state=0).fit(x, y)
    low, high = model.predict_interval(x_test, coverage=0.9)
    inside, middle = (low <= y_test) & (y_test <= high), model.predict(x_test)
    quarter = np.searchsorted(np.quantile(middle, [0.25, 0.5, 0.75]), middle)
    shares = [float(inside[quarter == k].mean()) for k in range(4)]
    return [
        {"what": f"{name}: coverage of 90 % intervals", "figure": 100 * float(inside.mean()),
         "unit": "%", "target": "88 to 92"},
        {"what": f"{name}: lowest coverage in a quarter of the predictions",
         "figure": 100 * min(shares), "unit": "%", "target": ">= 85"},
        {"what": f"{name}: highest coverage in a quarter of the predictions",
         "figure": 100 * max(shares), "unit": "%", "target": "<= 95"},
    ]  # fmt: skip


def main() -> None:
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    errors = []
    for x, y, x_test, y_test in splits(folder, "clf").values():
        model = RFLAFClassifier(random_state=0).fit(x, y.astype(str))
        p = model.predict_proba(x_test)
        hit = model.classes_[p.argmax(axis=1)] == y_test.astype(str)
        errors.append(calibration_error(p.max(axis=1), hit))
    rows.append({"what": f"expected calibration error, median of {len(errors)} tables",
                 "figure": float(np.median(errors)), "unit": "", "target": "<= 0.03"})  # fmt: skip
    found = {kind: splits(folder, kind) for kind in ("mixed", "reg_extra", "reg")}
    for kind, name in INTERVALS:
        rows += coverage_rows(name, found[kind][name])
    for kind in ("even", "growing", "heavy"):
        rows += coverage_rows(f"synthetic, {kind} noise", synthetic(kind))
    agreements = []
    for name in IMPORTANCES:
        x, y, x_test, y_test = found["reg"][name]
        fitted = RFLAFRegressor(random_state=0).fit(x, y)
        shuffled = permutation_importance(fitted, x_test, y_test, n_repeats=5, random_state=0)
        agreements.append(
            spearmanr(fitted.feature_importances_, shuffled.importances_mean).statistic
        )
    rows.append({"what": f"importances: Spearman's correlation with permutation importance, median "
                 f"of {len(agreements)} tables", "figure": float(np.median(agreements)), "unit": "",
                 "target": ">= 0.9"})  # fmt: skip
    show(rows)
    write("trust", rows)


if __name__ == "__main__":
    main()
