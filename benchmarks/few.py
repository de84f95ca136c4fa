"""Tables of few rows: python benchmarks/few.py [TABLE ...] [--draws 3]

The tables of benchmarks/tables.py (regression without the mixed ones; classes), thinned to 20, 40,
60 and 90 training rows, three draws of each, with peers that suit so few: ridge or logistic
regression, a Gaussian process with a length scale per column, extremely randomised trees. rflaf
gets frames as they are, peers one-hot columns, standardised. The figure is the test loss in the
geometric mean over tables and draws. With names of tables (`reg/yacht`), or other draws, nothing is
written.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _bench import write
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import numbers, parts, scores, tables

from rflaf import RFLAFClassifier, RFLAFRegressor

ROWS, DRAWS, TEST_ROWS = (20, 40, 60, 90), 3, 2000


def peers(classes: bool, d: int) -> dict[str, Callable[[], Any]]:
    """Models by name; d is the number of columns."""
    scales = ConstantKernel(1.0) * RBF(np.ones(d))
    if classes:
        return {
            "rflaf": lambda: RFLAFClassifier(random_state=0),
            "linear": lambda: LogisticRegressionCV(Cs=np.logspace(-3, 2, 8), cv=3, max_iter=500),
            "Gaussian process": lambda: GaussianProcessClassifier(scales, random_state=0),
            "extra trees": lambda: ExtraTreesClassifier(500, min_samples_leaf=2, random_state=0),
        }
    noisy = scales + WhiteKernel(0.1)
    return {
        "rflaf": lambda: RFLAFRegressor(random_state=0),
        "linear": lambda: RidgeCV(np.logspace(-3, 3, 13)),
        "Gaussian process": lambda: GaussianProcessRegressor(
            noisy, normalize_y=True, random_state=0
        ),
        "extra trees": lambda: ExtraTreesRegressor(500, random_state=0),
    }


def thinned(train: Any, n: int, draw: int, classes: bool) -> Any:
    """Some rows; of each class three at first, so that every model can be fitted."""
    order = np.random.default_rng(draw).permutation(len(train))
    if classes:
        labels = train["target"].to_numpy()[order]
        first = [order[labels == label][:3] for label in np.unique(labels)]
        kept = np.concatenate(first)
        order = np.concatenate([kept, order[~np.isin(order, kept)]])
    return train.iloc[order[:n]]


def main(chosen: list[str], draws: int) -> None:
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite"
    if not folder.is_dir():
        raise SystemExit("Tables are read from $RFLAF_DATA/suite, which is not there.")
    warnings.simplefilter("ignore")
    found: dict[tuple[str, int, str], list[float]] = {}
    count: dict[str, int] = {}
    for kind, task in (("reg", "numbers"), ("reg_extra", "numbers"), ("clf", "classes")):
        for name, train, test in tables(folder, kind):
            classes = task == "classes"
            if chosen and f"{kind}/{name}" not in chosen:
                continue
            if classes and train["target"].nunique() > 5:
                continue  # 20 rows would have none of some classes
            count[task] = count.get(task, 0) + 1
            test = test.sample(min(len(test), TEST_ROWS), random_state=0)
            for n in ROWS:
                for draw in range(draws):
                    few = thinned(train, n, draw, classes)
                    d = numbers().fit_transform(few.drop(columns="target")).shape[1]
                    for label, make in peers(classes, d).items():
                        encode = [] if label == "rflaf" else [numbers(), StandardScaler()]
                        model = make_pipeline(*encode, make()).fit(*parts(few, classes))
                        loss = scores(model, test, classes)["loss"]
                        found.setdefault((task, n, label), []).append(loss)
            print(task, name, flush=True)
    rows = [
        {"task": task, "rows": n, "model": label, "tables": count[task], "losses": losses,
         "figure": float(np.exp(np.mean(np.log(losses))))}
        for (task, n, label), losses in found.items()
    ]  # fmt: skip
    for row in rows:
        print(f"{row['task']:8} {row['rows']:3} {row['model']:18} {row['figure']:.4f}")
    if not chosen and draws == DRAWS:
        write("few", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help="as reg/yacht; default: all")
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    main(options.tables, options.draws)
