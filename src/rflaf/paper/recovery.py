"""Recover sigma and v from values of f(x) = E[v(w) sigma(w·x)].

docs/recovery.md explains how far that is possible.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils._param_validation import Interval, StrOptions

from rflaf.arrays import Float64
from rflaf.bases import RBF, Basis
from rflaf.bases.base import checked
from rflaf.paper.bilinear import Recovery, recover, spread_directions

__all__ = ["Recovery", "best_factors", "recover_activation", "recovery_error"]

N_BASIS = 61


@checked(
    basis=[Basis, None],
    n_directions=[Interval(Integral, 1, None, closed="left"), None],
    penalty=[Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    random_state=["random_state"],
)
def recover_activation(
    X: ArrayLike,
    y: ArrayLike,
    basis: Basis | None = None,
    *,
    n_directions: int | None = None,
    penalty: float | Literal["auto"] = "auto",
    random_state: Any = None,
) -> Recovery:
    """Estimate sigma, and a smooth v, from values y of f(x) = E[v(w) sigma(w·x)], w normal.

    X is not scaled, because sigma is a function of w·x. sigma is assumed to vanish outside the
    grid of the basis.

    Parameters
    ----------
    X : array, n × d
    y : array of n
        Values of f, which may have errors.
    basis : Basis, optional
        Its own mirror image, as RBF and BSpline are on a grid from -L to L. Default: `RBF(61)`.
    n_directions : int, optional
        How many |w·d_k| make up the even part of v. Default: 8 for two inputs, and else d(d + 1).
    penalty : "auto" or float
        On sigma'': times the mean of y² and the integral of sigma''², for coefficients of unit
        mean square. "auto" holds out cones of directions of x, and takes the strongest penalty
        that does about as well there as the best; with one input it has to be given.
    random_state : int, RandomState or None
        For the cones and, from three inputs on, the directions.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.paper.recovery import recover_activation, recovery_error
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.standard_normal((1500, 2)), rng.standard_normal((2, 20_000))
    >>> bump = lambda z: np.cos(np.pi / 2 * np.clip(z, -1, 1))
    >>> y = bump(X @ w) @ np.abs(w[0]) / 20_000
    >>> found = recover_activation(X, y, random_state=0)
    >>> recovery_error(found.activation, bump) < 0.15
    True
    """
    x, target = check_X_y(X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=10)
    target = target.astype(np.float64)
    for name, given in (("y", target), ("X", x)):
        if not np.any(given):
            raise ValueError(f"The {name!r} parameter of recover_activation must not be all zeros.")
    basis = RBF(N_BASIS) if basis is None else basis
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    d = x.shape[1]
    if n_directions is None:
        n_directions = 8 if d <= 2 else d * (d + 1)
    directions = spread_directions(int(n_directions), d, rng)
    wanted = None if isinstance(penalty, str) else float(penalty)
    return recover(x, target, basis, directions, penalty=wanted, rng=rng)


def recovery_error(
    estimate: Callable[[Float64], ArrayLike],
    truth: Callable[[Float64], ArrayLike],
) -> float:
    """The relative L2 error, on [-2, 2], of sigma after the best factor for each of its parts.

    The even part of the truth is fitted by that of the estimate, and the odd part by the odd part,
    because f fixes neither factor. 0 is perfect; 1 is what zero would give.

    Parameters
    ----------
    estimate, truth : callables
        Functions of an array.

    Examples
    --------
    >>> import numpy as np
    >>> from rflaf.paper.recovery import recovery_error
    >>> def other(z):
    ...     return 3 * np.cos(z) - 2 * np.sin(z)
    >>> recovery_error(other, lambda z: np.cos(z) + np.sin(z)) < 1e-12
    True
    >>> round(recovery_error(np.sin, np.cos), 12)
    1.0
    """
    z = np.linspace(-2.0, 2.0, 2001)
    values = _values("truth", truth, z)
    total = float(np.sum(values**2))
    if total == 0:
        raise ValueError("The 'truth' parameter of recovery_error must not vanish everywhere.")
    rest = values - best_factors(_values("estimate", estimate, z), values)
    return float(np.sqrt(np.sum(rest**2) / total))


def best_factors(estimate: Float64, truth: Float64) -> Float64:
    """The estimate with its even and odd part each scaled to fit the truth, on a symmetric grid."""
    scaled = np.zeros_like(truth)
    for sign in (1, -1):
        part = (estimate + sign * estimate[::-1]) / 2
        size = float(part @ part)
        # a part that is only rounding error is not an estimate
        if size > 1e-24 * float(estimate @ estimate):
            scaled += part * float(part @ truth) / size
    return scaled


def _values(name: str, function: Callable[[Float64], ArrayLike], z: Float64) -> Float64:
    values = np.asarray(function(z), dtype=np.float64)
    if values.shape != z.shape or not np.isfinite(values).all():
        raise ValueError(
            f"The {name!r} parameter of recovery_error must give a finite number for every z. "
            f"Got values of shape {values.shape} for z of shape {z.shape}, or NaN or infinity."
        )
    return values
