"""Find the activation that made the data, as in figures 2 and 3 of the paper.

    python examples/recover_activation.py [--picture FOLDER]

The target is f(x) = E[v(w) sigma(w·x)] with an unknown smooth v. sigma is found up to a factor for
its even and its odd part, which f leaves free.
"""

import argparse
from pathlib import Path

import numpy as np

from rflaf.paper.recovery import recover_activation, recovery_error

SIGMAS = {
    "half a sine": lambda z: np.sin(np.pi * np.clip(z, 0, 1)),
    "a bump and a dip": lambda z: np.interp(z, [-2, -1, 1, 2], [0, 1, -1, 0]),
}


def rows(sigma, n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, 2)), rng.standard_normal((2, 20_000))
    v = np.maximum(w[0], 0.5 * w[1])
    return X, sigma(X @ w) @ v / w.shape[1]


def matched(found, sigma, z):
    """The found curve with the best factor for its even and its odd part."""
    total = np.zeros_like(z)
    for sign in (1, -1):
        own, true = found(z) + sign * found(-z), sigma(z) + sign * sigma(-z)
        total += own * (own @ true) / max(own @ own, 1e-300) / 2
    return total


def draw(found, folder):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(found), figsize=(9, 3.2), layout="constrained")
    z = np.linspace(-2, 2, 401)
    for ax, (name, activation) in zip(axes, found.items()):
        ax.plot(z, SIGMAS[name](z), color="0.7", lw=4, label="true")
        ax.plot(z, matched(activation, SIGMAS[name], z), color="C3", label="recovered")
        ax.set(title=name, xlabel="z")
    axes[0].legend(frameon=False)
    figure.savefig(folder / "recover_activation.png", dpi=80)


def main(folder):
    found = {}
    for name, sigma in SIGMAS.items():
        found[name] = recover_activation(*rows(sigma), random_state=0).activation
        error = recovery_error(found[name], sigma)
        print(f"{name}: error {error:.3f}, where 0 is perfect and 1 is sigma = 0")
    if folder:
        draw(found, folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", type=Path, help="a folder for the picture")
    main(parser.parse_args().picture)
