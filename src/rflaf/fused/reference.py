"""The specification of the kernels, in plain NumPy and float64, a few lines each.

`cpu` has the same functions with the same arguments; the tests compare the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rflaf.fused.chunks import as_columns
from rflaf.fused.table import Array, Float64, Sigma

Upstream = Any  # an n × M array, or its factors (R, V): R is n × C, V is M × C


def apply(sigma: Sigma, z: Array, out: Array | None = None) -> Array:
    """sigma(z), for an array of any shape."""
    values = sigma.basis.combine(sigma.coefficients, np.asarray(z, np.float64))
    if out is None:
        return values
    out[...] = values
    return out


def slope(sigma: Sigma, z: Array, upstream: Upstream, out: Array | None = None) -> Array:
    """sigma'(z) times the upstream matrix, element by element: the gradient in z."""
    slopes = sigma.basis.combine(sigma.coefficients, np.asarray(z, np.float64), 1)
    values = slopes * dense_upstream(upstream)
    if out is None:
        return values
    out[...] = values
    return out


def predict(sigma: Sigma, z: Array, v: Array) -> Array:
    """sigma(Z) V."""
    return apply(sigma, z) @ np.asarray(v, np.float64)


def predict_inputs(sigma: Sigma, x: Any, w: Array, v: Array) -> Array:
    """sigma(X W) V; X may be sparse."""
    return predict(sigma, np.asarray(x @ np.asarray(w, np.float64)), v)


def adjoint(sigma: Sigma, z: Array, upstream: Upstream) -> Float64:
    """sum over n, m of G_nm B_i(z_nm): the gradient for the N coefficients."""
    values = sigma.basis(np.asarray(z, np.float64))
    return np.asarray(np.einsum("nmi,nm->i", values, dense_upstream(upstream)))


def readout_gradient(
    sigma: Sigma, z: Array, v: Array, upstream: Array, need_z: bool = False
) -> tuple[Float64, Array, Array | None]:
    """The gradients of sigma(Z) V for the coefficients, V and, if `need_z`, Z."""
    dz = slope(sigma, z, (upstream, v)) if need_z else None
    return adjoint(sigma, z, (upstream, v)), apply(sigma, z).T @ upstream, dz


def row_moments(sigma: Sigma, z: Array, v: Array) -> Float64:
    """sum over m of v_m B_i(z_nm), n × N: the design matrix of the coefficients for a fixed v."""
    return np.asarray(np.einsum("nmi,m->ni", sigma.basis(np.asarray(z, np.float64)), v))


def dense_upstream(upstream: Upstream) -> Array:
    if isinstance(upstream, tuple):
        left, right = (as_columns(np.asarray(part, np.float64)) for part in upstream)
        return np.asarray(left @ right.T)
    return np.asarray(upstream, np.float64)
