"""What the bounds need to know about the target: the class F_K of the paper, as a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from sklearn.utils._param_validation import StrOptions

from rflaf.bases.base import check_parameters, checked
from rflaf.theory._checks import COUNT, NON_NEGATIVE, POSITIVE, REAL

Constants = Literal["paper", "sharp"]
CONSTANTS = [StrOptions({"paper", "sharp"})]


@dataclass(frozen=True)
class Target:
    """A target f(x) = E[sigma(w·x) v(w)] with sigma continuous on a bounded interval, 0 outside.

    Parameters
    ----------
    sup_norm : float
        The largest |sigma|.
    lipschitz : float
        A Lipschitz constant of sigma on the whole line, so that sigma is 0 at the interval's ends.
    support : float
        The interval's length |K|.
    radius : float
        R = √(2 L_v² d + 2 v(0)²), which bounds √E[v(w)²]; `weight_radius` computes it.

    Examples
    --------
    >>> from rflaf.theory import Target, weight_radius
    >>> Target(1.0, lipschitz=1.0, support=4.0, radius=weight_radius(0.5, 0.0, dimension=2)).radius
    1.0
    """

    sup_norm: float
    lipschitz: float
    support: float
    radius: float

    def __post_init__(self) -> None:
        check_parameters("Target", dict.fromkeys(vars(self), POSITIVE), vars(self))
        if 2 * self.sup_norm > self.lipschitz * self.support * (1 + 1e-12):
            raise ValueError(
                "A function that is 0 at both ends of 'support' and has the constant 'lipschitz' "
                f"is at most {self.lipschitz * self.support / 2:g}. Got sup_norm={self.sup_norm!r}."
            )


TARGET = [Target]


@checked(lipschitz=NON_NEGATIVE, at_zero=REAL, dimension=COUNT)
def weight_radius(lipschitz: float, at_zero: float, *, dimension: int) -> float:
    """R = √(2 L_v² d + 2 v(0)²) for a weight function v (theorem 3.4).

    Parameters
    ----------
    lipschitz : float
        L_v, the Lipschitz constant of v.
    at_zero : float
        v(0).
    dimension : int
        d, the number of inputs.
    """
    return sqrt(2 * lipschitz**2 * dimension + 2 * at_zero**2)
