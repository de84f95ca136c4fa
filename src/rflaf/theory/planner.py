"""Sizes for a target excess risk, and guarantees for given sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from rflaf.bases.base import checked
from rflaf.theory._checks import CONFIDENCE, POSITIVE
from rflaf.theory.approximation import grid_error, largest_spacing, largest_width
from rflaf.theory.generalization import ConstraintSet, constraint_set, excess_risk_bound
from rflaf.theory.target import CONSTANTS, TARGET, Constants, Target


@dataclass(frozen=True)
class Guarantee:
    """What theorem 5.1 proves for given sizes, part by part.

    Attributes
    ----------
    n, M, N : int
        Samples, features, Gaussians.
    h : float
        Width of the Gaussians.
    delta : float
        Probability of failure.
    samples, features, grid : float
        The three parts of the bound; `total` is their sum.
    constraints : ConstraintSet
        The set over which coefficients and weights are minimised.
    """

    n: int
    M: int
    N: int
    h: float
    delta: float
    samples: float
    features: float
    grid: float
    constraints: ConstraintSet

    @property
    def total(self) -> float:
        """The bound for the excess risk."""
        return self.samples + self.features + self.grid

    def __str__(self) -> str:
        rows = [
            ("samples", "n", f"{self.n:,}", self.samples),
            ("features", "M", f"{self.M:,}", self.features),
            ("Gaussians", "N", f"{self.N:,}, h = {self.h:.3g}", self.grid),
        ]
        lines = [f"excess risk <= {self.total:.4g} with probability {1 - self.delta:g}"]
        lines += [f"  {name:<9} {s} = {size:<28} adds {part:.4g}" for name, s, size, part in rows]
        return "\n".join(lines)


@checked(
    epsilon=POSITIVE, delta=CONFIDENCE, target=TARGET, loss_lipschitz=POSITIVE, constants=CONSTANTS
)
def plan(
    epsilon: float,
    delta: float,
    *,
    target: Target,
    loss_lipschitz: float = 1.0,
    constants: Constants = "paper",
) -> Guarantee:
    """The sizes n, M, N and h with which theorem 5.1 guarantees an excess risk of epsilon.

    A third of epsilon goes to the samples, one to the features and one to the grid. The sample
    complexity n = Θ(1/(ε h)²), M = Θ(1/ε²), N = Θ(1/(ε h)) of the paper, up to logarithms, with
    all constants.

    Parameters
    ----------
    epsilon : float
        The bound for L_D(f_S) - L_D(f*).
    delta : float
        Probability of failure, in (0, 1/2).
    target : Target
        What is known of the target.
    loss_lipschitz : float
        rho: the loss is rho-Lipschitz in the prediction, and |loss(0, y)| <= rho.
    constants : {"paper", "sharp"}
        As printed, or from the same proofs without slack.

    Examples
    --------
    >>> from rflaf.theory import Target, plan
    >>> print(plan(0.5, 0.1, target=Target(1.0, 1.0, 4.0, 1.0), constants="sharp"))
    excess risk <= 0.5 with probability 0.9
      samples   n = 492,578,626                  adds 0.1667
      features  M = 6,872                        adds 0.1667
      Gaussians N = 734, h = 0.104               adds 0.1667
    """
    share = epsilon / 3
    grid_epsilon = _useful(share / loss_lipschitz, target)
    h = largest_width(grid_epsilon, target, constants=constants)
    h = min(h, 1.0) if constants == "paper" else h  # the printed theorem 5.1 requires h <= 1
    n, M, N = sample_complexity(
        share, h, delta, target=target, loss_lipschitz=loss_lipschitz, constants=constants
    )
    return _certify((n, M, N, h), delta, grid_epsilon, target, loss_lipschitz, constants)


class SampleComplexity(NamedTuple):
    """Samples, features and Gaussians."""

    n: int
    M: int
    N: int


@checked(epsilon=POSITIVE, target=TARGET, loss_lipschitz=POSITIVE, constants=CONSTANTS)
def sample_complexity(
    epsilon: float,
    width: float,
    delta: float,
    *,
    target: Target,
    loss_lipschitz: float = 1.0,
    constants: Constants = "paper",
) -> SampleComplexity:
    """The smallest n, M and N that keep each part of theorem 5.1 below epsilon, for a given h.

    The n = Θ(1/(ε h)²), M = Θ(1/ε²) and N = Θ(1/(ε h)) of section 5, up to logarithms; the excess
    risk is then at most 3 epsilon. `plan` chooses h as well.

    Examples
    --------
    >>> from rflaf.theory import Target, sample_complexity
    >>> known = Target(1.0, 1.0, 4.0, 1.0)
    >>> sample_complexity(0.2, 0.1, 0.1, target=known, constants="sharp")
    SampleComplexity(n=373002140, M=5049, N=639)
    """
    grid_epsilon = _useful(epsilon / loss_lipschitz, target)
    widest = largest_width(grid_epsilon, target, constants=constants)
    if width > widest:
        raise ValueError(
            "The 'width' parameter of sample_complexity must be at most what proposition 4.3 "
            f"allows, {widest:g}. Got {width!r}."
        )
    spacing = largest_spacing(grid_epsilon, width, target, constants=constants)
    # both parts fall as one over the root: their values at 1 give the sizes
    at_one = excess_risk_bound(
        1, 1, width, grid_epsilon, delta, target, loss_lipschitz=loss_lipschitz, constants=constants
    )
    n, M = (ceil((float(part) / epsilon) ** 2) for part in (at_one.samples, at_one.features))
    return SampleComplexity(n, M, ceil(target.support / spacing))


def guarantee(
    n: int,
    M: int,
    N: int,
    h: float,
    delta: float,
    *,
    target: Target,
    loss_lipschitz: float = 1.0,
    constants: Constants = "paper",
) -> Guarantee:
    """The reverse of `plan`: what theorem 5.1 guarantees for given sizes.

    Examples
    --------
    >>> from rflaf.theory import Target, guarantee
    >>> known = Target(1.0, 1.0, 4.0, 1.0)
    >>> print(guarantee(10_000, 1000, 128, 0.3, 0.1, target=known, constants="sharp"))
    excess risk <= 13.84 with probability 0.9
      samples   n = 10,000                       adds 12.98
      features  M = 1,000                        adds 0.5069
      Gaussians N = 128, h = 0.3                 adds 0.3537
    """
    epsilon = grid_error(N, h, target, constants=constants)
    # theorem 4.4 requires less than |sigma| R, the error of the function 0
    epsilon = min(epsilon, target.sup_norm * target.radius * (1 - 1e-12))
    return _certify((n, M, N, h), delta, epsilon, target, loss_lipschitz, constants)


def _useful(epsilon: float, target: Target) -> float:
    """Half of |sigma| R at most: at |sigma| R the function 0 is enough, and no grid is needed."""
    return min(epsilon, target.sup_norm * target.radius / 2)


def _certify(
    sizes: tuple[int, int, int, float],
    delta: float,
    epsilon: float,
    target: Target,
    loss_lipschitz: float,
    constants: Constants,
) -> Guarantee:
    n, M, N, h = sizes
    bound = excess_risk_bound(
        n, M, h, epsilon, delta, target, loss_lipschitz=loss_lipschitz, constants=constants
    )
    # theorem 5.1 spends half of delta on the event that the set holds a good approximation
    allowed = constraint_set(M, N, h, delta / 2, target)
    parts = float(bound.samples), float(bound.features), bound.grid
    return Guarantee(*sizes, delta, *parts, allowed)
