"""Predictive distributions on the standard splits of the uncertainty papers.

    python benchmarks/uncertainty.py [--splits 20] [--sets concrete energy ...] [--between]

The splits are those of `$RFLAF_DATA/uci_splits`: for each set `data.csv.gz`, the target last, and
`mask.csv.gz` with a column per split, 1 for test rows. RMSE, negative log-likelihood in the units
of the target, the share of test rows between the quantiles 0.05 and 0.95, and CRPS, as means over
the splits. NGBoost with its defaults runs beside it where it is installed. The rules of the scale
were found on the first six splits of concrete, energy, wine-quality-red and yacht: only the other
splits, and protein, are a check of them. With --between the test rows of a split are the middle
third of a column instead, for each column of at least ten values: results/between.json.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _bench import write
from scipy import stats

from rflaf import RFLAFRegressor
from rflaf.distributions import ErrorDistribution, ErrorShape

# The best of deep ensembles, NGBoost, dropout and WGBoost: RMSE, negative log-likelihood
PUBLISHED = {
    "concrete": (4.15, 2.83),
    "energy": (0.42, 0.53),
    "protein-tertiary-structure": (3.85, 2.63),
    "wine-quality-red": (0.61, 0.89),
    "yacht": (0.48, 0.16),
}
MEASURES = ("rmse", "nll", "coverage", "crps")
VALUES = 10  # of a column whose middle third is left out


def measures(y: Any, mean: Any, logpdf: Any, cdf: Any, crps: Any) -> list[float]:
    inside = (cdf > 0.05) & (cdf < 0.95)
    return [
        float(np.sqrt(np.mean((mean - y) ** 2))),
        -float(np.mean(logpdf)),
        float(np.mean(inside)),
        float(np.mean(crps)),
    ]


def ours(X: Any, y: Any, X_test: Any, y_test: Any, seed: int) -> list[float]:
    dist = RFLAFRegressor(random_state=seed).fit(X, y).predict_dist(X_test)
    return measures(y_test, dist.mean, dist.logpdf(y_test), dist.cdf(y_test), dist.crps(y_test))


def ngboost(X: Any, y: Any, X_test: Any, y_test: Any, seed: int) -> list[float] | None:
    """A normal distribution per row, by NGBoost; None where it is not installed."""
    try:
        from ngboost import NGBRegressor
    except ImportError:
        return None
    found = NGBRegressor(random_state=seed, verbose=False).fit(X, y).pred_dist(X_test)
    mean, std = found.loc, found.scale
    normal = ErrorDistribution(mean[:, None], std[:, None], [ErrorShape.normal()])
    known = stats.norm(mean, std)
    return measures(y_test, mean, known.logpdf(y_test), known.cdf(y_test), normal.crps(y_test))


def middle_thirds(data: Any) -> Any:
    """Test rows, n × splits: those between the thirds of a column."""
    columns = [column for column in data.T[:-1] if len(np.unique(column)) >= VALUES]
    ends = [np.quantile(column, [1 / 3, 2 / 3]) for column in columns]
    inside = [(column > low) & (column <= high) for column, (low, high) in zip(columns, ends)]
    return np.column_stack([each for each in inside if each.any()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--sets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--between", action="store_true", help="leave out middle thirds of columns")
    given = parser.parse_args()
    folder = Path(os.environ.get("RFLAF_DATA", "")) / "uci_splits"
    if not folder.is_dir():
        raise SystemExit("Splits are read from $RFLAF_DATA/uci_splits, which is not there.")
    warnings.simplefilter("ignore")
    rows = []
    for name in given.sets:
        data, mask = (
            pd.read_csv(folder / name / f"{part}.csv.gz", header=None).to_numpy(float)
            for part in ("data", "mask")
        )
        mask = middle_thirds(data) if given.between else mask
        splits = min(given.splits, mask.shape[1])
        found: dict[str, list[list[float]]] = {}
        for k in range(splits):
            test = mask[:, k] == 1
            split = data[~test, :-1], data[~test, -1], data[test, :-1], data[test, -1]
            for model, run in (("rflaf", ours), ("NGBoost", ngboost)):
                figures = run(*split, k)
                if figures is not None:
                    found.setdefault(model, []).append(figures)
        for model, figures in found.items():
            means = dict(zip(MEASURES, np.mean(figures, axis=0).tolist()))
            rmse, nll = PUBLISHED[name]
            rows.append({"set": name, "model": model, "splits": splits, **means,
                         "published_rmse": rmse, "published_nll": nll})  # fmt: skip
            print(f"{name:28}{model:10}", {k: round(v, 4) for k, v in means.items()}, flush=True)
    write("between" if given.between else "uncertainty", rows, replace=("set", "model"))


if __name__ == "__main__":
    main()
