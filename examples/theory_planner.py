"""What theory guarantees and what practice needs, for a simulated target of the paper's class.

The target is f(x) = E[sigma(w·x) v(w)] with a known sigma and v, in two dimensions, so that the
best possible risk is 0 and the excess risk of a model is the error it makes.

    python examples/theory_planner.py [--picture FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from rflaf import Activation
from rflaf.theory import (
    Target,
    grid_coefficients,
    grid_for,
    guarantee,
    plan,
    weight_radius,
)

V_ZERO, V_SLOPE = 0.5, np.array([0.3, 0.4])
TARGET = Target(
    sup_norm=1.0, lipschitz=1.0, support=4.0, radius=weight_radius(0.5, V_ZERO, dimension=2)
)


def sigma(z):
    """Up to 1 at -1, down to -1 at 1, back to 0: slope 1 everywhere on [-2, 2]."""
    return np.interp(z, [-2, -1, 1, 2], [0, 1, -1, 0])


def f(X):
    """E[sigma(w·x) v(w)] for v(w) = v(0) + slope·w, by a fine sum over one dimension."""
    z = np.linspace(-8, 8, 4001)
    density = np.exp(-0.5 * z * z) / np.exp(-0.5 * z * z).sum()
    norms = np.linalg.norm(X, axis=1)
    values = sigma(norms[:, None] * z)
    return V_ZERO * values @ density + X @ V_SLOPE / norms * (values @ (z * density))


def fitted_error(n, M, N, h, constraints, seed=0):
    """Mean absolute error on new points of a ridge fit inside the constraint set of theorem 5.1."""
    rng = np.random.default_rng(seed)
    activation = grid_coefficients(sigma, N, h, (-2.0, 2.0))
    W = rng.standard_normal((2, M))
    X, X_new = rng.standard_normal((n, 2)), rng.standard_normal((2000, 2))
    Phi = activation(X @ W) / M
    weights = np.linalg.solve(Phi.T @ Phi + 1e-8 * np.eye(M), Phi.T @ f(X))
    a, weights = constraints.project(activation.coefficients, weights)
    learned = Activation(activation.basis, a)
    return np.abs(learned(X_new @ W) @ weights / M - f(X_new)).mean()


def draw(errors, promised, folder):
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(figsize=(5.5, 3.4), layout="constrained")
    sizes = sorted(errors)
    ax.loglog(sizes, [promised[n] for n in sizes], "k--", label="promised by proposition 4.3")
    ax.loglog(sizes, [errors[n] for n in sizes], "o-", color="C3", label="measured")
    ax.set(xlabel="basis functions N", ylabel="largest error of the activation")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    ax.legend(frameon=False)
    figure.savefig(folder / "theory_planner.png", dpi=80)


def main(folder):
    print("To guarantee an excess risk of 0.3, the paper's constants ask for")
    print(plan(0.3, 0.1, target=TARGET))
    print("\nand the same proofs without their slack for")
    print(plan(0.3, 0.1, target=TARGET, constants="sharp"))

    n, M, N, h = 1000, 100, 64, 0.15
    print("\nFor sizes that one would use, the guarantee is")
    proved = guarantee(n, M, N, h, 0.1, target=TARGET, constants="sharp")
    print(proved)
    error = fitted_error(n, M, N, h, proved.constraints)
    print(f"and a model fitted within the same constraints in fact errs by {error:.4f}.")

    print("\nProposition 4.3: largest error of the constructed activation")
    z = np.linspace(-2.5, 2.5, 500)
    errors, bounds = {}, {}
    for epsilon in (0.8, 0.4, 0.2):
        grid = grid_for(epsilon, TARGET, constants="sharp")
        learned = grid_coefficients(sigma, *grid, (-2.0, 2.0))
        error = np.abs(learned(z) - sigma(z)).max()
        promised = epsilon / TARGET.radius
        errors[grid.n_basis], bounds[grid.n_basis] = error, promised
        print(f"  N = {grid.n_basis:5d}: promised {promised:.3f}, measured {error:.3f}")
    if folder:
        draw(errors, bounds, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", type=Path, help="a folder for the picture")
    main(parser.parse_args().picture)
