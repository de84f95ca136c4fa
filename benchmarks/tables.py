"""Many real tables, every model with its defaults, and called as its documentation says.

    python benchmarks/tables.py [KIND or KIND/TABLE ...] [--models lightgbm,catboost]

Tables are read from the folder `suite` below the one that RFLAF_DATA names: `reg` (no header, the
target last, masks of test rows beside), `reg_extra`, `mixed` and `clf` (a header, the column
`target`). Peers are what is installed of scikit-learn, LightGBM (with early stopping) and CatBoost:
benchmarks/peers.txt pins them, and each row has its version. rflaf gets the frame as it is,
CatBoost its categories as `cat_features`, LightGBM and scikit-learn's boosting columns of a type
for categories. A loss is the mean squared error over the target's variance, or the cross-entropy
(the share of wrong classes is measured too), on the first test part; seconds are those of `fit`, on
a machine that does nothing else: the median of three fits if the first takes less than two seconds.
Training rows are thinned to 12,000. Results are written after each table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _bench import write
from sklearn.base import BaseEstimator, TransformerMixin, clone
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
from rflaf.inputs.kinds import column_kind

KINDS = ("reg", "reg_extra", "mixed", "clf")
PACKAGES = {  # of each peer
    **dict.fromkeys(("linear", "forest", "hist_gradient_boosting"), "scikit-learn"),
    **{name: name for name in ("lightgbm", "catboost", "xrfm")},
}
MOST = 12_000
_SHORT = 2.0  # seconds of a fit that is timed three times


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


class AsTyped(TransformerMixin, BaseEstimator):
    """A frame as the documentation of tree packages asks for it.

    Dates are numbers, in days. Text is of a type for categories, or strings with `strings`.
    """

    def __init__(self, strings: bool = False) -> None:
        self.strings = strings

    def fit(self, X: Any, y: Any = None) -> AsTyped:
        plain = X.columns[[not is_plain(X[name]) for name in X]]
        self.dates_ = [name for name in plain if column_kind(X[name]) == "date"]
        self.levels_ = {name: as_text(X[name]).unique() for name in plain.drop(self.dates_)}
        return self

    def transform(self, X: Any) -> Any:
        X = X.copy()
        for name in self.dates_:
            X[name] = (
                pd.to_datetime(X[name], errors="coerce", format="mixed").astype("int64") / 8.64e13
            )
        for name, levels in self.levels_.items():
            text = as_text(X[name])
            X[name] = text if self.strings else pd.Categorical(text, categories=levels)
        return X


def as_text(column: Any) -> Any:
    return column.astype(object).where(column.notna(), "missing").astype(str)


def is_plain(column: Any) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


class Wrapped(BaseEstimator):
    """A model that needs more than `fit(X, y)`; `model_` is what was fitted."""

    @property
    def classes_(self) -> Any:
        return self.model_.classes_

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(X)


class CatBoost(Wrapped):
    """CatBoost with its defaults, told which columns are categories."""

    def __init__(self, classes: bool) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any) -> CatBoost:
        import catboost

        kind = catboost.CatBoostClassifier if self.classes else catboost.CatBoostRegressor
        self.model_ = kind(verbose=0, random_seed=0, allow_writing_files=False)
        self.model_.fit(X, y, cat_features=[name for name in X if not is_plain(X[name])])
        return self


class LightGBM(Wrapped):
    """LightGBM with early stopping on a tenth of the rows, and else `given` or its defaults."""

    def __init__(self, classes: bool, given: Any = None) -> None:
        self.classes = classes
        self.given = given

    def fit(self, X: Any, y: Any) -> LightGBM:
        import lightgbm

        kind = lightgbm.LGBMClassifier if self.classes else lightgbm.LGBMRegressor
        few = self.classes and np.unique(y, return_counts=True)[1].min() < 20
        layers = y if self.classes and not few else None
        parts = train_test_split(X, y, test_size=0.1, random_state=0, stratify=layers)
        if self.classes:  # early stopping takes no class that the other rows do not have
            known = np.isin(parts[3], parts[2])
            parts[1], parts[3] = parts[1][known], parts[3][known]
        self.model_ = kind(**{"n_estimators": 5000, "verbose": -1, **(self.given or {})})
        stop = lightgbm.early_stopping(50, verbose=False)
        self.model_.fit(parts[0], parts[2], eval_set=[(parts[1], parts[3])], callbacks=[stop])
        return self


class Boosted(Wrapped):
    """scikit-learn's gradient boosting; columns with too many levels for it are codes."""

    def __init__(self, classes: bool) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Boosted:
        kind = HistGradientBoostingClassifier if self.classes else HistGradientBoostingRegressor
        many = [name for name in X if not is_plain(X[name]) and len(X[name].cat.categories) > 255]
        self.many_ = many
        self.model_ = kind(random_state=0, categorical_features="from_dtype").fit(self._coded(X), y)
        return self

    def _coded(self, X: Any) -> Any:
        return X.assign(**{name: X[name].cat.codes for name in self.many_})

    def predict(self, X: Any) -> Any:
        return self.model_.predict(self._coded(X))

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(self._coded(X))


class XRFM(Wrapped):
    """xRFM with its defaults, on one-hot columns; it asks for rows to be tuned on: a fifth."""

    def __init__(self, classes: bool) -> None:
        self.classes = classes

    @property
    def classes_(self) -> Any:
        return self.levels_

    def fit(self, X: Any, y: Any) -> XRFM:
        import torch
        from xrfm import xRFM

        self.levels_, codes = np.unique(y, return_inverse=True) if self.classes else (None, y)
        self.mean_, self.size_ = (0.0, 1.0) if self.classes else (codes.mean(), codes.std() or 1.0)
        target = codes if self.classes else (codes - self.mean_)[:, None] / self.size_
        parts = train_test_split(np.asarray(X, np.float32), target, test_size=0.2, random_state=0)
        kinds = (
            torch.float32,
            torch.float32,
            *[torch.int64 if self.classes else torch.float32] * 2,
        )
        parts = [torch.tensor(each, dtype=kind) for each, kind in zip(parts, kinds)]
        self.model_ = xRFM(device="cpu", random_state=0, verbose=False)
        self.model_.fit(parts[0], parts[2], parts[1], parts[3])
        return self

    def predict(self, X: Any) -> Any:
        return np.ravel(self._asked("predict", X)) * self.size_ + self.mean_

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(self._asked("predict_proba", X))

    def _asked(self, name: str, X: Any) -> Any:
        import torch

        return getattr(self.model_, name)(torch.tensor(np.asarray(X, np.float32)))


def models(classes: bool) -> dict[str, Callable[[], Any]]:
    """What is compared, by name: each with its defaults, and called as its documentation says."""
    forest = RandomForestClassifier if classes else RandomForestRegressor
    linear = LogisticRegressionCV(max_iter=300) if classes else RidgeCV(np.logspace(-3, 4, 15))
    found: dict[str, Callable[[], Any]] = {
        "rflaf": lambda: (RFLAFClassifier if classes else RFLAFRegressor)(random_state=0),
        "linear": lambda: make_pipeline(AsTyped(strings=True), numbers(), linear),
        "forest": lambda: make_pipeline(
            AsTyped(strings=True), numbers(), forest(n_jobs=-1, random_state=0)
        ),
        "hist_gradient_boosting": lambda: make_pipeline(AsTyped(), Boosted(classes)),
    }
    if find_spec("lightgbm"):
        found["lightgbm"] = lambda: make_pipeline(AsTyped(), LightGBM(classes))
    if find_spec("catboost"):
        found["catboost"] = lambda: make_pipeline(AsTyped(strings=True), CatBoost(classes))
    if find_spec("xrfm"):
        found["xrfm"] = lambda: make_pipeline(AsTyped(strings=True), numbers(), XRFM(classes))
    return found


def package(label: str) -> dict[str, str]:
    """The package behind a peer, with its version; nothing for our own models."""
    name = PACKAGES.get(label)
    return {"package": f"{name} {version(name)}"} if name else {}


def fit_seconds(model: Any, x: Any, y: Any) -> float:
    start = time.perf_counter()
    model.fit(x, y)
    return time.perf_counter() - start


def parts(table: Any, classes: bool) -> tuple[Any, Any]:
    """Inputs and target of a table; classes are strings."""
    y = table["target"].to_numpy()
    return table.drop(columns="target"), y.astype(str) if classes else y


def scores(model: Any, test: Any, classes: bool) -> dict[str, float]:
    """The loss on test rows; for classes also the share of wrong ones."""
    x, y = parts(test, classes)
    if not classes:
        return {"loss": float(np.mean((model.predict(x) - y) ** 2) / np.var(y))}
    p = np.clip(model.predict_proba(x), 1e-7, 1)
    loss = log_loss(y, p / p.sum(axis=1, keepdims=True), labels=model.classes_)
    wrong = np.asarray(model.classes_)[p.argmax(axis=1)].astype(str) != y
    return {"loss": float(loss), "error": float(wrong.mean())}


def measure(model: Any, train: Any, test: Any, classes: bool) -> dict[str, float]:
    """Loss on the test rows, and seconds of the fit."""
    x, y = parts(train, classes)
    taken = [fit_seconds(model, x, y)]
    if taken[0] < _SHORT:
        taken += [fit_seconds(clone(model), x, y) for _ in range(2)]
    return {"seconds": statistics.median(taken), **scores(model, test, classes)}


def main(kinds: list[str], chosen: set[str]) -> None:
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    warnings.simplefilter("ignore")
    for kind in KINDS:
        for name, train, test in tables(folder, kind):
            if kinds and not {kind, f"{kind}/{name}"} & set(kinds):
                continue
            rows = []
            for label, make in models(kind == "clf").items():
                if chosen and label not in chosen:
                    continue
                if label == "rflaf":  # its kernels are compiled before the clock starts
                    few = train.iloc[:2000]
                    make().fit(few.drop(columns="target"), few["target"])
                found = measure(make(), train, test, kind == "clf")
                size = {"rows": len(train), "inputs": train.shape[1] - 1}
                row = {"table": f"{kind}/{name}", "model": label, **package(label), **size}
                rows.append({**row, **found})
                print(f"{kind}/{name:24}{label:24}{found['loss']:10.4f}{found['seconds']:8.1f} s")
            write("tables", rows, replace=("table", "model"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", help=f"of {', '.join(KINDS)}, or tables of these; default: all"
    )
    parser.add_argument("--models", default="", help="names, separated by commas; default: all")
    options = parser.parse_args()
    main(options.kinds, set(filter(None, options.models.split(","))))
