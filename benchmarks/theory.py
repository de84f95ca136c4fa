"""Time, memory and accuracy of the kernels; times as ratios to scikit-learn's rbf_kernel.

    python benchmarks/theory.py

Prints a table and writes results/theory.json. All of it runs on one thread, so that the ratios do
not depend on what the other cores do.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from _bench import best_seconds, show, write
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from rflaf import Activation
from rflaf.bases import RBF, BSpline
from rflaf.kernels import ActivationKernel
from rflaf.theory import gaussian_kernel
from rflaf.theory.quadrature import HermiteSeries

COLUMNS = 10
Points = np.ndarray
Call = Callable[[Points, Points], Any]


def learned(basis: Any) -> Activation:
    return Activation(basis, np.random.default_rng(0).standard_normal(basis.n))


def one_gaussian(X: Points, Y: Points | None = None) -> Any:
    return gaussian_kernel(X, Y, center=0.5, width=0.3)


def timed(what: str, n: int, call: Call, target: str = "none", repeats: int = 7) -> dict[str, Any]:
    """The time of `call` in units of rbf_kernel on the same n points."""
    X, Y = np.random.default_rng(0).standard_normal((2, n, COLUMNS))
    seconds, reference = best_seconds(lambda: call(X, Y), lambda: rbf_kernel(X), repeats=repeats)
    return {
        "what": f"{what}, {n} × {n}: time relative to rbf_kernel",
        "figure": seconds / reference,
        "unit": "×",
        "target": target,
        "seconds": seconds,
        "rbf_kernel_seconds": reference,
    }


def memory(what: str, n: int, call: Call) -> dict[str, Any]:
    """The peak above the result."""
    X, Y = np.random.default_rng(0).standard_normal((2, n, COLUMNS))
    tracemalloc.start()
    call(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "what": f"{what}, {n} × {n}: peak memory above the result",
        "figure": (peak - 8 * n * n) / 1e6,
        "unit": "MB",
        "target": "< 200",
    }


def series_error(name: str, activation: Activation, norm: float, n_terms: int) -> dict[str, Any]:
    """Largest error of the series, in units of the largest entry, against 2000 terms."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    X *= norm / np.linalg.norm(X, axis=1, keepdims=True)
    exact = HermiteSeries(activation, 2000).matrix(X, X)
    error = np.abs(HermiteSeries(activation, n_terms).matrix(X, X) - exact).max()
    return {
        "what": f"series of {name}, |x| = {norm:g}, {n_terms} terms: largest error",
        "figure": float(error / np.abs(exact).max()),
        "unit": "",
        "target": "none",
        "series": {"activation": name, "norm": norm, "n_hermite": n_terms},
    }


def main() -> None:
    seventeen = ActivationKernel(learned(RBF(17)))
    sixty_five = ActivationKernel(learned(RBF(65)))
    uneven = RBF(centers=2 * np.sin(np.linspace(-1.5, 1.5, 17)), width=0.25)
    any_centers = ActivationKernel(learned(uneven))
    spline = ActivationKernel(learned(BSpline(17)))
    relu = ActivationKernel("relu")
    rows = [
        timed("gaussian_kernel(X)", 5000, lambda X, Y: one_gaussian(X), "<= 3"),
        timed("gaussian_kernel(X, Y)", 5000, one_gaussian, "<= 3"),
        timed("ActivationKernel(X), 17 Gaussians", 2000, lambda X, Y: seventeen(X), "< 40"),
        timed("ActivationKernel(X, Y), 17 Gaussians", 2000, seventeen, "< 40"),
        timed("65 Gaussians", 1000, lambda X, Y: sixty_five(X), repeats=2),
        timed("17 Gaussians, uneven centres", 1000, lambda X, Y: any_centers(X), repeats=2),
        timed("17 B-splines, by quadrature", 1000, lambda X, Y: spline(X), repeats=3),
        timed("ReLU", 1000, lambda X, Y: relu(X)),
        memory("gaussian_kernel(X, Y)", 5000, one_gaussian),
        memory("ActivationKernel(X, Y), 17 Gaussians", 2000, seventeen),
        memory("17 B-splines, by quadrature", 2000, spline),
    ]
    for name, activation in (
        ("tanh", Activation("tanh")),
        ("B-splines of degree 2", learned(BSpline(9))),
        ("B-splines of degree 1", learned(BSpline(9, degree=1))),
    ):
        for norm in (1.0, 4.0):
            rows += [series_error(name, activation, norm, n) for n in (128, 512, 1024)]
    show(rows)
    write("theory", rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
