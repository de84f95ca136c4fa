"""A basis with other tails than its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from sklearn.utils._param_validation import StrOptions

from rflaf.bases.base import Array, Basis, Tail, check_parameters
from rflaf.bases.bspline import BSpline


@final
class Continued(Basis):
    """The functions of a basis on its grid, and beyond it straight lines or constants.

    Parameters
    ----------
    basis : Basis
        The basis on the grid.
    tail : {"linear", "constant"}
        Beyond the grid: with the value and the slope of its edge, or with the value alone.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.bases import RBF
    >>> basis = Continued(RBF(17))
    >>> bool(np.allclose(basis(10.0), basis(2.0) + 8 * basis.derivative(2.0)))
    True
    """

    def __init__(self, basis: Basis, tail: str = "linear") -> None:
        constraints = {"basis": [Basis], "tail": [StrOptions({"linear", "constant"})]}
        check_parameters("Continued", constraints, locals())
        self.basis = basis
        self.tail: Tail = tail  # type: ignore[assignment]
        self.n, self.low, self.high = basis.n, basis.low, basis.high

    @property
    def spacing(self) -> float:
        return self.basis.spacing

    def functions(self, z: Array, order: int = 0) -> Iterator[Array]:
        yield from self.basis.functions(z, order)

    def __repr__(self) -> str:
        return f"Continued({self.basis!r}, {self.tail!r})"


def with_tails(basis: Basis, tail: str) -> Basis:
    """`basis` with other tails; powers, which are evaluated everywhere, stay as they are.

    >>> from rflaf.bases import RBF
    >>> with_tails(RBF(5), "linear").tail
    'linear'
    >>> with_tails(BSpline(5), "constant")
    BSpline(5 on [-2, 2], extrapolate='constant')
    """
    if basis.tail in (tail, "direct"):
        return basis
    if isinstance(basis, Continued):
        return with_tails(basis.basis, tail)
    if isinstance(basis, BSpline):
        return BSpline(**{**basis.parameters(), "extrapolate": tail})
    if tail == "zero":
        raise ValueError(
            f"The tails of {basis!r} cannot be 'zero': it does not end in zero, and would jump. "
            "Expected 'constant' or 'linear'."
        )
    return Continued(basis, tail)
