"""Time and memory of the kernels, as ratios to scikit-learn's rbf_kernel in the same run.

    python benchmarks/theory.py

Prints a table and writes benchmarks/results/theory.json.
"""

from __future__ import annotations

import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.metrics.pairwise import rbf_kernel

from rflaf import Activation
from rflaf.bases import RBF, BSpline
from rflaf.kernels import ActivationKernel
from rflaf.theory import gaussian_kernel
from rflaf.theory.quadrature import HermiteSeries

RESULTS = Path(__file__).parent / "results" / "theory.json"
REPEATS = 5
COLUMNS = 10


def best_times(*calls: Callable[[], Any]) -> list[float]:
    """Seconds of the fastest of several runs of each, in turns: what slows one slows the other."""
    seconds = [[] for _ in calls]
    for _ in range(REPEATS):
        for times, call in zip(seconds, calls, strict=True):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return [min(times) for times in seconds]


def peak_memory(call: Callable[[], Any], result_bytes: int) -> float:
    """Megabytes at the peak above the result."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - result_bytes) / 1e6


def learned(basis: Any) -> Activation:
    return Activation(basis, np.random.default_rng(0).standard_normal(basis.n))


def speed() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = []
    cases = [
        ("gaussian_kernel(X)", 5000, lambda X, Y: gaussian_kernel(X, center=0.5, width=0.3), 3),
        (
            "gaussian_kernel(X, Y)",
            5000,
            lambda X, Y: gaussian_kernel(X, Y, center=0.5, width=0.3),
            3,
        ),
    ]
    for name, kernel, limit in (
        ("RBF, N = 17", ActivationKernel(learned(RBF(17))), 40),
        ("RBF, N = 65", ActivationKernel(learned(RBF(65))), None),
        ("RBF, N = 17, uneven", ActivationKernel(learned(uneven(17))), None),
        ("BSpline, N = 17", ActivationKernel(learned(BSpline(17))), None),
        ("relu", ActivationKernel("relu"), None),
    ):
        cases.append((f"ActivationKernel(X), {name}", 2000, lambda X, Y, k=kernel: k(X), limit))
        if limit:
            pair = (f"ActivationKernel(X, Y), {name}", 2000, lambda X, Y, k=kernel: k(X, Y), limit)
            cases.append(pair)
    for name, n, call, limit in cases:
        X, Y = rng.standard_normal((2, n, COLUMNS))
        reference, seconds = best_times(
            lambda X=X: rbf_kernel(X), lambda X=X, Y=Y, call=call: call(X, Y)
        )
        rows.append(
            {
                "kernel": name,
                "n": n,
                "seconds": seconds,
                "rbf_kernel_seconds": reference,
                "ratio": seconds / reference,
                "ratio_limit": limit,
                "megabytes_above_result": peak_memory(
                    lambda X=X, Y=Y, call=call: call(X, Y), 8 * n * n
                ),
            }
        )
    return rows


def uneven(n: int) -> RBF:
    return RBF(centers=2 * np.sin(np.linspace(-1.5, 1.5, n)), width=0.25)


def series_error() -> list[dict[str, Any]]:
    """Largest error of the series, in units of the largest entry, against 2000 terms."""
    rng = np.random.default_rng(0)
    rows = []
    for scale in (1.0, 4.0):
        X = rng.standard_normal((60, 3))
        X *= scale / np.linalg.norm(X, axis=1, keepdims=True)
        for name, activation in (
            ("tanh", Activation("tanh")),
            ("BSpline, degree 2", learned(BSpline(9))),
            ("BSpline, degree 1", learned(BSpline(9, degree=1))),
        ):
            exact = HermiteSeries(activation, 2000).matrix(X, X)
            for n_terms in (64, 256, 1024):
                error = np.abs(HermiteSeries(activation, n_terms).matrix(X, X) - exact).max()
                rows.append(
                    {
                        "activation": name,
                        "norm": scale,
                        "n_hermite": n_terms,
                        "error": float(error / np.abs(exact).max()),
                    }
                )
    return rows


def main() -> None:
    results = {
        "command": "python benchmarks/theory.py",
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "speed": speed(),
        "series_error": series_error(),
    }
    print(f"{'kernel':<48} {'n':>5} {'s':>7} {'ratio':>6} {'limit':>5} {'MB above':>9}")
    for row in results["speed"]:
        print(
            f"{row['kernel']:<48} {row['n']:>5} {row['seconds']:>7.3f} {row['ratio']:>6.1f} "
            f"{row['ratio_limit'] or '':>5} {row['megabytes_above_result']:>9.1f}"
        )
    print(f"\n{'series':<20} {'norm':>5} {'terms':>6} {'error':>9}")
    for row in results["series_error"]:
        print(
            f"{row['activation']:<20} {row['norm']:>5} {row['n_hermite']:>6} {row['error']:>9.1e}"
        )
    RESULTS.parent.mkdir(exist_ok=True)
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(json.dumps(results, indent=1) + "\n")
    temporary.replace(RESULTS)


if __name__ == "__main__":
    main()
