"""Bases of one variable, in which an activation is sigma(z) = sum_i a_i B_i(z).

>>> from rflaf.bases import get_basis
>>> get_basis("rbf", 17)
RBF(17 on [-2, 2])
>>> get_basis("tanh").learnable
False
"""

from collections.abc import Callable

from rflaf.bases.base import Basis
from rflaf.bases.bspline import BSpline
from rflaf.bases.chebyshev import Chebyshev
from rflaf.bases.continued import Continued, with_tails
from rflaf.bases.fixed import FIXED_ACTIVATIONS, Fixed
from rflaf.bases.polynomial import Polynomial
from rflaf.bases.rbf import RBF

__all__ = [
    "FIXED_ACTIVATIONS",
    "LEARNABLE_BASES",
    "RBF",
    "BSpline",
    "Basis",
    "Chebyshev",
    "Continued",
    "Fixed",
    "Polynomial",
    "get_basis",
    "with_tails",
]

# One line here makes a new basis known by name, and the contract tests run on it.
LEARNABLE_BASES: dict[str, Callable[[int, float, float], Basis]] = {
    "rbf": RBF,
    "bspline": BSpline,
    "polynomial": Polynomial,
    "chebyshev": Chebyshev,
}
"""Name of each basis that can be learned in, with its class."""


def get_basis(basis: str | Basis, n: int = 32, grid: tuple[float, float] = (-2.0, 2.0)) -> Basis:
    """The basis of a name, with `n` functions on `grid`; a Basis is returned unchanged.

    >>> get_basis("bspline", 16).n
    16
    """
    if isinstance(basis, Basis):
        return basis
    if basis in LEARNABLE_BASES:
        return LEARNABLE_BASES[basis](n, *grid)
    if basis in FIXED_ACTIVATIONS:
        return Fixed(basis, *grid)
    known = ", ".join([*LEARNABLE_BASES, *FIXED_ACTIVATIONS])
    raise ValueError(f"Unknown basis {basis!r}. Expected a Basis or one of: {known}.")
