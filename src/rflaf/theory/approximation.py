"""The error of finitely many features and Gaussians: theorem 3.4, proposition 4.3, theorem 4.4.

Every bound comes with two sets of constants. "paper" is as printed. "sharp" follows the same
proofs and leaves out their slack; docs/theory.md derives it. Both are proved, so both hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from math import ceil, e, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from rflaf.activation import Activation
from rflaf.bases import RBF
from rflaf.bases.base import check_grid, checked
from rflaf.theory._checks import CONFIDENCE, COUNT, POSITIVE, FloatArray, check_counts
from rflaf.theory.target import CONSTANTS, TARGET, Constants, Target

FEATURE_FACTOR = {"paper": 18.0, "sharp": sqrt(32.0)}
# The printed grid size divides by a logarithm that may vanish; from here on it is proved.
LEAST_LOGARITHM = 0.5


class FeatureBound(NamedTuple):
    """`error`: the L1 error; `squared_norm`: the sum of the squared weights v_m."""

    error: FloatArray
    squared_norm: FloatArray


@checked(delta=CONFIDENCE, radius=POSITIVE, constants=CONSTANTS)
def feature_bound(
    n_features: ArrayLike, delta: float, *, radius: float, constants: Constants = "paper"
) -> FeatureBound:
    """Theorem 3.4: M random features of one Gaussian, with probability 1 - delta.

    With v_m = v(w_m), E_x|phi_M(x) - phi(x)| <= 18 R √(log(4/delta)/M) and
    sum v_m² <= 49 M R² log(2/delta). Assumes v Lipschitz with R = √(2 L_v² d + 2 v(0)²), and
    0 < delta < 1/2; any distribution of x.

    Parameters
    ----------
    n_features : int or array
        M.
    delta : float
        Probability of failure, in (0, 1/2).
    radius : float
        R; see `weight_radius`.
    constants : {"paper", "sharp"}
        18, or √32 for the error.

    Examples
    --------
    >>> from rflaf.theory import feature_bound
    >>> [round(float(e), 2) for e in feature_bound([100, 10000], 0.1, radius=1.0).error]
    [3.46, 0.35]
    """
    M = check_counts("feature_bound", "n_features", n_features)
    error = FEATURE_FACTOR[constants] * radius * np.sqrt(log(4 / delta) / M)
    return FeatureBound(error, 49 * M * radius**2 * log(2 / delta))


@checked(epsilon=POSITIVE, target=TARGET, constants=CONSTANTS)
def largest_width(epsilon: float, target: Target, *, constants: Constants = "paper") -> float:
    """The largest h that proposition 4.3 allows for an error of epsilon in f.

    As printed, ε / (4√2 L R √log(16 |sigma| R/ε)); with "sharp" constants ε √(2π) / (4 L R).
    ε < |sigma| R is required: for a larger ε the function 0 is good enough.

    Examples
    --------
    >>> from rflaf.theory import Target, largest_width
    >>> round(largest_width(0.1, Target(1.0, 1.0, 4.0, 1.0)), 5)
    0.00785
    """
    S, L, _, R = _check_epsilon("largest_width", epsilon, target)
    if constants == "sharp":
        return epsilon * sqrt(2 * pi) / (4 * L * R)
    return epsilon / (4 * sqrt(2) * L * R * sqrt(log(16 * S * R / epsilon)))


@checked(epsilon=POSITIVE, width=POSITIVE, target=TARGET, constants=CONSTANTS)
def largest_spacing(
    epsilon: float, width: float, target: Target, *, constants: Constants = "paper"
) -> float:
    """The largest grid size |K|/N that proposition 4.3 allows for this epsilon and width.

    The printed condition divides by log(8 |sigma| |K| R / (√(2π) ε h²)), a number with a unit: for
    wide supports it falls to zero and below. Where it is under 1/2, 1/2 takes its place; then the
    condition implies the sharp one, |K|/N <= ε h √(2π) / (8 |sigma| R), which needs no logarithm.

    Examples
    --------
    >>> from rflaf.theory import Target, largest_spacing
    >>> round(largest_spacing(0.1, 0.00785, Target(1.0, 1.0, 4.0, 1.0)), 8)
    6.97e-06
    """
    S, L, K, R = _check_epsilon("largest_spacing", epsilon, target)
    if constants == "sharp":
        from_kernel = epsilon * width * sqrt(2 * pi) / (8 * S * R)
    else:
        logarithm = log(8 * S * K * R / (sqrt(2 * pi) * epsilon * width**2))
        divisor = 16 * sqrt(2) * S * R * max(logarithm, LEAST_LOGARITHM)
        from_kernel = epsilon * width * sqrt(pi * e) / divisor
    return min(from_kernel, epsilon / (4 * L * R))


class Grid(NamedTuple):
    """`n_basis`: the N cells, with a centre in each; `width`: the common h of the Gaussians."""

    n_basis: int
    width: float


def grid_for(epsilon: float, target: Target, *, constants: Constants = "paper") -> Grid:
    """The widest Gaussians and the fewest of them that proposition 4.3 allows for an epsilon.

    Examples
    --------
    >>> from rflaf.theory import Target, grid_for
    >>> grid_for(0.2, Target(1.0, 1.0, 4.0, 1.0), constants="sharp")
    Grid(n_basis=510, width=0.12533141373155002)
    """
    h = largest_width(epsilon, target, constants=constants)
    spacing = largest_spacing(epsilon, h, target, constants=constants)
    return Grid(ceil(target.support / spacing), h)


@checked(n_basis=COUNT, width=POSITIVE, target=TARGET, constants=CONSTANTS)
def grid_error(
    n_basis: int, width: float, target: Target, *, constants: Constants = "paper"
) -> float:
    """The reverse of `grid_for`: the smallest epsilon that proposition 4.3 proves for a grid.

    It is never more than |sigma| R, which the coefficients 0 reach.

    Examples
    --------
    >>> from rflaf.theory import Target, grid_error
    >>> round(grid_error(510, 0.1253, Target(1.0, 1.0, 4.0, 1.0), constants="sharp"), 3)
    0.158
    """
    S, _, K, R = astuple(target)
    spacing, trivial = K / n_basis, S * R
    if constants == "sharp":
        return min(trivial, R * sup_error_bound(width, spacing, target))

    def slack(epsilon: float) -> float:
        h = largest_width(epsilon, target)
        return min(h / width, largest_spacing(epsilon, width, target) / spacing) - 1

    largest = trivial * (1 - 1e-12)
    if slack(largest) < 0:
        return trivial
    return float(brentq(slack, largest * 1e-300, largest, xtol=1e-14 * largest))


def sup_error_bound(width: float, spacing: float, target: Target) -> float:
    """Bound for the largest |sigma - sum a_i B_i| with the coefficients of `grid_coefficients`.

    L h √(2/π) + L Δ + |sigma| √(2/π) Δ/h: blurring by a Gaussian, then a Riemann sum.
    """
    S, L, _, _ = astuple(target)
    return sqrt(2 / pi) * (L * width + S * spacing / width) + L * spacing


@checked(n_basis=COUNT, width=POSITIVE)
def grid_coefficients(
    sigma: Callable[[Any], ArrayLike], n_basis: int, width: float, support: tuple[float, float]
) -> Activation:
    """The activation that proposition 4.3 constructs: a_i = sigma(c_i) |K| / (√(2π) h N).

    Parameters
    ----------
    sigma : callable
        A function of an array, 0 outside `support`.
    n_basis, width : int, float
        N and h; see `grid_for`.
    support : (float, float)
        The interval K. The centre c_i is the right end of the i-th of its N cells, as in the proof.

    Examples
    --------
    >>> from rflaf.theory import grid_coefficients
    >>> tent = lambda z: np.maximum(1 - abs(z), 0)
    >>> learned = grid_coefficients(tent, 400, 0.02, (-1.0, 1.0))
    >>> bool(abs(learned(0.5) - 0.5) < 1e-3)
    True
    """
    low, high = check_grid("grid_coefficients", *support)
    spacing = (high - low) / n_basis
    centers = low + spacing * np.arange(1, n_basis + 1)
    values = np.asarray(sigma(centers), dtype=np.float64)
    return Activation(RBF(centers=centers, width=width), values * spacing / (sqrt(2 * pi) * width))


@checked(epsilon=POSITIVE, delta=CONFIDENCE, target=TARGET, constants=CONSTANTS)
def approximation_bound(
    n_features: ArrayLike,
    epsilon: float,
    delta: float,
    target: Target,
    *,
    constants: Constants = "paper",
) -> FloatArray:
    """Theorem 4.4: L1 error of M features with a learned activation, with probability 1 - delta.

    18 (|sigma| R + ε) √(log(4/delta)/M) + ε, for a grid of proposition 4.3 with this ε, and
    weights inside the constraint set of `constraint_set`. Assumes 0 < delta < 1/2.

    Examples
    --------
    >>> from rflaf.theory import Target, approximation_bound
    >>> target = Target(1.0, 1.0, 4.0, 1.0)
    >>> round(float(approximation_bound(1_000_000, 0.05, 0.1, target)), 4)
    0.0863
    """
    S, _, _, R = _check_epsilon("approximation_bound", epsilon, target)
    bound = feature_bound(n_features, delta, radius=S * R + epsilon, constants=constants)
    return bound.error + epsilon


def _check_epsilon(caller: str, epsilon: float, target: Target) -> tuple[float, ...]:
    """|sigma|, L, |K| and R of a target for which `epsilon` is not too large."""
    largest = target.sup_norm * target.radius
    if epsilon >= largest:
        raise ValueError(
            f"The 'epsilon' parameter of {caller} must be less than |sigma| R = {largest:g}, the "
            f"error of the function 0. Got {epsilon!r}."
        )
    return astuple(target)
