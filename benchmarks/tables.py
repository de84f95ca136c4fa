"""Many real tables, every model with its defaults.

    python benchmarks/tables.py [KIND ...] [--models lightgbm,catboost]

Tables are read from the folder `suite` below the one that RFLAF_DATA names: `reg` (no header, the
target last, masks of test rows beside), `reg_extra`, `mixed` and `clf` (a header, the column
`target`). Peers are what is installed of scikit-learn, LightGBM and CatBoost. A loss is the mean
squared error over the target's variance, or the cross-entropy, on the first test part; seconds are
those of `fit`, on a machine that does nothing else. Training rows are thinned to 12,000.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _bench import write
from sklearn.compose import make_column_selector as columns
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from rflaf import RFLAFClassifier, RFLAFRegressor

KINDS = ("reg", "reg_extra", "mixed", "clf")
MOST = 12_000


def tables(folder: Path, kind: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, training rows and test rows of each table."""
    for path in sorted((folder / kind).glob("*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        if name.endswith(".mask"):
            continue
        if kind == "reg":
            table = pd.read_csv(path, header=None)
            table.columns = [*(f"c{k}" for k in range(table.shape[1] - 1)), "target"]
            mask = np.loadtxt(path.with_name(f"{name}.mask.csv.gz"), delimiter=",")[:, 0] > 0
            train, test = table[~mask], table[mask]
        else:
            table = pd.read_csv(path).dropna(subset=["target"])
            classes = table["target"] if kind == "clf" else None
            if classes is not None and classes.value_counts().min() < 4:
                classes = None
            train, test = train_test_split(table, test_size=0.2, random_state=0, stratify=classes)
        yield name, train.sample(min(len(train), MOST), random_state=0), test


def numbers() -> Any:
    """Columns of any type as numbers: one-hot, medians with an indicator."""
    plain = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    levels = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing"),
        OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=5,
            max_categories=40,
            sparse_output=False,
        ),
    )
    is_number = ["number", "bool"]
    return make_column_transformer(
        (plain, columns(dtype_include=is_number)), (levels, columns(dtype_exclude=is_number))
    )


def codes() -> Any:
    """Levels as whole numbers, for trees."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_column_transformer(
        (encoder, columns(dtype_exclude=["number", "bool"])), remainder="passthrough"
    )


def models(classes: bool) -> dict[str, Callable[[], Any]]:
    """What is compared, by name."""
    forest = RandomForestClassifier if classes else RandomForestRegressor
    boosted = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    linear = LogisticRegressionCV(max_iter=300, Cs=6, cv=3) if classes else None
    found: dict[str, Callable[[], Any]] = {
        "rflaf": lambda: (RFLAFClassifier if classes else RFLAFRegressor)(random_state=0),
        "linear": lambda: make_pipeline(numbers(), linear or RidgeCV(np.logspace(-3, 4, 15))),
        "forest": lambda: make_pipeline(numbers(), forest(300, n_jobs=-1, random_state=0)),
        "hist_gradient_boosting": lambda: make_pipeline(codes(), boosted(random_state=0)),
    }
    if find_spec("lightgbm"):
        import lightgbm

        kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        found["lightgbm"] = lambda: make_pipeline(
            codes(), kind(n_estimators=500, learning_rate=0.05, verbose=-1)
        )
    if find_spec("catboost"):
        import catboost

        kind = catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor
        found["catboost"] = lambda: make_pipeline(
            codes(), kind(verbose=0, random_seed=0, allow_writing_files=False)
        )
    return found


def measure(model: Any, train: Any, test: Any, classes: bool) -> dict[str, float]:
    """Loss on the test rows, and seconds of the fit."""
    x, x_test = train.drop(columns="target"), test.drop(columns="target")
    y, y_test = train["target"].to_numpy(), test["target"].to_numpy()
    if classes:
        y, y_test = y.astype(str), y_test.astype(str)
    start = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - start
    if classes:
        p = np.clip(model.predict_proba(x_test), 1e-7, 1)
        loss = log_loss(y_test, p / p.sum(axis=1, keepdims=True), labels=model.classes_)
    else:
        loss = float(np.mean((model.predict(x_test) - y_test) ** 2) / np.var(y_test))
    return {"loss": float(loss), "seconds": seconds}


def main(kinds: list[str], chosen: set[str]) -> None:
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    warnings.simplefilter("ignore")
    rows = []
    for kind in kinds or KINDS:
        for name, train, test in tables(folder, kind):
            for label, make in models(kind == "clf").items():
                if chosen and label not in chosen:
                    continue
                found = measure(make(), train, test, kind == "clf")
                size = {"rows": len(train), "inputs": train.shape[1] - 1}
                rows.append({"table": f"{kind}/{name}", "model": label, **size, **found})
                print(f"{kind}/{name:24}{label:24}{found['loss']:10.4f}{found['seconds']:8.1f} s")
    write("tables", rows, replace=("table", "model"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; default: all")
    parser.add_argument("--models", default="", help="names, separated by commas; default: all")
    options = parser.parse_args()
    main(options.kinds, set(filter(None, options.models.split(","))))
