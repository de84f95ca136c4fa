"""Fit an activation to a target in every basis, and see what evaluating it costs.

Run by `make demo`. Writes demo-output/activations.png.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot

from rflaf import Activation
from rflaf.bases import RBF, BSpline, Chebyshev, Polynomial


def target(z):
    """Smooth on the left, steep in the middle, wavy on the right."""
    return np.tanh(4 * z) + 0.4 * np.sin(6 * z) * (z > 0)


def nanoseconds(function, z, repeats=7):
    """The best time of one element."""
    function(z)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(z)
        times.append(time.perf_counter() - start)
    return min(times) / z.size * 1e9


bases = {
    "17 Gaussians": RBF(17),
    "129 Gaussians": RBF(129),
    "17 B-splines": BSpline(17),
    "129 B-splines": BSpline(129),
    "17 powers": Polynomial(17),
    "17 Chebyshev polynomials": Chebyshev(17),
}
at = np.linspace(-2, 2, 4001)
z = np.random.default_rng(0).standard_normal((128, 3000)).astype(np.float32)

print("Least-squares fit of an activation, and the cost of sigma(z) for 128 × 3000 elements\n")
print(f"{'basis':26}{'rms error':>10}{'largest':>10}{'dense ns':>12}{'table ns':>12}{'ratio':>8}")
figure, axes = pyplot.subplots(2, 3, figsize=(10, 5), sharex=True, sharey=True)
for (name, basis), ax in zip(bases.items(), axes.flat):
    sigma = Activation(basis, basis.fit(target))
    error = sigma(at) - target(at)
    a = sigma.coefficients.astype(np.float32)
    dense = nanoseconds(lambda z, basis=basis, a=a: basis(z) @ a, z, repeats=1)
    fast = nanoseconds(sigma.table(), z)
    print(
        f"{name:26}{np.sqrt(np.mean(error**2)):10.1e}{np.abs(error).max():10.1e}"
        f"{dense:12.1f}{fast:12.2f}{dense / fast:7.0f}×"
    )
    ax.plot(at, target(at), color="0.7", lw=3, label="target")
    sigma.plot(ax, color="C3", lw=1, label="fit")
    ax.set(title=name, ylim=(-1.8, 1.8))
axes.flat[0].legend()
relu = nanoseconds(Activation("relu").table(), z)
print(f"{'(for comparison) ReLU':26}{'':32}{relu:12.2f}")

folder = Path("demo-output")
folder.mkdir(exist_ok=True)
figure.tight_layout()
figure.savefig(folder / "activations.png", dpi=110)
print(f"\nThe fits are drawn in {folder / 'activations.png'}")
