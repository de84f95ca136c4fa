"""A basis with coefficients: the activation sigma(z) = sum_i a_i B_i(z)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from rflaf.bases import Basis, BSpline, get_basis
from rflaf.bases.base import as_float
from rflaf.formulas import Formula, describe
from rflaf.fused import DEFAULT_TOL, Sigma, compile_activation
from rflaf.runtime.extras import needed

_MOST_KNOTS = 513  # of `Activation.simplify`


class Activation:
    """A function of one variable in a given basis. Immutable.

    Calling it evaluates the basis itself, exactly. For large arrays `table()` gives a compiled
    form whose cost does not depend on the number of basis functions.

    Parameters
    ----------
    basis : Basis or str
        A basis, or a name as for `rflaf.bases.get_basis`, with as many functions as there are
        coefficients.
    coefficients : array of n, optional
        Optional for a fixed activation, whose coefficient is 1.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf import Activation
    >>> from rflaf.bases import RBF
    >>> basis = RBF(17)
    >>> sigma = Activation(basis, basis.fit(np.tanh))
    >>> bool(abs(sigma(0.5) - np.tanh(0.5)) < 0.01)
    True
    >>> fast = sigma.table()
    >>> fast(np.zeros((2, 3), dtype=np.float32)).dtype
    dtype('float32')
    """

    __slots__ = ("_basis", "_coefficients", "_tables")

    def __init__(self, basis: Basis | str, coefficients: ArrayLike | None = None) -> None:
        if coefficients is not None:
            given = np.array(coefficients, dtype=np.float64)
        if isinstance(basis, str):
            basis = get_basis(basis) if coefficients is None else get_basis(basis, given.size)
        if coefficients is None:
            if basis.learnable:
                raise ValueError(
                    f"The 'coefficients' parameter of Activation must be given for {basis!r}. "
                    "Only a fixed activation has a default."
                )
            given = np.ones(1)
        if given.shape != (basis.n,):
            raise ValueError(
                f"The 'coefficients' parameter of Activation must be a vector of {basis.n} "
                f"numbers, one for each basis function. Got shape {given.shape}."
            )
        if not np.isfinite(given).all():
            raise ValueError(
                "The 'coefficients' parameter of Activation must be finite. Got NaN or infinity."
            )
        given.setflags(write=False)
        object.__setattr__(self, "_basis", basis)
        object.__setattr__(self, "_coefficients", given)
        object.__setattr__(self, "_tables", {})  # compiled when first asked for

    @property
    def basis(self) -> Basis:
        """The basis."""
        return self._basis  # type: ignore[attr-defined]

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """The N coefficients, read-only."""
        return self._coefficients  # type: ignore[attr-defined]

    def __call__(self, z: ArrayLike) -> NDArray[Any]:
        """sigma(z), with the shape of z: float32 for float32, otherwise float64."""
        return self.basis.combine(self.coefficients, as_float(z))

    def derivative(self, z: ArrayLike) -> NDArray[Any]:
        """sigma'(z)."""
        return self.basis.combine(self.coefficients, as_float(z), 1)

    def table(self, tol: float = DEFAULT_TOL) -> Sigma:
        """The compiled form, with an error of at most `tol` times the largest |sigma|.

        It is callable on arrays of any shape, and what the functions of `rflaf.fused` take. For
        powers and fixed activations it evaluates the formula, and `tol` does not matter.
        """
        if not 1e-13 <= tol <= 0.1:
            raise ValueError(f"'tol' must be between 1e-13 and 0.1. Got {tol!r}.")
        tables: dict[float, Sigma] = self._tables  # type: ignore[attr-defined]
        if tol not in tables:
            tables[tol] = compile_activation(self.basis, self.coefficients, float(tol))
        return tables[tol]

    def describe(self, z: ArrayLike | None = None, top: int = 5) -> list[Formula]:
        """Formulas that come close: a f(b z + c) + d for named functions f, best first.

        A library of functions (sine, tanh, logistic, exponential, Gaussian, powers, the ReLUs)
        is fitted by least squares, and ranked by error and number of parameters. A good R² means
        that the formula describes sigma, not that it is the true one.

        Parameters
        ----------
        z : array, optional
            Points at which errors are measured, such as `z_sample_` of an estimator. Default: the
            grid.
        top : int
            The number of formulas, at most one per function. A constant has none.

        Returns
        -------
        list of Formula
            With `name`, `a`, `b`, `c`, `d`, `r2`, `n_parameters`; callable, and text for `print`.

        Examples
        --------
        >>> from rflaf.bases import BSpline
        >>> basis = BSpline(33)
        >>> best = Activation(basis, basis.fit(lambda z: np.sin(3 * z))).describe()[0]
        >>> print(best, best.name, round(best.r2, 3))
        sin(3 z) sine 1.0
        """
        points = np.linspace(*self.basis.grid, 1001) if z is None else np.ravel(z)
        return describe(self, points, top)

    def simplify(self, tol: float, n_knots: int | None = None) -> Activation:
        """Linear splines with the fewest equally spaced knots that stay within `tol` of sigma.

        The error is at most `tol` on the grid, and outside it too if the basis fades to zero or has
        linear tails.

        Parameters
        ----------
        tol : float
            The largest |difference|.
        n_knots : int, optional
            Number of knots, in place of `tol`.

        Examples
        --------
        >>> from rflaf.bases import BSpline
        >>> basis = BSpline(33, extrapolate="constant")
        >>> Activation(basis, basis.fit(np.abs)).simplify(0.1).basis
        BSpline(3 on [-2, 2], degree=1, extrapolate='constant')
        """
        if not tol > 0:
            raise ValueError(f"'tol' must be more than 0. Got {tol!r}.")
        low, high = self.basis.reach(tol / 10)
        tail = "linear" if self.basis.tail == "linear" else "constant"
        z = np.linspace(low, high, max(512, 16 * round((high - low) / self.basis.spacing)) + 1)
        between = np.linspace(low, high, 4 * z.size)
        for n in range(2, _MOST_KNOTS + 1) if n_knots is None else [n_knots]:
            basis, knots = BSpline(n, low, high, 1, tail), np.linspace(low, high, n)
            # interpolation is at most twice as far off as the best of these splines
            apart = np.abs(np.interp(z, knots, self(knots)) - self(z)).max()
            if n_knots is None and apart > 2 * tol:
                continue
            found = Activation(basis, _closest(basis, self, z))
            if n_knots is not None or np.abs(found(between) - self(between)).max() <= tol:
                return found
        raise ValueError(f"{_MOST_KNOTS} knots do not come within tol={tol!r} of {self.basis!r}.")

    def plot(self, ax: Any = None, *, n_points: int = 500, **line: Any) -> Any:
        """Draw sigma over the grid and a quarter of its length on either side.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: the current axes.
        n_points : int
            Points at which sigma is evaluated.
        **line
            Options of matplotlib's `plot`: color, label and so on.

        Returns
        -------
        The axes.
        """
        ax = current_axes() if ax is None else ax
        low, high = self.basis.grid
        margin = (high - low) / 4
        z = np.linspace(low - margin, high + margin, n_points)
        ax.axvspan(low, high, color="0.5", alpha=0.08, lw=0)
        ax.plot(z, self(z), **line)
        ax.set_xlabel("z")
        ax.set_ylabel("σ(z)")
        return ax

    def __mul__(self, factor: Any) -> Activation:
        if not isinstance(factor, Real):
            return NotImplemented
        return Activation(self.basis, self.coefficients * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Activation:
        if not isinstance(divisor, Real):
            return NotImplemented
        return Activation(self.basis, self.coefficients / float(divisor))

    def __neg__(self) -> Activation:
        return self * -1.0

    def __add__(self, other: Any) -> Activation:
        if not isinstance(other, Activation):
            return NotImplemented
        if self.basis != other.basis:
            raise ValueError(
                f"Only activations in the same basis can be added. Got {self.basis!r} and "
                f"{other.basis!r}."
            )
        return Activation(self.basis, self.coefficients + other.coefficients)

    def __sub__(self, other: Any) -> Activation:
        if not isinstance(other, Activation):
            return NotImplemented
        return self + (-other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Activation):
            return NotImplemented
        same = np.array_equal(self.coefficients, other.coefficients)
        return bool(same and self.basis == other.basis)

    def __hash__(self) -> int:
        return hash((self.basis, self.coefficients.tobytes()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"An Activation cannot be changed: {name!r} is read-only.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"An Activation cannot be changed: {name!r} is read-only.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Activation, (self.basis, self.coefficients)

    def __repr__(self) -> str:
        a = np.array2string(self.coefficients, threshold=6, precision=4, separator=", ")
        return f"Activation({self.basis!r}, {a})"


def current_axes() -> Any:
    """Matplotlib's, or an error that says what to install."""
    return needed("matplotlib.pyplot", "Plotting needs matplotlib", "'rflaf[plot]'").gca()


def _closest(basis: BSpline, sigma: Activation, z: NDArray[Any]) -> NDArray[np.float64]:
    """The coefficients with the least largest error at z, and the slopes of linear tails."""
    design, values, one = basis(z), sigma(z), np.ones((z.size, 1))
    fixed: dict[str, Any] = {}
    if basis.tail == "linear":
        edges = np.array(basis.grid)
        slopes = np.hstack([basis.derivative(edges), np.zeros((2, 1))])
        fixed = {"A_eq": slopes, "b_eq": sigma.derivative(edges)}
    result = linprog(
        np.eye(basis.n + 1)[-1],
        np.block([[design, -one], [-design, -one]]),
        np.concatenate([values, -values]),
        bounds=(None, None),
        **fixed,
    )
    if result.x is None:  # two knots cannot have two slopes
        return np.full(basis.n, np.mean(values))
    return np.asarray(result.x[:-1])


def alike(activations: list[Activation]) -> list[Activation]:
    """`activations` with the height and sign of the first: f is the same if V does the reverse."""
    first = activations[0]
    z = np.linspace(*first.basis.grid, 257)
    found = []
    for each in activations:
        overlap, size = float(first(z) @ each(z)), float(each(z) @ each(z))
        factor = np.sqrt(float(first(z) @ first(z)) / max(size, 1e-300))
        found.append(each * float(np.copysign(factor, overlap)))
    return found
