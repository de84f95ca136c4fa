"""Learning from n samples: the constraint set (5.3), its complexity, theorem 5.1."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rflaf.bases.base import check_parameters, checked
from rflaf.theory._checks import CONFIDENCE, COUNT, NON_NEGATIVE, POSITIVE, FloatArray, check_counts
from rflaf.theory.approximation import approximation_bound
from rflaf.theory.target import CONSTANTS, TARGET, Constants, Target


@dataclass(frozen=True)
class ConstraintSet:
    """Coefficients a and weights v with |a| <= a_radius and |v| <= v_radius (equation 5.3).

    Examples
    --------
    >>> from rflaf.theory import ConstraintSet
    >>> allowed = ConstraintSet(a_radius=1.0, v_radius=10.0)
    >>> a, v = allowed.project([3.0, 4.0], [1.0, 2.0])
    >>> a, v, allowed.contains(a, v)
    (array([0.6, 0.8]), array([1., 2.]), True)
    """

    a_radius: float
    v_radius: float

    def __post_init__(self) -> None:
        check_parameters("ConstraintSet", dict.fromkeys(vars(self), POSITIVE), vars(self))

    def contains(self, a: ArrayLike, v: ArrayLike) -> bool:
        """Whether both norms are within their radii, up to rounding."""
        sizes = np.array([np.linalg.norm(_finite("a", a)), np.linalg.norm(_finite("v", v))])
        return bool((sizes <= np.array([self.a_radius, self.v_radius]) * (1 + 1e-12)).all())

    def project(self, a: ArrayLike, v: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The nearest point of the set: each vector is scaled to its ball."""
        a, v = _finite("a", a), _finite("v", v)
        return _to_ball(a, self.a_radius), _to_ball(v, self.v_radius)


@checked(n_features=COUNT, n_basis=COUNT, width=POSITIVE, delta=CONFIDENCE, target=TARGET)
def constraint_set(
    n_features: int, n_basis: int, width: float, delta: float, target: Target
) -> ConstraintSet:
    """The set (5.3): |a| <= |sigma| |K| / (h √(2πN)) and |v| <= 7 R √(M log(2/delta)).

    It holds a good approximation with probability 1 - delta/2 (theorem 4.4). Theorem 5.1 spends
    its delta in two halves, so learn with `delta` / 2 here for a guarantee at level delta there.

    Examples
    --------
    >>> from rflaf.theory import Target, constraint_set
    >>> allowed = constraint_set(100, 16, 0.25, 0.1, Target(1.0, 1.0, 4.0, 1.0))
    >>> round(allowed.a_radius, 3), round(allowed.v_radius, 1)
    (1.596, 121.2)
    """
    return ConstraintSet(
        target.sup_norm * target.support / (width * sqrt(2 * pi * n_basis)),
        7 * target.radius * sqrt(n_features * log(2 / delta)),
    )


@checked(width=POSITIVE, delta=CONFIDENCE, target=TARGET)
def output_bound(width: float, delta: float, target: Target) -> float:
    """Lemma C.2, first part: the largest |f| over the constraint set.

    7 |sigma| |K| R √log(2/delta) / (h √(2π)), whatever M and N are.
    """
    size = 7 * target.sup_norm * target.support * target.radius
    return size * sqrt(log(2 / delta) / (2 * pi)) / width


@checked(loss_lipschitz=POSITIVE)
def rademacher_bound(
    n_samples: ArrayLike, width: float, delta: float, target: Target, *, loss_lipschitz: float = 1.0
) -> FloatArray:
    """Lemma C.2, second part: Rademacher complexity of the losses over the constraint set.

    rho times `output_bound` over √n, for a loss with the Lipschitz constant rho.

    Examples
    --------
    >>> from rflaf.theory import Target, rademacher_bound
    >>> float(rademacher_bound(10_000, 0.25, 0.1, Target(1.0, 1.0, 4.0, 1.0)).round(4))
    0.7734
    """
    n = check_counts("rademacher_bound", "n_samples", n_samples)
    return loss_lipschitz * output_bound(width, delta, target) / np.sqrt(n)


class ExcessRisk(NamedTuple):
    """The three parts of theorem 5.1: too few samples, too few features, too coarse a grid."""

    samples: FloatArray
    features: FloatArray
    grid: float

    @property
    def total(self) -> FloatArray:
        """Their sum: the bound for L_D(f_S) - L_D(f*)."""
        return self.samples + self.features + self.grid


@checked(
    width=POSITIVE, delta=CONFIDENCE, target=TARGET, loss_lipschitz=POSITIVE, constants=CONSTANTS
)
def excess_risk_bound(
    n_samples: ArrayLike,
    n_features: ArrayLike,
    width: float,
    epsilon: float,
    delta: float,
    target: Target,
    *,
    loss_lipschitz: float = 1.0,
    constants: Constants = "paper",
) -> ExcessRisk:
    """Theorem 5.1: risk of the empirical minimiser above the best target's, probability 1 - delta.

    rho C log(16/delta)/(h√n) + rho C √(log(8/delta)/M) + rho ε with
    C = max{14 (1 + 7 |sigma| |K| R), 18 (|sigma| R + ε)}.

    Assumes a loss that is rho-Lipschitz in the prediction with |loss(0, y)| <= rho, a grid of
    proposition 4.3 for `epsilon`, minimisation over `constraint_set(..., delta / 2, ...)`,
    delta < 1/2, and for the printed constants h <= 1. "sharp" keeps the terms of the proof as they
    are before the last simplifications, and needs no condition on h.

    Examples
    --------
    >>> from rflaf.theory import Target, excess_risk_bound
    >>> target = Target(1.0, 1.0, 4.0, 1.0)
    >>> bound = excess_risk_bound(10**8, 10**6, 0.1, 0.05, 0.1, target, constants="sharp")
    >>> round(float(bound.total), 3)
    0.449
    """
    n = check_counts("excess_risk_bound", "n_samples", n_samples)
    rho = loss_lipschitz
    error = approximation_bound(n_features, epsilon, delta / 2, target, constants=constants)
    if constants == "sharp":
        # twice the complexity and five times the largest loss, lemma C.3
        size = output_bound(width, delta / 2, target)
        samples = rho * (2 * size + 5 * (1 + size) * sqrt(2 * log(16 / delta))) / np.sqrt(n)
        return ExcessRisk(samples, rho * (error - epsilon), rho * epsilon)
    if width > 1:
        raise ValueError(
            "The 'width' parameter of excess_risk_bound must be at most 1 for the printed "
            f"constants. Got {width!r}. constants='sharp' has no such condition."
        )
    C = theorem_5_1_constant(epsilon, target)
    M = check_counts("excess_risk_bound", "n_features", n_features)
    return ExcessRisk(
        rho * C * log(16 / delta) / (width * np.sqrt(n)),
        rho * C * np.sqrt(log(8 / delta) / M),
        rho * epsilon,
    )


@checked(epsilon=NON_NEGATIVE)
def theorem_5_1_constant(epsilon: float, target: Target) -> float:
    """C = max{14 (1 + 7 |sigma| |K| R), 18 (|sigma| R + ε)}."""
    product = target.sup_norm * target.radius
    return max(14 * (1 + 7 * product * target.support), 18 * (product + epsilon))


def _finite(name: str, given: ArrayLike) -> FloatArray:
    vector = np.asarray(given, dtype=np.float64)
    if not np.isfinite(vector).all():
        raise ValueError(f"The {name!r} parameter of ConstraintSet must be finite.")
    return vector


def _to_ball(vector: FloatArray, radius: float) -> FloatArray:
    size = np.linalg.norm(vector)
    return vector * (radius / size) if size > radius else vector
