"""What each number in `rflaf/rules.py` is worth: fits with another value, one rule at a time.

    python benchmarks/rules.py [RULE ...] [--half find|check] [--seeds 1]

Tables are those of `$RFLAF_DATA/suite`, in two halves: rules are looked for on one ("find"), and
checked on the other. A row has the loss and the processor time over those of the rules as they are,
in the geometric mean over the tables, and the number of tables whose loss is higher by 1 % or more.
Training rows are thinned to 2,000.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _bench import write
from sklearn.metrics import log_loss
from tables import KINDS, tables

from rflaf import RFLAFClassifier, RFLAFRegressor, rules

MOST = 2000
# Every second table of a kind, by name, is for finding rules.
OTHERS: dict[str, list[Any]] = {
    "COMPONENTS": [((2000, 300), (10_000, 600), (30_000, 1200))],
    "MEMBERS": [((5000, 3), (10_000, 3)), ((100_000, 1),)],
    "BINS": [16, 32],
    "RANK_KNOTS": [33],
    "TRIAL_STEPS": [5, 20],
    "MIXED_LOSS": [1.0, 2.0],
    "ROWS_PER_STEP": [50, 200],
    "TURNS": [0, 1],
    "RATE": [0.05, 0.2],
    "RISE": [1],
    "STAGES": [((3e7, 1.0),), ((4e8, 1.0),)],
    "LIMITED_GAIN": [0.0],
    "SKETCH_FEATURES": [100],
    "SCREENED_INPUTS": [0],
    "FILL": [0.3, 0.9],
    "FREQUENCIES": [(2.2,)],
    "WORKING_ROWS": [0, 500, 2000, 10**9],
    "FIRST_STEPS": [0.5],
    "SUREST": [2.0, 5.0],
    "FLATTEST": [0.05],
    "PENALTY_STEP": [2.0],
    "STRONGER_START": [1.0, 16.0],
    "LEAST_PART": [0.0],
    "MOST_TEMPERATURE": [1.0],
}


def chosen_tables(half: str) -> list[tuple[str, Any, Any]]:
    """Name, training rows and test rows of one half of the tables."""
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    rest = 0 if half == "find" else 1
    found = []
    for kind in KINDS:
        for number, (name, train, test) in enumerate(tables(folder, kind)):
            if number % 2 == rest:
                small = train.sample(min(len(train), MOST), random_state=0)
                found.append((f"{kind}/{name}", small, test))
    return found


def measure(train: Any, test: Any, classes: bool, seed: int) -> tuple[float, float]:
    """Loss on the test rows and processor seconds of the fit, of the frame as it is."""
    x, x_test = train.drop(columns="target"), test.drop(columns="target")
    y, y_test = train["target"].to_numpy(), test["target"].to_numpy()
    start = time.process_time()
    if classes:
        y, y_test = y.astype(str), y_test.astype(str)
        model: Any = RFLAFClassifier(random_state=seed).fit(x, y)
    else:
        model = RFLAFRegressor(random_state=seed).fit(x, y)
    seconds = time.process_time() - start
    if classes:
        p = np.clip(model.predict_proba(x_test), 1e-7, 1)
        loss = log_loss(y_test, p / p.sum(axis=1, keepdims=True), labels=model.classes_)
    else:
        loss = np.mean((model.predict(x_test) - y_test) ** 2) / np.var(y_test)
    return float(loss), seconds


def main(names: list[str], half: str, seeds: int) -> None:
    warnings.simplefilter("ignore")
    rows = chosen_tables(half)

    def run() -> np.ndarray[Any, Any]:
        return np.array([
            [measure(train, test, name.startswith("clf"), seed) for seed in range(seeds)]
            for name, train, test in rows
        ])  # fmt: skip

    run_small = measure(*rows[0][1:], rows[0][0].startswith("clf"), 0)
    assert np.isfinite(run_small[0])  # kernels are compiled
    usual, results = run(), []
    for name in names or list(OTHERS):
        before = getattr(rules, name)
        for value in OTHERS[name]:
            setattr(rules, name, value)
            other = np.log(run() / usual).mean(axis=1)
            setattr(rules, name, before)
            loss, seconds = np.exp(other.mean(axis=0))
            worse = int(np.sum(other[:, 0] > np.log(1.01)))
            row = {"rule": name, "value": repr(value), "half": half, "tables": len(rows)}
            row |= {"loss": float(loss), "seconds": float(seconds), "worse": worse}
            row["is"] = repr(before)
            results.append(row)
            print(f"{name:20}{value!r:36}{loss:8.4f}{seconds:8.2f}{worse:4} worse", flush=True)
            write("rules", [row], replace=("rule", "value", "half"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="RULE", help="default: all")
    parser.add_argument("--half", choices=("find", "check"), default="find")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    main(options.names, options.half, options.seeds)
