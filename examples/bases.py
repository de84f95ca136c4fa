"""One activation in every basis: how well each fits it, and what evaluating it costs.

python examples/bases.py [--picture FOLDER]
"""

import argparse
import time
from pathlib import Path

import numpy as np

from rflaf import Activation
from rflaf.bases import RBF, BSpline, Chebyshev, Polynomial

BASES = {
    "17 Gaussians": RBF(17),
    "129 Gaussians": RBF(129),
    "17 B-splines": BSpline(17),
    "129 B-splines": BSpline(129),
    "17 powers": Polynomial(17),
    "17 Chebyshev polynomials": Chebyshev(17),
}


def target(z):
    """Smooth on the left, steep in the middle, wavy on the right."""
    return np.tanh(4 * z) + 0.4 * np.sin(6 * z) * (z > 0)


def nanoseconds(function, z, repeats=7):
    """The best time per element."""
    function(z)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(z)
        times.append(time.perf_counter() - start)
    return min(times) / z.size * 1e9


def compare(fitted):
    at = np.linspace(-2, 2, 4001)
    z = np.random.default_rng(0).standard_normal((128, 3000)).astype(np.float32)
    print("Least-squares fit of an activation, and the cost of sigma(z) in ns per element\n")
    print(f"{'basis':26}{'rms error':>10}{'largest':>10}{'dense':>10}{'table':>10}{'ratio':>8}")
    for name, sigma in fitted.items():
        error = sigma(at) - target(at)
        basis, a = sigma.basis, sigma.coefficients.astype(np.float32)
        dense = nanoseconds(lambda z, basis=basis, a=a: basis(z) @ a, z, repeats=1)
        fast = nanoseconds(sigma.table(), z)
        print(
            f"{name:26}{np.sqrt(np.mean(error**2)):10.1e}{np.abs(error).max():10.1e}"
            f"{dense:10.1f}{fast:10.2f}{dense / fast:7.0f}×"
        )


def draw(fitted, folder):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(9, 5), sharey=True, layout="constrained")
    z = np.linspace(-2.5, 2.5, 800)
    for ax, (name, sigma) in zip(axes.flat, fitted.items()):
        ax.plot(z, target(z), color="0.7", lw=3, label="target")
        ax.plot(z, sigma(z), color="C3", label="fit on [-2, 2]")
        ax.set(title=name, ylim=(-1.6, 2))
    axes[0, 0].legend(frameon=False)
    figure.savefig(folder / "bases.png", dpi=80)


def main(folder):
    fitted = {name: Activation(basis, basis.fit(target)) for name, basis in BASES.items()}
    compare(fitted)
    if folder:
        draw(fitted, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", type=Path, help="a folder for the picture")
    main(parser.parse_args().picture)
