"""How far `oof_score_` is from the score on new rows, over many synthetic tables.

    python benchmarks/honesty.py [--tables 12]

A table has numbers, a category of three levels and one of many, some of which matter. Its
out-of-fold score is compared with the score on 4,000 new rows of the same kind. With `groups`, rows
come in groups that share inputs and a part of the target; new rows are of new groups. Last come
rare events without any signal, where whatever is chosen is chosen by chance.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from _bench import show, write
from sklearn.metrics import d2_tweedie_score

from rflaf import RFLAFClassifier, RFLAFRegressor

ROWS = (100, 300, 1000)
NEW_ROWS = 4000


def table(rng: np.random.Generator, rows: int, classes: bool, groups: int) -> Any:
    """Old and new rows: frames, targets and the groups of the old ones."""
    n, levels = rows + NEW_ROWS, int(rng.integers(31, max(40, rows // 3)))
    group = rng.integers(0, groups, n) if groups else np.arange(n)
    if groups:
        group[rows:] += groups  # new groups
    numbers = rng.standard_normal((group.max() + 1, 4))[group]
    numbers += 0.3 * rng.standard_normal(numbers.shape) if groups else 0
    code, town = rng.integers(0, levels, n), rng.integers(0, 3, n)
    effect = rng.standard_normal(levels) * rng.choice([0.0, 0.7])
    signal = np.sin(2 * numbers[:, 0]) + numbers[:, 1] * (town == 1) + effect[code]
    signal = signal + rng.choice([0.0, 1.0]) * rng.standard_normal(group.max() + 1)[group]
    y = signal + rng.choice([0.3, 1.0, 3.0]) * rng.standard_normal(n)
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    frame["town"], frame["code"] = [f"t{k}" for k in town], [f"c{k}" for k in code]
    target = np.where(y > np.median(y), "yes", "no") if classes else y
    return frame[:rows], target[:rows], group[:rows], frame[rows:], target[rows:]


def differences(rows: int, classes: bool, grouped: bool, count: int) -> list[float]:
    """oof_score_ minus the score on new rows, for some tables."""
    kind = RFLAFClassifier if classes else RFLAFRegressor
    apart = []
    for seed in range(count):
        rng = np.random.default_rng([seed, rows, classes, grouped])
        x, y, group, x_new, y_new = table(rng, rows, classes, rows // 10 if grouped else 0)
        model = kind(random_state=seed).fit(x, y, groups=group if grouped else None)
        apart.append(model.oof_score_ - model.score(x_new, y_new))
    return apart


def of_rare_events(rows: int, count: int) -> list[float]:
    """The same for D² of counts, 0.1 on average, that no column tells anything of."""
    apart = []
    for seed in range(count):
        rng = np.random.default_rng([seed, rows])
        x, y = rng.standard_normal((rows + NEW_ROWS, 4)), rng.poisson(0.1, rows + NEW_ROWS)
        model = RFLAFRegressor(loss="poisson", random_state=seed).fit(x[:rows], y[:rows])
        new = d2_tweedie_score(y[rows:], model.predict(x[rows:]), power=1)
        apart.append(model.oof_score_ - new)
    return apart


def main(count: int) -> None:
    warnings.simplefilter("ignore")
    results = []
    for classes in (False, True):
        for grouped in (False, True):
            for rows in ROWS:
                what = f"{'accuracy' if classes else 'R²'}, {rows:,} rows"
                what += ", new groups" if grouped else ""
                results.append(row_of(what, differences(rows, classes, grouped, count)))
    for rows in ROWS[1:]:
        what = f"D², {rows:,} rows, rare events without signal"
        results.append(row_of(what, of_rare_events(rows, count)))
    write("honesty", results)


def row_of(what: str, apart: list[float]) -> dict[str, Any]:
    error = float(np.std(apart) / np.sqrt(len(apart)))
    common = {"unit": "", "target": "0", "tables": len(apart), "standard_error": error}
    row = {"what": what, "figure": float(np.mean(apart)), **common}
    show([row])
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=12, help="of each kind and size")
    main(parser.parse_args().tables)
