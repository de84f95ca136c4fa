"""The paper's synthetic targets f(x) = E[sigma(w·x) v(w)], where sigma is known.

w and x are standard normal in two dimensions and v(w) = c max(b1·w, b2·w). The paper names neither
b1 nor b2, nor the draws: they were found by following PyTorch's stream from seed 125 (x, then w,
then b1 and b2), which gives the authors' arrays back to rounding.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from rflaf.datasets.cache import kept
from rflaf.datasets.stream import Stream
from rflaf.datasets.types import Array, Dataset

SEED, N_POINTS, N_SAMPLES = 125, 15_000, 100_000
B1 = np.array([0.05632403492927551, 0.10215335339307785])
B2 = np.array([-0.7842563390731812, -0.2849375009536743])


@dataclass(frozen=True)
class Bumps:
    """sigma: a sum of half or whole waves sign · sin(pi (z - start)), each on its own interval."""

    pieces: tuple[tuple[float, float, float, float], ...]  # left, right, start, sign

    def __call__(self, z: Array) -> Array:
        z = np.asarray(z)
        z = z if z.dtype == np.float32 else z.astype(np.float64)
        # every piece ends in zeros of the sine, so that clipping is the indicator
        waves = (
            np.sin((np.clip(z, left, right) - start) * (sign * np.pi))
            for left, right, start, sign in self.pieces
        )
        return functools.reduce(np.add, waves)


@dataclass(frozen=True)
class SyntheticTarget:
    """One of f1, f2, f3: its activation, and the factor c of v."""

    sigma: Bumps
    c: float


TARGETS = {
    "f1": SyntheticTarget(Bumps(((-1.0, 1.0, 0.0, 1.0),)), 20.0),
    "f2": SyntheticTarget(Bumps(((0.0, 1.0, 0.0, 1.0),)), 7.0),
    "f3": SyntheticTarget(Bumps(((-1.5, -0.5, -0.5, -1.0), (0.5, 1.5, 0.5, 1.0))), 5.0),
}


def points() -> tuple[Array, Array]:
    """The 15,000 points x and the 100,000 samples of w, one per row, float32."""
    stream = Stream(SEED)
    x = stream.normal(N_POINTS, 2)
    return x, stream.normal(2, N_SAMPLES).T


def v(w: Array, c: float) -> Array:
    return c * np.maximum(w @ B1, w @ B2)


def sampled(target: SyntheticTarget, x: Array, w: Array) -> Array:
    """f by the mean over samples of w, as published: an error of about c/1000."""
    v_mean = (v(w, target.c) / len(w)).astype(np.float32)
    y = np.zeros(len(x))
    step = 4096  # with 64 points a block of w·x stays in the processor's cache
    for some in (slice(start, start + step) for start in range(0, len(w), step)):
        samples = np.ascontiguousarray(w[some].T)
        for start in range(0, len(x), 64):
            rows = slice(start, start + 64)
            y[rows] += target.sigma(x[rows] @ samples) @ v_mean[some]
    return y.astype(np.float32)


def exact(target: SyntheticTarget, x: Array, nodes: int = 100) -> Array:
    """f by quadrature, to about 1e-12.

    With w = t x/|x| + s (across), v is c (p·w + |m·w|) for half the sum p and half the difference m
    of b1 and b2. The mean over s is closed: p's part loses s, and |m·w| is a folded normal. The
    integral over z = t |x| runs over each interval of sigma by Gauss and Legendre.
    """
    x = np.asarray(x, dtype=np.float64)
    length = np.linalg.norm(x, axis=1)[:, None]
    along = x / length
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    p, m = (B1 + B2) / 2, (B1 - B2) / 2
    spread = np.abs(across @ m)[:, None]
    unit, weight = np.polynomial.legendre.leggauss(nodes)
    total = np.zeros(len(x))
    for left, right, start, sign in target.sigma.pieces:
        # beyond nine standard deviations of w·x nothing counts
        low, high = (np.clip(end, -9 * length, 9 * length) for end in (left, right))
        half = (high - low) / 2
        z = low + half * (unit + 1)
        t = z / length
        mean = t * (along @ m)[:, None]
        density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi) / length
        v_mean = t * (along @ p)[:, None] + folded_mean(mean, spread)
        values = sign * np.sin(np.pi * (z - start)) * v_mean * density
        total += (half * weight * values).sum(axis=1)
    return target.c * total


def folded_mean(mean: Array, spread: Array) -> Array:
    """E|t| for a normal t of the given mean and standard deviation."""
    ratio = mean / np.maximum(spread, 1e-12)
    bell = np.sqrt(2 / np.pi) * spread * np.exp(-0.5 * ratio**2)
    return np.asarray(bell + mean * erf(ratio / np.sqrt(2)))


def make(name: str) -> Dataset:
    """The points with their exact target."""
    x, _ = points()
    return Dataset(x, exact(TARGETS[name], x), ("x1", "x2"))


def make_sampled(name: str) -> Dataset:
    """The points with the published target: a thousand million sines, kept on disk."""
    target = TARGETS[name]

    def build() -> Dataset:
        x, w = points()
        return Dataset(x, sampled(target, x, w), ("x1", "x2"))

    return kept(name, f"{target} {SEED} {N_POINTS} {N_SAMPLES}", build)
