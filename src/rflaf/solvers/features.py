"""The features of a random layer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rflaf import fused
from rflaf.arrays import Array
from rflaf.fused import BinnedMatrix, for_each
from rflaf.solvers.linalg import factorise, whiten

_FEW = 100  # rows whose span is found by singular values
_TILE, _FEW_INPUTS = 8, 32  # rows of a product with up to so many inputs, as for predictions
_SHARED = 1 << 20  # elements of Z from which on threads share a product


class FeatureOverflow(ValueError):
    """Features, or sums of their products, are not finite."""


def check_finite(number: float) -> None:
    """Raise where features have overflowed on the way into a sum."""
    if not np.isfinite(number):
        raise FeatureOverflow(
            "The features overflow: the activation is too large on some rows, as high powers are. "
            "Use activation='chebyshev' in place of 'polynomial', or fewer powers (n_basis=6)."
        )


def apply_metric(metric: Array, projection: Array) -> Array:
    """L W for a full, diagonal or scalar L."""
    if np.ndim(metric) == 2:
        return np.asarray(metric @ projection)
    return np.asarray(np.reshape(metric, (-1, 1)) * projection)


class Workspace:
    """Arrays that are used again and again.

    The memory of large arrays comes fresh from the system each time, page by page, and two threads
    that ask for it at once wait for each other longer than the work takes.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: Any) -> Array:
        """An array with anything in it; another of the same name has the same memory."""
        size = shape[0] * shape[1]
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = np.empty(size, dtype)
        return buffer[:size].reshape(shape)


@dataclass(frozen=True)
class Projected:
    """Inputs whose Z is known, n × M, because nothing in it is learned."""

    z: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.z.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.z.dtype

    def at(self, rows: Array, columns: Array | None) -> Projected:
        """Some rows, for some columns of W or all."""
        some = np.take(self.z, rows, axis=0)
        return Projected(some if columns is None else np.take(some, columns, axis=1))


def project(x: Any, w: Array, out: Array | None = None) -> Array:
    """Z = X W for any kind of X, into `out` where it is given; known Z is taken as it is."""
    if isinstance(x, Projected):
        if out is None:
            return x.z.copy()
        np.copyto(out, x.z)
        return out
    if isinstance(x, BinnedMatrix):
        return x.project(x.tables(w), out)
    if sparse.issparse(x):
        return np.asarray(x @ w)
    z = np.empty((len(x), w.shape[1]), np.result_type(x, w)) if out is None else out

    def task(rows: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # the sums over features tell
            np.matmul(x[rows], w, out=z[rows])

    for_each(task, _halves(len(x), z.size))
    return z


class Projector:
    """`project` for one W and rows of one kind, with all that does not depend on them done once.

    With few inputs a row's Z does not depend on the rows beside it: BLAS, which may round by their
    number, always gets as many.
    """

    def __init__(self, w: Array) -> None:
        self.w = np.ascontiguousarray(w)
        self._tables: Any = None

    def __call__(self, x: Any) -> Array:
        if isinstance(x, BinnedMatrix):
            if self._tables is None:
                self._tables = x.tables(self.w)
            return x.project(self._tables)
        if sparse.issparse(x) or x.shape[1] > _FEW_INPUTS:
            return project(x, self.w)
        tiles = np.zeros((-(-len(x) // _TILE), _TILE, x.shape[1]), x.dtype)
        tiles.reshape(-1, x.shape[1])[: len(x)] = x
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(tiles, self.w).reshape(-1, self.w.shape[1])[: len(x)]


def pull_back(x: Any, slopes: Array) -> Array:
    """X' slopes, for any kind of X."""
    if isinstance(x, BinnedMatrix):
        return x.pull_back(slopes)
    if sparse.issparse(x):
        return np.asarray(x.T @ slopes)
    out = np.empty((x.shape[1], slopes.shape[1]), np.result_type(x, slopes))

    def task(columns: slice) -> None:
        np.matmul(x.T, slopes[:, columns], out=out[:, columns])

    for_each(task, _halves(slopes.shape[1], slopes.size))
    return out


def _halves(n: int, elements: int) -> list[slice]:
    """Ranges for threads to share, where there is enough to do; by the numbers alone."""
    cut = n // 2 if elements >= _SHARED else n
    return [slice(a, b) for a, b in ((0, cut), (cut, n)) if b > a]


def as_array(x: Any) -> Array:
    """The numbers of any kind of X, for a few rows."""
    return x.toarray() if sparse.issparse(x) or isinstance(x, BinnedMatrix) else x


def features(
    sigma: fused.Sigma, z: Array, constant: float = 1.0, out: Array | None = None
) -> Array:
    """sigma(Z), and behind it a column of `constant`: ones for an intercept, zeros for none."""
    phi = np.empty((z.shape[0], z.shape[1] + 1), z.dtype) if out is None else out
    phi[:, -1] = constant
    fused.apply(sigma, z, out=phi[:, :-1])
    return phi


def row_rotation(phi: Array) -> Array:
    """An orthonormal basis of the span of rows phi, M × n, where they are fewer than features.

    The solutions of ridge and logistic regressions on these rows lie in it, so that n unknowns do.
    """
    exact = phi.astype(np.float64)
    if len(phi) <= _FEW:  # a floor below would be seen in the last digits
        right = np.linalg.svd(exact, full_matrices=False)[2]
        return np.ascontiguousarray(right.T.astype(phi.dtype))
    gram = exact @ exact.T
    factor = factorise(gram, 1e-10 * float(np.trace(gram)) / len(gram) + 1e-30)
    return np.ascontiguousarray(whiten(factor, exact).T.astype(phi.dtype))


def rotated(phi: Array, rotation: Array | None) -> Array:
    """Features in the span of `row_rotation`, and the constant behind them; None: as they are."""
    if rotation is None:
        return phi
    return np.hstack([phi[:, :-1] @ rotation.astype(phi.dtype), phi[:, -1:]])


def unrotated(v: Array, rotation: Array | None) -> Array:
    """Output weights, intercept last, of the features themselves, from those in the span."""
    if rotation is None:
        return v
    return np.vstack([rotation.astype(np.float64) @ v[:-1], v[-1:]])


class KeptBlocks:
    """What was made of blocks of rows, kept from the first time on while there is room.

    In another process nothing is kept: it would be kept for one call only.
    """

    def __init__(self, room: int) -> None:
        self._room = max(room, 0)
        self._found: dict[int, Any] = {}
        self._lock = threading.Lock()

    def get(self, number: int, size: int, make: Callable[[], Any]) -> Any:
        """What `make` gives for block `number`, of `size` bytes; None where there is no room."""
        with self._lock:
            if number not in self._found:
                if size > self._room:
                    return None
                self._found[number] = make()
                self._room -= size
            return self._found[number]

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptBlocks, (0,)
