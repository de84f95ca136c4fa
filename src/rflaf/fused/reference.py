"""The specification of the kernels, in plain NumPy and float64, a few lines each.

Functions have the names and arguments of those that they specify, but return all results where
those fill arrays that they are given. The tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline

from rflaf.fused.chunks import Upstream, as_columns
from rflaf.fused.table import Array, Float64, Sigma

if TYPE_CHECKING:
    from rflaf.fused.binned import Bins
    from rflaf.fused.channel_tables import Tables
    from rflaf.fused.part_models import PartModels, PartRows
    from rflaf.fused.products import Loss


# ---- cpu ----------------------------------------------------------------------------------------


def apply(sigma: Sigma, z: Array) -> Array:
    """sigma(z), for an array of any shape."""
    return sigma.basis.combine(sigma.coefficients, np.asarray(z, np.float64))


def slope(sigma: Sigma, z: Array, upstream: Upstream) -> Array:
    """sigma'(z) times the upstream matrix, element by element: the gradient in z."""
    slopes = sigma.basis.combine(sigma.coefficients, np.asarray(z, np.float64), 1)
    return np.asarray(slopes * dense_upstream(upstream))


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


def dense_upstream(upstream: Upstream) -> Array:
    if isinstance(upstream, tuple):
        left, right = (as_columns(np.asarray(part, np.float64)) for part in upstream)
        return np.asarray(left @ right.T)
    return np.asarray(upstream, np.float64)


# ---- products -----------------------------------------------------------------------------------


def times(phi: Array, v: Array) -> Float64:
    """Phi V."""
    return np.asarray(phi, np.float64) @ np.asarray(v, np.float64)


def slopes(phi: Array, v: Array, loss: Loss) -> tuple[float, Float64]:
    """The loss of the scores Phi V, and its gradient for V."""
    total, gradient = loss(times(phi, v), slice(0, len(phi)))
    return total, times(np.transpose(phi), gradient)


def quotients(here: Sequence[Array], there: Sequence[Array], near: float) -> Float64:
    """Differences of sigma over those of z, M × n × K; the mean slope where z differ little."""
    left, right = (np.asarray(each, np.float64) for each in (here, there))
    apart, rise, _ = left[..., None] - right[:, :, None]
    mean = (left[2, ..., None] + right[2, :, None]) / 2
    return np.divide(rise, apart, out=mean, where=np.abs(apart) >= near)


def interpolated(tables: Array, place: Array, v: Array) -> tuple[Float64, Float64]:
    """Sums over m of v_mc g_m(place), and the last number of g_m: cubics through four nodes."""
    node = np.clip(place.astype(int), 1, tables.shape[1] - 3)
    t, feature = place.astype(np.float64) - node, np.arange(len(place))[:, None]
    found: Any = 0.0
    for near in range(-1, 3):
        others = [k for k in range(-1, 3) if k != near]
        factor = np.prod([(t - k) / (near - k) for k in others], axis=0)
        found = found + factor[..., None] * tables[feature, node + near]
    return np.einsum("mnk,mc->nck", found, v), found[..., -1]


# ---- held_out -----------------------------------------------------------------------------------


class HeldOutGradients(NamedTuple):
    loss: float
    coefficients: Float64
    log_alpha: float
    z_fit: Array
    z_held: Array


def held_out(
    sigma: Sigma,
    z_fit: Array,
    y_fit: Array,
    share_fit: Array,
    z_held: Array,
    y_held: Array,
    share_held: Array,
    alpha: float,
    constant: float,
) -> HeldOutGradients:
    """The error of a ridge solution on rows that it has not seen, and its gradients.

    T are the rows to fit to, and H those to judge by, with shares D that sum to one. The features
    are Phi = sigma(Z) and a last column of `constant`, which has no penalty:

        A = Phi_T' D_T Phi_T + alpha,   A V = Phi_T' D_T y_T,   R = Phi_H V - y_H,
        J = |D_H^½ R|² / C,   G = (2 / C) D_H R,   A Q = Phi_H' G,

    The gradients of J are

        dJ/dPhi_H = G V',   dJ/dPhi_T = D_T ((y_T - Phi_T V) Q' - (Phi_T Q) V'),
        dJ/dalpha = -sum of Q ∘ V.
    """
    phi_fit, phi_held = (
        np.column_stack([apply(sigma, z), np.full(len(z), constant)]) for z in (z_fit, z_held)
    )
    weights_fit, weights_held = share_fit[:, None], share_held[:, None] / y_held.shape[1]
    gram = phi_fit.T @ (weights_fit * phi_fit)
    floor = 1e-9 * np.trace(gram) / len(gram) + 1e-30  # regular without a penalty, too
    diagonal = np.full(len(gram), max(alpha, floor))
    diagonal[-1] = floor
    system = gram + np.diag(diagonal)

    v = np.linalg.solve(system, phi_fit.T @ (weights_fit * y_fit))
    error = phi_held @ v - y_held
    pull = 2 * weights_held * error
    q = np.linalg.solve(system, phi_held.T @ pull)

    by_residual = (weights_fit * (y_fit - phi_fit @ v)) @ q[:-1].T
    by_fit = by_residual - (weights_fit * (phi_fit @ q)) @ v[:-1].T
    by_held = pull @ v[:-1].T
    return HeldOutGradients(
        float(np.sum(weights_held * error**2)),
        adjoint(sigma, z_fit, by_fit) + adjoint(sigma, z_held, by_held),
        -alpha * float(np.sum(q[:-1] * v[:-1])),
        slope(sigma, z_fit, by_fit),
        slope(sigma, z_held, by_held),
    )


# ---- binned -------------------------------------------------------------------------------------


def binned_matrix(bins: Bins, x: Array, plain: Array) -> Float64:
    """The matrix of rows in bins, of which `BinnedMatrix` has products: `plain`, then every bin."""
    found = []
    for k, column in enumerate(bins.columns):
        edges = bins.edges[bins.starts[k] : bins.starts[k + 1]]
        found += [np.clip((x[:, column] - a) / (b - a), 0, 1) for a, b in pairwise(edges)]
    return np.column_stack([plain, (np.column_stack(found) - bins.mean) / bins.scale])


# ---- tables per channel -------------------------------------------------------------------------


def locate(tables: Tables, z: Array) -> tuple[Array, Float64]:
    """The row of the table that every element belongs to, and its place t in that cell."""
    low, high, inverse, inverse_rest, whole, rest, _, _, last = tables.frame.astype(np.float64)
    held = np.clip(np.asarray(z, np.float64), low, high)
    position = held * (inverse + inverse_rest) + (whole + rest)
    row = np.clip(np.floor(np.nan_to_num(position)), 0, last).astype(int)
    return row, position - row


def apply_tables(tables: Tables, z: Array) -> Float64:
    """sigma_c(z) of every channel, for z of outer × C × inner."""
    row, t = locate(tables, z)
    channel = np.arange(z.shape[1])[:, None]
    return np.asarray(np.sum(tables.cells[channel, row] * t[..., None] ** np.arange(4), axis=-1))


def cell_sums(tables: Tables, z: Array, upstream: Array) -> tuple[Float64, Float64]:
    """The sums of g, gt, gt², gt³ over the cells of every channel, and g sigma_c'(z)."""
    row, t = locate(tables, z)
    channel = np.broadcast_to(np.arange(z.shape[1])[:, None], z.shape)
    sums = np.zeros(tables.cells.shape)
    g = np.asarray(upstream, np.float64)
    np.add.at(sums, (channel, row), g[..., None] * t[..., None] ** np.arange(4))
    _, c1, c2, c3 = np.moveaxis(tables.cells[channel, row].astype(np.float64), -1, 0)
    return sums, g * (c1 + 2 * c2 * t + 3 * c3 * t**2) * tables.frame[2]


def readout_tables(tables: Tables, z: Array, order: Array, v: Array) -> tuple[Float64, Float64]:
    """sigma(Z) V of the rows of z that `order` names, and sigma(Z)."""
    phi = apply_tables(tables, z[order][:, None])[:, 0]
    return phi @ as_columns(v), phi


def readout_sums(
    tables: Tables, z: Array, order: Array, v: Array, upstream: Array
) -> tuple[Float64, Float64]:
    """`cell_sums` for the gradient of sigma(Z) V, whose own is `upstream`."""
    sums, dz = cell_sums(tables, z[order][:, None], dense_upstream((upstream, v))[:, None])
    return sums, dz[:, 0]


# ---- spline_sums --------------------------------------------------------------------------------


def combine_splines(x: Array, low: float, spacing: float, pieces: Array, c: Array) -> Float64:
    """y_rj = sum over i, k of B_k(x_ri) c_ikj; arguments as in `rflaf.fused.combine_splines`."""
    return np.asarray(np.einsum("rik,ikj->rj", _splines(x, low, spacing, pieces, c, 0), c))


def spline_gradients(
    x: Array, low: float, spacing: float, pieces: Array, c: Array, g: Array
) -> tuple[Float64, Float64]:
    """The gradients for x and c, with that for y given."""
    values, derivatives = (_splines(x, low, spacing, pieces, c, order) for order in (0, 1))
    dx = np.einsum("rik,ikj,rj->ri", derivatives, c, g, optimize=True) / spacing
    return dx, np.einsum("rik,rj->ikj", values, g)


def _splines(x: Array, low: float, spacing: float, pieces: Array, c: Array, order: int) -> Float64:
    """The splines at each x, n × in × N, or their derivatives; zero outside their knots."""
    degree = len(pieces) - 1
    spline = BSpline.basis_element(np.arange(degree + 2.0), extrapolate=False)
    place = (np.asarray(x, np.float64)[..., None] - low) / spacing + degree - np.arange(c.shape[1])
    found = spline(place) if order == 0 else spline.derivative()(place)
    return np.where(np.isnan(found) & ~np.isnan(place), 0.0, found)


# ---- part_models --------------------------------------------------------------------------------


def part_scores(partitions: PartModels, sigma: Sigma, z: Array) -> Float64:
    """sum over partitions t and parts p of share_ntp (phi_nt · v_tp + b_tp), n × C."""
    phi, v = _apart(partitions, apply(sigma, z)), partitions.coef
    share = np.prod(_sides(partitions, z)[0], axis=0)
    scores = np.einsum("ntp,ntm,tpcm->nc", share, phi, v[..., :-1], optimize=True)
    return np.asarray(scores + np.einsum("ntp,tpc->nc", share, v[..., -1]))


def fit_parts(parts: PartRows, phi: Array, target: Float64, penalties: Float64) -> Float64:
    """Ridge solutions of each part for each penalty, parts × penalties × C × w."""
    found = np.zeros((len(parts.ends), len(penalties), target.shape[1], phi.shape[1]))
    for part, end in enumerate(parts.ends):
        at = slice(parts.ends[part - 1] if part else 0, end)
        shared, y = (parts.root[at, None] * each[parts.rows[at]] for each in (phi, target))
        for k, alpha in enumerate(penalties):
            gram = shared.T.astype(np.float64) @ shared + alpha * np.eye(phi.shape[1])
            found[part, k] = np.linalg.solve(gram, shared.T @ y).T
    return found


def part_slopes(
    partitions: PartModels, sigma: Sigma, z: Array, end: Array | None = None, steps: int = 1
) -> Float64:
    """The slope of the scores in Z, n × C × T m; with an `end`, its mean over `steps` to there."""
    step = np.zeros(z.shape) if end is None else (end.astype(np.float64) - z) / steps
    middles = [z + (k + 0.5) * step for k in range(steps)]
    return np.mean([_part_slopes(partitions, sigma, each, step) for each in middles], axis=0)


def _part_slopes(partitions: PartModels, sigma: Sigma, z: Array, step: Array) -> Float64:
    before, after = (_sides(partitions, z + sign * step / 2)[0] for sign in (-1, 1))
    sides, slopes = (before + after) / 2, _sides(partitions, z)[1]
    steep, v = _apart(partitions, slope(sigma, z, np.ones(z.shape))), partitions.coef
    share = np.prod(sides, axis=0)
    found = np.einsum("ntp,ntm,tpcm->nctm", share, steep, v[..., :-1], optimize=True)
    phi = _apart(partitions, apply(sigma, z))
    inner = np.einsum("ntm,tpcm->nctp", phi, v[..., :-1]) + np.moveaxis(v[..., -1], 2, 0)
    for level in range(len(sides)):
        way = np.broadcast_to(_apart(partitions, step)[:, :, [level]], share.shape)
        turned = np.divide(after[level] - before[level], way, out=slopes[level], where=way != 0)
        others = np.prod(np.delete(sides, level, axis=0), axis=0)
        found[..., level] += np.einsum("ntp,nctp->nct", turned * others, inner)
    return found.reshape(len(z), v.shape[2], z.shape[1])


def _apart(partitions: PartModels, matrix: Array) -> Float64:
    trees = len(partitions.cuts)
    return matrix.astype(np.float64).reshape(len(matrix), trees, matrix.shape[1] // trees)


def _sides(partitions: PartModels, z: Array) -> tuple[Float64, Float64]:
    """The share that the cut of each level leaves each part, D × n × T × 2^D, and its slope."""
    cuts, widths, coef = partitions
    parts, depth = np.arange(coef.shape[1]), coef.shape[1].bit_length() - 1
    sides, slopes = np.zeros((2, depth, len(z), *coef.shape[:2]))
    for level in range(depth):
        node, upper = 2**level - 1 + (parts >> depth - level), parts >> depth - 1 - level & 1
        place = (_apart(partitions, z)[:, :, [level]] - cuts[:, node]) / widths[:, node]
        at = np.clip(np.nan_to_num(place, nan=0.0), -1, 1) / 2 + 0.5
        share = at**2 * (3 - 2 * at)
        sides[level] = np.where(upper, share, 1 - share)
        slopes[level] = (2 * upper - 1) * 3 * at * (1 - at) / widths[:, node]
    return sides, slopes


# ---- powers -------------------------------------------------------------------------------------


def evaluate_powers(z: Array, coefficients: Array) -> Float64:
    """sum_i coefficients_i z^i."""
    return np.vander(np.asarray(z, np.float64), len(coefficients), increasing=True) @ coefficients


def adjoint_powers(z: Array, weights: Array, n: int) -> Float64:
    """sum over z of weights z^i, for i = 0, …, n - 1."""
    return np.asarray(weights @ np.vander(np.asarray(z, np.float64), n, increasing=True))
