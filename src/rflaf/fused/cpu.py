"""The kernels of `reference`, compiled and threaded: same functions, same arguments.

Tables run through the loops in `jit`; activations without a table run through NumPy on blocks of
rows. Neither makes an n × M × N array, nor, but for its result, an n × M one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rflaf.fused import binned
from rflaf.fused.blas import addresses
from rflaf.fused.chunks import (
    Chunks,
    Upstream,
    UpstreamChunks,
    as_columns,
    flat,
    for_all_rows,
    for_each,
    has_flat_rows,
    split_rows,
)
from rflaf.fused.table import Array, Direct, Float64, Sigma, Table
from rflaf.runtime.threads import parallel

_CHUNK = 1 << 15  # elements: about 20 microseconds of work, and a block that fits the cache
_LONG_ROW = 64  # columns from which on the kernel takes row by row
_DIRECT_CHUNK = 1 << 16  # larger, because NumPy's calls cost more than a kernel's
_SPREAD_CHUNK = 3 << 15  # larger, because each has sums of its own,
_MAX_SPREAD_CHUNKS = 64  # and no more of them than this
_PRODUCT_BLOCK = 1 << 20  # elements of a block that goes through a matrix product
_FEWEST_ROWS = 64  # at least, that a thread takes at once
_FUSED_INPUTS = 32  # up to which projecting inside the kernel beats a matrix product
_FUSED_OUTPUTS = 16  # up to which the kernel's own dot product beats one


def apply(sigma: Sigma, z: Any, out: Array | None = None) -> Array:
    """sigma(z), for an array of any shape, into `out` where it is given (it may be z itself)."""
    z = _as_float(z)
    result = _new_or_checked(out, z)
    if z.ndim == 2 and z.shape[1] >= _LONG_ROW and has_flat_rows(result):
        _apply_matrix(sigma, z, result)
    elif result.flags.c_contiguous:
        source, target = np.ascontiguousarray(z).reshape(-1), result.reshape(-1)
        whole = source.size // 8192 * 8192  # in rows of 8192; then the rest
        if whole:
            shape = (-1, 8192)
            _apply_matrix(sigma, source[:whole].reshape(shape), target[:whole].reshape(shape))
        if whole < source.size:
            _apply_matrix(sigma, source[None, whole:], target[None, whole:])
    else:
        result[...] = apply(sigma, z)
    return result


def slope(sigma: Sigma, z: Any, upstream: Upstream, out: Array | None = None) -> Array:
    """sigma'(z) times the upstream matrix, element by element: the gradient in z."""
    z = _as_matrix(z)
    result = _new_or_checked(out, z)
    if not has_flat_rows(result):
        result[...] = slope(sigma, z, upstream)
        return result
    g_rows = UpstreamChunks(upstream, z.shape, z.dtype)
    if isinstance(sigma, Direct):

        def task(rows: slice) -> None:
            slopes = sigma.basis.combine(sigma.coefficients, z[rows], 1)
            np.multiply(slopes, g_rows.block(rows), out=result[rows])

        for_each(task, split_rows(z.shape, _CHUNK))
    else:
        from rflaf.fused.jit import backward_rows

        source, target = Chunks(z), Chunks(result, writeable=True)
        table = sigma.in_dtype(z.dtype)

        def task(rows: slice) -> None:
            given = *source[rows], z.shape[1], *table, *g_rows[rows]
            backward_rows(*given, None, None, *target[rows], rows.stop - rows.start)

        for_all_rows(task, z.shape, _CHUNK)
    return result


def predict(sigma: Sigma, z: Any, v: Any) -> Array:
    """sigma(Z) V, without storing sigma(Z)."""
    z = _as_matrix(z)
    v, right, out = _prepare_outputs(v, z.shape, z.dtype)
    if isinstance(sigma, Table) and 0 < right.shape[0] <= _FUSED_OUTPUTS:
        from rflaf.fused.jit import predict_rows

        source, table, v_rows = Chunks(z), sigma.in_dtype(z.dtype), flat(right)

        def task(rows: slice) -> None:
            n = rows.stop - rows.start
            predict_rows(*source[rows], z.shape[1], *table, v_rows, out[rows], n)

        for_all_rows(task, z.shape, _CHUNK)
    else:
        for rows in split_rows(z.shape, _PRODUCT_BLOCK):
            np.matmul(apply(sigma, z[rows]), right.T, out=out[rows])
    return out[:, 0] if v.ndim == 1 else out


def predict_inputs(sigma: Sigma, x: Any, w: Any, v: Any) -> Array:
    """sigma(X W) V from the inputs, which may be sparse, without storing X W."""
    x = x if sparse.issparse(x) else _as_matrix(x, "x")
    w = np.asarray(w, _float_type(x.dtype))
    if w.ndim != 2 or w.shape[0] != x.shape[1]:
        raise ValueError(
            f"'w' must have {x.shape[1]} rows, one for each column of 'x'. Got shape {w.shape}."
        )
    out = Readout(sigma, w, v)(x)
    return out[:, 0] if np.ndim(v) == 1 else out


class Readout:
    """`predict_inputs` for one sigma, W and V, with all that does not depend on X done before.

    For a few rows that takes longer than the work itself.
    """

    def __init__(self, sigma: Sigma, w: Array, v: Array) -> None:
        self._sigma, self._v = sigma, v
        self._w = np.ascontiguousarray(w, _float_type(w.dtype))
        _, self._right, _ = _prepare_outputs(v, (0, w.shape[1]), self._w.dtype)
        self._rows: tuple[Any, ...] = ()
        small = w.shape[0] <= _FUSED_INPUTS and 0 < len(self._right) <= _FUSED_OUTPUTS
        if isinstance(sigma, Table) and small:
            table = sigma.in_dtype(self._w.dtype)
            self._rows = flat(self._w), w.shape[1], *table, flat(self._right)
        self._tables: binned.BinTables | None = None

    def __call__(self, x: Any) -> Array:
        """sigma(X W) V, n × C, for dense or sparse X or one in bins, always the same bins."""
        if isinstance(x, binned.BinnedMatrix):
            return self._of_bins(x)
        dtype = self._w.dtype
        if type(x) is not np.ndarray or x.dtype != dtype or not x.flags.aligned:
            x = x.tocsr() if sparse.issparse(x) else _as_matrix(x, "x")
            dtype = _float_type(x.dtype)
        if dtype != self._w.dtype:
            return Readout(self._sigma, self._w.astype(dtype), self._v)(x)
        out = np.zeros((x.shape[0], len(self._right)), dtype)
        if self._rows and not sparse.issparse(x):
            self._fill(x, out)
        else:
            for rows in split_rows((len(out), self._w.shape[1]), _PRODUCT_BLOCK):
                z = np.asarray(x[rows] @ self._w, dtype)
                np.matmul(apply(self._sigma, z, out=z), self._right.T, out=out[rows])
        return out

    def _fill(self, x: Array, out: Array) -> None:
        """The kernel's result for all rows; threads have whole tiles of it."""
        from rflaf.fused.jit_predict import ROWS, predict_inputs_rows

        source, blas = Chunks(x), addresses(x.dtype)

        def task(tiles: slice) -> None:
            rows = slice(tiles.start * ROWS, min(tiles.stop * ROWS, len(x)))
            place = *source[rows], x.shape[1]
            predict_inputs_rows(blas, *place, *self._rows, out[rows], rows.stop - rows.start)

        shape = -(-len(x) // ROWS), ROWS * self._w.shape[1]
        if shape[0] * shape[1] <= _CHUNK:  # to ask for helpers would take longer
            task(slice(0, shape[0]))
        else:
            for_all_rows(task, shape, max(_CHUNK, _FEWEST_ROWS * self._w.shape[1]))

    def _of_bins(self, x: binned.BinnedMatrix) -> Array:
        if self._tables is None:
            self._tables = x.tables(self._w)
        tables, v = self._tables, as_columns(self._v)
        out = np.empty((x.shape[0], v.shape[1]), x.dtype)

        def task(rows: slice) -> None:
            out[rows] = predict(self._sigma, x[rows].project(tables), v)

        for_each(task, split_rows((x.shape[0], self._w.shape[1]), binned.CHUNK))
        return out


def adjoint(sigma: Sigma, z: Any, upstream: Upstream) -> Float64:
    """sum over n, m of G_nm B_i(z_nm): the gradient for the N coefficients."""
    z = _as_matrix(z)
    g_rows = UpstreamChunks(upstream, z.shape, z.dtype)
    ranges = split_rows(z.shape, _SPREAD_CHUNK, _MAX_SPREAD_CHUNKS)
    if isinstance(sigma, Direct):
        gradients = np.zeros((len(ranges), sigma.basis.n))

        def task(k: int) -> None:
            for rows in split_rows(z[ranges[k]].shape, _CHUNK):
                at = slice(ranges[k].start + rows.start, ranges[k].start + rows.stop)
                g = g_rows.block(at)
                for i, values in enumerate(sigma.basis.functions(z[at])):
                    gradients[k, i] += np.sum(values * g, dtype=np.float64)

        with np.errstate(invalid="ignore", over="ignore"):
            parallel(task, len(ranges))
        return np.asarray(gradients.sum(axis=0))

    from rflaf.fused.jit import backward_rows

    source, table = Chunks(z), sigma.in_dtype(z.dtype)
    moments = np.zeros((len(ranges), sigma.layout.n_cells + 1, 4))
    tails = np.zeros((len(ranges), 2 if sigma.basis.tail == "linear" else 0))

    def add(k: int) -> None:
        rows = ranges[k]
        given = *source[rows], z.shape[1], *table, *g_rows[rows]
        backward_rows(*given, moments[k], tails[k], None, 0, rows.stop - rows.start)

    parallel(add, len(ranges))
    return sigma.layout.pull_back(moments.sum(axis=0), tails.sum(axis=0))


def cache_folder() -> str:
    """The folder where compiled kernels are kept, or "" where none can be written."""
    from rflaf.fused.jit import apply_rows

    return apply_rows.stats.cache_path or ""


def _apply_matrix(sigma: Sigma, z: Array, out: Array) -> None:
    if isinstance(sigma, Direct):

        def task(rows: slice) -> None:
            out[rows] = sigma.basis.combine(sigma.coefficients, z[rows])

        for_each(task, split_rows(z.shape, _DIRECT_CHUNK))
    else:
        from rflaf.fused.jit import apply_rows

        if sigma.frame[6:8].any() and np.may_share_memory(z, out):
            z = z.copy()  # linear tails look at z again after the cubics
        source, target = Chunks(z), Chunks(out, writeable=True)
        table = sigma.in_dtype(z.dtype)

        def task(rows: slice) -> None:
            n = rows.stop - rows.start
            apply_rows(*source[rows], z.shape[1], *table, *target[rows], n)

        for_all_rows(task, z.shape, _CHUNK)


def _prepare_outputs(
    v: Any, shape: tuple[int, int], dtype: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    v = np.asarray(v, dtype)
    if v.ndim not in (1, 2) or v.shape[0] != shape[1]:
        raise ValueError(
            f"'v' must have {shape[1]} rows, one for each random feature. Got shape {v.shape}."
        )
    right = np.ascontiguousarray(as_columns(v).T)
    return v, right, np.zeros((shape[0], right.shape[0]), dtype)


def _as_float(z: Any, name: str = "z") -> Array:
    array = np.asarray(z)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name!r} must be an array of real numbers. Got dtype {array.dtype}.")
    return np.require(array, _float_type(array.dtype), ["ALIGNED"])


def _float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for float32 of any byte order, else float64."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def _as_matrix(z: Any, name: str = "z") -> Array:
    array = _as_float(z, name)
    if array.ndim != 2:
        raise ValueError(f"{name!r} must be a matrix. Got shape {array.shape}.")
    return array


def _new_or_checked(out: Array | None, z: Array) -> Array:
    if out is None:
        return np.empty(z.shape, z.dtype)
    if out.shape != z.shape or out.dtype != z.dtype or not out.flags.writeable:
        raise ValueError(
            f"'out' must be a writeable array of shape {z.shape} and dtype {z.dtype}. "
            f"Got shape {out.shape}, dtype {out.dtype}."
        )
    return out
