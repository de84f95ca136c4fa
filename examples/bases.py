"""One activation in every basis: how well each fits it, and what evaluating it costs."""

import time

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
    """The best time of one element."""
    function(z)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function(z)
        times.append(time.perf_counter() - start)
    return min(times) / z.size * 1e9


at = np.linspace(-2, 2, 4001)
z = np.random.default_rng(0).standard_normal((128, 3000)).astype(np.float32)
print("Least-squares fit of an activation, and the cost of sigma(z), in ns an element\n")
print(f"{'basis':26}{'rms error':>10}{'largest':>10}{'dense':>10}{'table':>10}{'ratio':>8}")
for name, basis in BASES.items():
    sigma = Activation(basis, basis.fit(target))
    error = sigma(at) - target(at)
    a = sigma.coefficients.astype(np.float32)
    dense = nanoseconds(lambda z, basis=basis, a=a: basis(z) @ a, z, repeats=1)
    fast = nanoseconds(sigma.table(), z)
    print(
        f"{name:26}{np.sqrt(np.mean(error**2)):10.1e}{np.abs(error).max():10.1e}"
        f"{dense:10.1f}{fast:10.2f}{dense / fast:7.0f}×"
    )
