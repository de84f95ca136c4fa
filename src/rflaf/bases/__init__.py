"""Bases of one variable, in which an activation is sigma(z) = sum_i a_i B_i(z).

>>> from rflaf.bases import get_basis
>>> get_basis("rbf", 17)
RBF(17 on [-2, 2])
>>> get_basis("tanh").learnable
False
"""

from rflaf.bases.base import Basis
from rflaf.bases.bspline import BSpline
from rflaf.bases.chebyshev import Chebyshev
from rflaf.bases.continued import Continued, with_tails
from rflaf.bases.fixed import FIXED_ACTIVATIONS, Fixed
from rflaf.bases.polynomial import Polynomial
from rflaf.bases.rbf import RBF
from rflaf.bases.registry import LEARNABLE_BASES, get_basis

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
