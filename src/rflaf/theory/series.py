"""Theorem 3.2 and corollary 3.3: the Taylor series of the kernel, its features, their functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import ArrayLike

from rflaf.bases.base import check_parameters, checked
from rflaf.theory._checks import COUNT, ORDER, POSITIVE, REAL, FloatArray, check_points
from rflaf.theory.hermite import hermite_terms

MAX_FEATURES = 10_000_000


@checked(n_terms=COUNT, center=REAL, width=POSITIVE)
def taylor_coefficients(n_terms: int, *, center: float, width: float) -> FloatArray:
    """The t_n >= 0 of K(r) = sum_n t_n r^n, for unit vectors (theorem 3.2).

    t_n = e^(-p) h²/(1+h²)^(n+1) R_n(p)/n! with p = c²/(1+h²).

    Parameters
    ----------
    n_terms : int
        How many, from t_0 on. The terms fall like (1 + h²)^(-n): narrow Gaussians need many.
    center, width : float
        The c and h of the Gaussian.

    Examples
    --------
    >>> from rflaf.theory import rotation_invariant_kernel, taylor_coefficients
    >>> t = taylor_coefficients(60, center=0.7, width=1.0)
    >>> series = float(sum(t * 0.5 ** np.arange(60)))
    >>> bool(abs(series - rotation_invariant_kernel(0.5, center=0.7, width=1.0)) < 1e-15)
    True
    """
    roots = _feature_weights(n_terms, np.ones(1), float(center), float(width))
    return np.square(np.concatenate(roots))


@checked(degree=ORDER, center=REAL, width=POSITIVE)
def feature_map(X: ArrayLike, degree: int, *, center: float, width: float) -> FloatArray:
    """The features phi(x) of theorem 3.2 up to x^(⊗degree), one after another in a row.

    The paper gives them for unit vectors. Here X may have any norms: with s = |x| the factor of
    x^(⊗n) is that of the unit vector, with h/s and c/s in place of h and c, over s^n; in closed
    form h e^(-q²/2) He_n(q) (h² + s²)^(-(n+1)/2) / √n! with q = c/√(h² + s²). It may be negative.

    Parameters
    ----------
    X : array of shape (n, d)
        Points; d small, for there are 1 + d + ... + d^degree features.
    degree : int
        The highest tensor power.

    Returns
    -------
    array whose inner products of rows tend to `gaussian_kernel` as the degree grows.

    Examples
    --------
    >>> from rflaf.theory import feature_map, gaussian_kernel
    >>> x = np.array([[0.6, 0.8], [1.0, 0.0]])
    >>> phi = feature_map(x, 12, center=0.5, width=2.0)
    >>> bool(abs(phi @ phi.T - gaussian_kernel(x, center=0.5, width=2.0)).max() < 1e-9)
    True
    """
    X, _ = check_points(X, None)
    size = sum(X.shape[1] ** n for n in range(degree + 1))
    if size * len(X) > MAX_FEATURES:
        raise ValueError(
            f"The 'degree' parameter of feature_map gives {size} features for {X.shape[1]} "
            f"columns and {len(X)} rows. Expected at most {MAX_FEATURES} numbers in all."
        )
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    power, parts = np.ones((len(X), 1)), []
    for weight in _feature_weights(degree + 1, norms, float(center), float(width)):
        parts.append(weight[:, None] * power)
        power = np.einsum("ni,nj->nij", power, X).reshape(len(X), -1)
    return np.hstack(parts)


def _feature_weights(n_terms: int, norms: FloatArray, c: float, h: float) -> list[FloatArray]:
    """The factor of x^(⊗n) for points of these norms, for every n."""
    spread = np.hypot(h, norms)
    q = c / spread
    terms = hermite_terms(n_terms, q, 1 / spread, np.log(h / spread) - 0.5 * q * q)
    return [np.ldexp(value, exponent.astype(int)) for value, exponent in terms]


@dataclass(frozen=True)
class TensorSeries:
    """f(x) = sum_n <F_n, x^(⊗n)>, given by finitely many tensors.

    Parameters
    ----------
    tensors : sequence of arrays
        F_0 a number, F_1 a vector of d, F_2 a d × d matrix, and so on.

    Examples
    --------
    >>> from rflaf.theory import TensorSeries
    >>> f = TensorSeries([1.0, [0.0, 2.0], [[0.5, 0.0], [0.0, 0.0]]])
    >>> f([[1.0, 0.0], [0.6, 0.8]])
    array([1.5 , 2.78])
    """

    tensors: Sequence[ArrayLike]

    def __post_init__(self) -> None:
        arrays = [np.asarray(F, dtype=np.float64) for F in self.tensors]
        d = arrays[1].shape[0] if len(arrays) > 1 and arrays[1].ndim else 0
        for n, F in enumerate(arrays):
            if F.shape != (d,) * n or not np.isfinite(F).all():
                raise ValueError(
                    f"The 'tensors' parameter of TensorSeries must hold finite tensors of order "
                    f"0, 1, 2, ... over one dimension. Got shape {F.shape} at order {n}."
                )
        object.__setattr__(self, "tensors", tuple(arrays))

    def __call__(self, X: ArrayLike) -> FloatArray:
        """f at the rows of X."""
        X, _ = check_points(X, None)
        total = np.zeros(len(X))
        for F in self.tensors:
            value = np.broadcast_to(np.asarray(F), (len(X), *np.shape(F)))
            while value.ndim > 1:
                value = np.einsum("n...i,ni->n...", value, X)
            total += value
        return total

    def symmetric_norms(self) -> FloatArray:
        """The squared Frobenius norm of the symmetric part of every F_n.

        Only that part enters f, and it is the shortest tensor that gives the same function.
        """
        return np.array([np.sum(_symmetric_part(np.asarray(F)) ** 2) for F in self.tensors])


def _symmetric_part(F: FloatArray) -> FloatArray:
    """The mean over all orders of the axes, one axis inserted at every place in turn."""
    for k in range(2, F.ndim + 1):
        F = np.mean([np.moveaxis(F, k - 1, i) for i in range(k)], axis=0)
    return F


@dataclass(frozen=True)
class RepresentedClass:
    """The functions H_{c,h} that one Gaussian activation can represent on the unit sphere.

    f belongs to it where D_{c,h}(f) is finite (corollary 3.3): where no F_n is left at an order
    whose R_n(p) is zero. For c = 0 that is every odd order.

    Examples
    --------
    >>> from rflaf.theory import RepresentedClass, TensorSeries
    >>> odd = TensorSeries([0.0, [1.0, 0.0]])
    >>> odd in RepresentedClass(center=0.0, width=1.0), odd in RepresentedClass(1.0, 1.0)
    (False, True)
    """

    center: float
    width: float

    def __post_init__(self) -> None:
        check_parameters("RepresentedClass", {"center": REAL, "width": POSITIVE}, vars(self))

    def norm_bound(self, f: TensorSeries) -> float:
        """D_{c,h}(f), a bound for E[v(w)²]; see `rkhs_norm_bound`."""
        return rkhs_norm_bound(f, center=self.center, width=self.width)

    def __contains__(self, f: TensorSeries) -> bool:
        return bool(np.isfinite(self.norm_bound(f)))


@checked(f=[TensorSeries], center=REAL, width=POSITIVE)
def rkhs_norm_bound(f: TensorSeries, *, center: float, width: float) -> float:
    """D_{c,h}(f) = sum_n |F_n|² / t_n, a bound for the squared norm of f (corollary 3.3).

    There is a v with f(x) = E[B(w·x) v(w)] on the unit sphere and E[v(w)²] <= D_{c,h}(f). A term
    with F_n = 0 counts as 0, whatever t_n is; with F_n ≠ 0 and t_n = 0 the answer is infinite.
    F_n is represented by its symmetric part, the shortest tensor with the same values.

    Examples
    --------
    >>> from rflaf.theory import TensorSeries, rkhs_norm_bound
    >>> round(rkhs_norm_bound(TensorSeries([1.0]), center=0.0, width=1.0), 10)
    2.0
    """
    squares = f.symmetric_norms()
    log_t = _log_taylor(len(squares), float(center), float(width))
    used = squares > 0
    with np.errstate(over="ignore", divide="ignore"):
        return float(np.sum(np.exp(np.log(squares[used]) - log_t[used])))


def _log_taylor(n_terms: int, c: float, h: float) -> FloatArray:
    """log t_n, where t_n itself may be too small for a float; -inf where it is zero."""
    x = np.array(c / np.sqrt(1 + h * h))
    tiny = 1e-14  # at a zero of He_n the result is a rounding error of its neighbours' size
    logs = np.empty(n_terms)
    with np.errstate(divide="ignore"):
        for n, (value, exponent) in enumerate(hermite_terms(n_terms, x)):
            size = np.abs(value)
            logs[n] = 2 * (np.log(np.where(size > tiny, size, 0.0)) + exponent * np.log(2.0))
    orders = np.arange(n_terms)
    return 2 * np.log(h) - float(x) ** 2 - (orders + 1) * log1p(h * h) + logs
