"""Draws the figures of docs/theory.md into docs/images.

python docs/figures/theory.py
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, prod
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from rflaf import Activation
from rflaf.bases import RBF
from rflaf.kernels import ActivationKernel
from rflaf.theory import (
    P_k,
    Target,
    feature_bound,
    grid_coefficients,
    rotation_invariant_kernel,
    sup_error_bound,
    taylor_coefficients,
    weight_radius,
)

IMAGES = Path(__file__).parents[1] / "images"


def series_and_cancellation(left, right):
    r = np.linspace(-1, 1, 200)
    left.plot(r, rotation_invariant_kernel(r, center=1.0, width=0.5), "k", label="closed form")
    for n in (2, 6, 20):
        t = taylor_coefficients(n, center=1.0, width=0.5)
        left.plot(r, np.polynomial.polynomial.polyval(r, t), "--", label=f"{n} terms")
    left.set(xlabel="r = x·x'", ylabel="K(r)", title="Series of theorem 3.2, c = 1, h = 1/2")
    left.legend(frameon=False)

    p, orders = 9.0, np.arange(2, 61)
    errors = {"printed sum": [], "recurrence": []}
    for k in orders.tolist():
        factors = [
            prod(range(2 * k - 1, 0, -2)) // prod(range(2 * i - 1, 0, -2)) * comb(k, i)
            for i in range(k + 1)
        ]
        exact = sum((-1) ** (k - i) * f * Fraction(p) ** i for i, f in enumerate(factors))
        summed = sum((-1.0) ** (k - i) * float(f) * p**i for i, f in enumerate(factors))
        errors["printed sum"].append(abs(summed / float(exact) - 1))
        errors["recurrence"].append(abs(float(P_k(k, p)) / float(exact) - 1))
    for name, values in errors.items():
        right.semilogy(2 * orders, np.maximum(values, 1e-17), ".-", label=name, lw=0.8)
    right.set(xlabel="n = 2k", ylabel="relative error", title="P_k(9) in floating point")
    right.legend(frameon=False)


def width(axes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5))
    basis = RBF(17)
    activation = Activation(basis, basis.fit(np.sin))
    K = ActivationKernel(activation)(X)
    sizes = 10 ** np.arange(1, 5)
    errors = []
    for M in sizes:
        Phi = activation(X @ rng.standard_normal((5, M)))
        errors.append(np.abs(Phi @ Phi.T / M - K).mean())
    axes.loglog(sizes, errors, "o-", label="|ΦΦ'/M - K|")
    axes.loglog(sizes, errors[0] * np.sqrt(sizes[0] / sizes), "k:", label="slope -1/2")
    axes.set(xlabel="M", title="Random features and their limit")
    legend_below(axes, 2)


def features(axes):
    rng = np.random.default_rng(0)
    c, h, d = 0.4, 0.5, 3
    slope, at_zero = np.array([0.3, -0.4, 0.0]), 0.5
    X = rng.standard_normal((200, d))
    spread = h * h + np.sum(X**2, axis=1)
    exact = h / np.sqrt(spread) * np.exp(-0.5 * c * c / spread)
    exact *= at_zero + X @ slope * c / spread
    sizes = 4 ** np.arange(2, 8)
    errors = np.empty((len(sizes), 30))
    for i, M in enumerate(sizes):
        for j in range(30):
            W = rng.standard_normal((d, M))
            values = np.exp(-0.5 * ((X @ W - c) / h) ** 2) @ (at_zero + slope @ W) / M
            errors[i, j] = np.abs(values - exact).mean()
    radius = weight_radius(0.5, at_zero, dimension=d)
    for constants, style in (("paper", "k-"), ("sharp", "k--")):
        bound = feature_bound(sizes, 0.1, radius=radius, constants=constants).error
        axes.loglog(sizes, bound, style, label=f"bound, {constants} constants")
    axes.loglog(sizes, errors, "C0.", ms=3, alpha=0.5)
    axes.loglog(sizes, errors.mean(axis=1), "C0-", label="simulated")
    axes.set(xlabel="M", ylabel="L1 error", title="Theorem 3.4, δ = 0.1")
    axes.set_ylim(2e-4, None)
    legend_below(axes, 2)


def grid(axes):
    def sigma(z):
        return np.interp(z, [-2, -1, 1, 2], [0, 1, -1, 0])

    target = Target(1.0, 1.0, 4.0, 1.0)
    z = np.linspace(-2.5, 2.5, 700)
    widths = np.geomspace(0.02, 0.6, 12)
    for n, color in ((32, "C0"), (256, "C1")):
        measured = [
            np.abs(grid_coefficients(sigma, n, h, (-2.0, 2.0))(z) - sigma(z)).max() for h in widths
        ]
        axes.loglog(widths, measured, color=color, label=f"measured, N = {n}")
        proved = [sup_error_bound(h, 4.0 / n, target) for h in widths]
        axes.loglog(widths, proved, "--", color=color, label="proved")
    axes.set(xlabel="h", title="Sup-norm error, proposition 4.3")
    axes.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
    axes.minorticks_off()
    axes.set_ylim(5e-3, 30)
    legend_below(axes, 2)


def legend_below(axes, columns):
    """Under the axis, where no line is."""
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    plt.rcParams.update({"font.size": 8, "axes.titlesize": 8, "figure.dpi": 100})
    figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
    series_and_cancellation(*axes)
    figure.savefig(IMAGES / "theory-series.png", metadata={"Software": None})
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    features(axes[0])
    grid(axes[1])
    width(axes[2])
    figure.savefig(IMAGES / "theory-bounds.png", metadata={"Software": None})


if __name__ == "__main__":
    main()
