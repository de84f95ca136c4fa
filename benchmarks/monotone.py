"""Monotone constraints: pairs in the wrong order, and what the constraints cost or gain.

    python benchmarks/monotone.py [--quick]

Each table is fitted with `monotonic_cst` and without. The synthetic ones are monotone in the
constrained columns; of the tables in $RFLAF_DATA/suite people would say so. 10,000 pairs of rows
differ in one of these columns alone. Other columns, and the two values, are those of random rows.
Losses are root mean squared errors on a fifth of the rows, of LightGBM with the same constraints
too where lightgbm is installed, and of scikit-learn's HistGradientBoosting.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _bench import show, write
from sklearn.ensemble import HistGradientBoostingRegressor

from rflaf import RFLAFRegressor
from rflaf.inputs.kinds import column_kind

PAIRS, MOST_ROWS = 10_000, 4000
SUITE = {
    "insurance": {"age": 1, "bmi": 1, "children": 1},
    "california_housing": {"median_income": 1},
    "diamonds": {"carat": 1},
    "kc_house": {"sqft_living": 1, "grade": 1, "condition": 1, "view": 1},
    "abalone": {"shell": 1, "shucked": -1},
}
Table = tuple[str, pd.DataFrame, Any, dict[str, int]]


def synthetic(n: int = 2500) -> Iterator[Table]:
    """One, three and five constrained columns; the last has interactions between most of them."""
    rng = np.random.default_rng(0)
    for number, columns in enumerate((1, 3, 5)):
        x = rng.uniform(0, 1, (n, 6))
        y = (
            np.exp(2 * x[:, 0]) * (1 + x[:, 1]) + np.sin(6 * x[:, 5]),
            5 * x[:, 0] * x[:, 1] - 3 * np.log(0.1 + x[:, 2]) + np.sin(6 * x[:, 5]),
            5 * x[:, 0] * x[:, 1]
            + 4 * np.exp(-3 * x[:, 2]) * (1 + x[:, 3])
            + 2 * np.tanh(5 * (x[:, 4] - 0.5))
            + np.sin(5 * x[:, 5]),
        )[number]
        frame = pd.DataFrame(x, columns=list("abcdef"))
        signs = {name: -1 if name == "c" else 1 for name in "abcde"[:columns]}
        yield f"synthetic, {columns} columns", frame, y + 0.3 * rng.standard_normal(n), signs


def of_suite() -> Iterator[Table]:
    """Tables of the suite, some rows of each; categories as in the frames, dates are days."""
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "suite" / "mixed"
    for name, signs in SUITE.items() if folder.is_dir() else ():
        frame = pd.read_csv(folder / f"{name}.csv.gz")
        frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0).reset_index(drop=True)
        for column in frame.select_dtypes(exclude="number"):
            if column_kind(frame[column]) == "date":  # a category of too many values for the peers
                days = pd.to_datetime(frame[column], format="mixed").astype("int64") / 8.64e13
                frame[column] = days
            else:
                frame[column] = frame[column].astype("category")
        yield name, frame.drop(columns="target"), frame["target"].to_numpy(float), signs


def wrong(model: Any, frame: pd.DataFrame, signs: dict[str, int]) -> tuple[int, float]:
    """Pairs in the wrong order, and by how much at most."""
    rng = np.random.default_rng(1)
    count, size = 0, 0.0
    for column, sign in signs.items():
        rows = frame.iloc[rng.integers(0, len(frame), PAIRS // len(signs))]
        known = frame[column].dropna().to_numpy()
        low, high = np.sort(rng.choice(known, (2, len(rows))), axis=0)
        before, after = (model.predict(rows.assign(**{column: each})) for each in (low, high))
        apart = sign * (before - after)
        count, size = count + int(np.sum(apart > 1e-6 * np.ptp(before))), max(size, apart.max())
    return count, size


def boosted(signs: dict[str, int], columns: list[str]) -> dict[str, Any]:
    """Other models with the same constraints."""
    found: dict[str, Any] = {
        "HistGradientBoosting": HistGradientBoostingRegressor(
            monotonic_cst=signs, categorical_features="from_dtype", random_state=0
        )
    }
    if find_spec("lightgbm"):
        import lightgbm

        given = [signs.get(column, 0) for column in columns]
        found["LightGBM"] = lightgbm.LGBMRegressor(monotone_constraints=given, verbose=-1)
    return found


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    settings: dict[str, Any] = {"random_state": 0}
    if quick:
        settings |= {"n_components": 50, "n_members": 2, "max_iter": 4}
    rows: list[dict[str, Any]] = []
    relative: dict[str, list[float]] = {}
    tables = [*synthetic(600)][:1] if quick else [*synthetic(), *of_suite()]
    for name, frame, y, signs in tables:
        test = np.random.default_rng(0).permutation(len(y)) < len(y) // 5
        fitted = {
            "unconstrained": RFLAFRegressor(**settings),
            "rflaf": RFLAFRegressor(**settings, monotonic_cst=signs),
            **boosted(signs, [*frame.columns]),
        }
        losses = {}
        for key, model in fitted.items():
            model.fit(frame[~test], y[~test])
            losses[key] = float(np.sqrt(np.mean((model.predict(frame[test]) - y[test]) ** 2)))
        count, size = wrong(fitted["rflaf"], frame[~test], signs)
        before, _ = wrong(fitted["unconstrained"], frame[~test], signs)
        rows += [
            _row(f"{name}: pairs in the wrong order, without constraints", before, "-"),
            _row(f"{name}: pairs in the wrong order, with constraints", count, "0"),
            _row(f"{name}: the largest step the wrong way, over std(y)", size / y.std(), "<= 1e-5"),
        ]
        for key, loss in losses.items():
            if key != "rflaf":
                ratio = losses["rflaf"] / loss
                relative.setdefault(key, []).append(ratio)
                bound = "<= 1.03" if key == "unconstrained" else "<= 1"
                rows.append(_row(f"{name}: loss relative to {key}", ratio, bound))
    for key, ratios in relative.items():
        mean = float(np.exp(np.mean(np.log(ratios))))
        rows.append(_row(f"geometric mean, loss relative to {key}", mean, "<= 1"))
    show(rows)
    if not quick:
        write("monotone", rows, replace="what")


def _row(what: str, figure: float, target: str) -> dict[str, Any]:
    return {"what": what, "figure": figure, "unit": "", "target": target}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test, with small models")
    main(parser.parse_args().quick)
