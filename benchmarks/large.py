"""Tables of many rows, none left out: python benchmarks/large.py [NAME ...] [--models rflaf,...]

Read from $RFLAF_DATA, but for `smooth` and `jumps`: a million rows of known functions with noise.
Peers are LightGBM (3,000 trees, rate 0.05, 63 leaves, early stopping on a tenth) and CatBoost with
its defaults, where they are installed (benchmarks/peers.txt). A tenth of the rows is for testing.
"without local models" is the default fit with `local_models=False`. "rflaf with AVX-512" is the
default fit with OPENBLAS_CORETYPE=SkylakeX: on AMD processors OpenBLAS does not use AVX-512 unless
asked. Losses and seconds as in benchmarks/tables.py; `gigabytes` is the largest memory of the
process that fits. Results are written after each table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import pandas as pd
from _bench import write
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from tables import AsTyped, LightGBM, measure, models, package

from rflaf import RFLAFClassifier, RFLAFRegressor

SUITE = {
    "diamonds": "mixed",
    "electricity_price_ie": "mixed",
    "gss_wages": "mixed",
    "electricity": "clf",
    "cardio": "clf",
}
NAMES = ("protein", "kin40k", *SUITE, "adult", "smooth", "jumps")
BOOSTED = {"n_estimators": 3000, "learning_rate": 0.05, "num_leaves": 63}
AVX512 = "rflaf with AVX-512"
MODELS = ("rflaf", "without local models", AVX512, "lightgbm", "catboost")


def table(name: str) -> tuple[Any, bool]:
    """A frame with the column `target`, and whether that is a class."""
    folder = Path(os.environ.get("RFLAF_DATA", ""))
    if name in ("smooth", "jumps"):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (1_000_000, 10))
        y = np.sin(6 * X[:, 0] * X[:, 1]) + np.cos(5 * X[:, 2]) * X[:, 3] + np.exp(X[:, 4])
        if name == "jumps":
            y = np.round(2 * y) + (X[:, 5] > 0.3) * (X[:, 6] < 0.1)
        frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(10)])
        return frame.assign(target=y + 0.1 * rng.standard_normal(len(y))), False
    if name == "protein":
        frame = pd.read_csv(folder / "protein" / "CASP.csv.gz")
        return frame.rename(columns={"RMSD": "target"}), False
    if name == "kin40k":
        frame = pd.read_csv(folder / "uci" / "kin40k.csv.gz", header=None)
        return frame.rename(columns=str).rename(columns={str(frame.shape[1] - 1): "target"}), False
    if name == "adult":
        frame = pd.read_csv(folder / "adult" / "adult.data.gz", header=None, skipinitialspace=True)
        return frame.rename(columns=str).rename(columns={"14": "target"}), True
    frame = pd.read_csv(folder / "suite" / SUITE[name] / f"{name}.csv.gz")
    return frame.dropna(subset=["target"]), SUITE[name] == "clf"


def one(name: str, label: str) -> dict[str, Any]:
    """A model on a table."""
    frame, classes = table(name)
    layers = frame["target"] if classes else None
    train, test = train_test_split(frame, test_size=0.1, random_state=0, stratify=layers)
    estimator: Any = RFLAFClassifier if classes else RFLAFRegressor
    if label == "without local models":
        model = estimator(random_state=0, local_models=False)
    elif label == "lightgbm":
        model = make_pipeline(AsTyped(), LightGBM(classes, BOOSTED))
    else:
        model = models(classes)["rflaf" if label == AVX512 else label]()
    if label.startswith(("rflaf", "without")):  # kernels are compiled before the clock starts
        estimator(random_state=0).fit(*_few(train))
    found = measure(model, train, test, classes)
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 2**20
    row = {"table": name, "model": label, **package(label), "rows": len(train)}
    return {**row, "gigabytes": memory, **found}


def _few(train: Any) -> tuple[Any, Any]:
    some = train.iloc[:2000]
    return some.drop(columns="target"), some["target"]


def main(names: list[str], labels: list[str]) -> None:
    """Each in a process of its own, so that its memory is its own."""
    for name in names or NAMES:
        rows = []
        for label in labels:
            more = {"OPENBLAS_CORETYPE": "SkylakeX"} if label == AVX512 else {}
            done = subprocess.run(
                [sys.executable, __file__, "--one", name, label],
                env={**os.environ, **more},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                print(f"{name:24}{label:24}{done.stderr.splitlines()[-1]}", flush=True)
                continue
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            found = rows[-1]
            print(f"{name:24}{label:24}{found['loss']:10.5f}{found['seconds']:8.1f} s", flush=True)
        write("large", rows, replace=("table", "model"))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(*sys.argv[2:])))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; default: all")
        parser.add_argument("--models", default=",".join(MODELS), help="separated by commas")
        options = parser.parse_args()
        main(options.names, options.models.split(","))
