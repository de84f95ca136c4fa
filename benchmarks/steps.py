"""Processor seconds of a fit by step, on one thread: python benchmarks/steps.py TABLE [--rows N]

TABLE is one of benchmarks/large.py, KIND/NAME of $RFLAF_DATA/suite, a CSV file with the column
`target`, or `seven`: made rows of seven uneven classes. Prints, and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _bench import steps_of_fits

from rflaf import RFLAFClassifier, RFLAFRegressor


def table(name: str) -> Any:
    """A frame with the column `target`; classes are text."""
    suite = Path(os.environ.get("RFLAF_DATA", "")) / "suite" / f"{name}.csv.gz"
    if name == "seven":
        x = np.random.default_rng(0).standard_normal((40_000, 12))
        height = 2 * np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + (x[:, 3] > 0.5) + 0.4 * x[:, 4]
        edges = np.quantile(height, [0.36, 0.85, 0.91, 0.92, 0.94, 0.965])
        classes = np.searchsorted(edges, height + 0.3 * x[:, 11])
        return pd.DataFrame(x[:, :11]).rename(columns=str).assign(target=classes.astype(str))
    if not (Path(name).is_file() or suite.is_file()):
        from large import table as large_table

        frame, classes = large_table(name)
    else:
        header = None if name.startswith("reg/") else "infer"
        frame = pd.read_csv(suite if suite.is_file() else name, header=header).rename(columns=str)
        frame.columns = [*frame.columns[:-1], "target"] if header is None else frame.columns
        classes = name.startswith("clf/")
    frame = frame.dropna(subset=["target"])
    return frame.astype({"target": str}) if classes else frame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--rows", type=int, help="number of rows drawn at random")
    options = parser.parse_args()
    frame = table(options.table)
    frame = frame.sample(min(options.rows or len(frame), len(frame)), random_state=0)
    X, y = frame.drop(columns="target"), frame["target"]
    number = pd.api.types.is_numeric_dtype(y)
    make: Any = RFLAFRegressor if number else RFLAFClassifier
    make(random_state=0, n_jobs=1).fit(X[:1000], y[:1000])  # compiles the kernels
    with steps_of_fits(parts=True) as found:
        start = time.process_time()
        make(random_state=0, n_jobs=1).fit(X, y)
        total = time.process_time() - start
    known = sum(taken[0] for path, taken in found.items() if len(path) == 1)
    found["(other)",], found["(all)",] = [total - known], [total]
    for path, taken in found.items():
        if taken[0] > 0.002 * total:
            name = f"{'  ' * len(path)}{path[-1]}"
            print(f"{name:32}{taken[0]:8.2f} s {taken[0] / total:7.1%}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
