"""Hard starts: few of many inputs matter, and only together. The worst seed against the best.

    python benchmarks/starts.py [--seeds 10] [--most 5000]

Loss is 1 - R² on 2,000 new rows; the noise alone is 0.01. Rows of the result have the best, the
middle and the worst seed of each problem.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _bench import write

from rflaf import RFLAFRegressor

PROBLEMS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "product of 2, 10 inputs": (10, lambda x: x[:, 0] * x[:, 1]),
    "product of 2, 32 inputs": (32, lambda x: x[:, 0] * x[:, 1]),
    "product of 2, 100 inputs": (100, lambda x: x[:, 0] * x[:, 1]),
    "product of 3, 20 inputs": (20, lambda x: x[:, 0] * x[:, 1] * x[:, 2]),
    "signs of 2, 30 inputs": (30, lambda x: np.sign(x[:, 0] * x[:, 1])),
    "two products with waves, 32 inputs": (
        32,
        lambda x: x[:, 0] * np.sin(2 * x[:, 1]) + 0.5 * np.sin(3 * x[:, 2]) * x[:, 3],
    ),
    "sum of three parts, 10 inputs": (
        10,
        lambda x: np.sin(6 * x[:, 0] * x[:, 1]) + np.cos(5 * x[:, 2]) * x[:, 3] + np.exp(x[:, 4]),
    ),
    "wave of a sum of 3, 50 inputs": (
        50,
        lambda x: np.sin(4 * x[:, :3].sum(axis=1) / np.sqrt(3)),
    ),
}


def loss(d: int, function: Callable[[Any], Any], n: int, seed: int) -> float:
    """1 - R² on new rows; the rows are the same for every seed of the model."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n + 2000, d))
    y = function(x)
    y = y / y.std() + 0.1 * rng.standard_normal(len(y))
    model = RFLAFRegressor(random_state=seed).fit(x[:n], y[:n])
    return float(1 - model.score(x[n:], y[n:]))


def main(seeds: int, most: int) -> None:
    warnings.simplefilter("ignore")
    for name, (d, function) in PROBLEMS.items():
        for n in (n for n in (1000, 5000, 20_000) if n <= most):
            start = time.process_time()
            losses = np.sort([loss(d, function, n, seed) for seed in range(seeds)])
            seconds = (time.process_time() - start) / seeds
            row = {"problem": name, "rows": n, "seeds": seeds, "best": losses[0]}
            row |= {"middle": float(np.median(losses)), "worst": losses[-1], "seconds": seconds}
            print(
                f"{name:36s} {n:6d} rows  best {losses[0]:.4f} worst {losses[-1]:.4f}", flush=True
            )
            write("starts", [row], replace=("problem", "rows"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=5000, help="rows at most")
    options = parser.parse_args()
    main(options.seeds, options.most)
