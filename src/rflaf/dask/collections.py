"""Dask collections as lists of partitions that fit together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask import array as da


@dataclass(frozen=True)
class Partitions:
    """Partitions of inputs, targets and weights, not yet computed, and what is known of them."""

    parts: list[Any]  # delayed tuples (X, y, weight) or (X, y), or (X,)
    rows: list[int] | None  # of each, where known without looking
    like: Any  # inputs with the same columns, without rows


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or frame."""
    return dask.is_dask_collection(X) and hasattr(X, "to_delayed")


def partition(X: Any, y: Any = None, weight: Any = None) -> Partitions:
    """The partitions of X, with those of y and weight that have the same rows."""
    if not is_dask(X) or X.ndim != 2:
        raise TypeError(
            "The 'X' parameter must be a Dask array or frame with two dimensions. "
            f"Got {type(X).__name__} instead."
        )
    if isinstance(X, da.Array) and X.numblocks[1] != 1:
        X = X.rechunk({1: -1})
    chunks = _known_rows(X)
    columns = [X.to_delayed().ravel() if isinstance(X, da.Array) else X.to_delayed()]
    for name, other in (("y", y), ("sample_weight", weight)):
        if other is not None:
            columns.append(_beside(name, other, chunks, len(columns[0])))
    parts = [dask.delayed(tuple)(list(row)) for row in zip(*columns)]
    like = np.zeros((0, X.shape[1]), X.dtype) if isinstance(X, da.Array) else X._meta
    return Partitions(parts, chunks, like)


def _known_rows(X: Any) -> list[int] | None:
    if not isinstance(X, da.Array) or np.isnan(X.chunks[0]).any():
        return None
    return [int(rows) for rows in X.chunks[0]]


def _beside(name: str, other: Any, chunks: list[int] | None, count: int) -> Any:
    """The partitions of `other`, cut as those of X are where both are known."""
    if not is_dask(other):
        raise TypeError(
            f"The '{name}' parameter must be a Dask array or frame, as 'X' is. "
            f"Got {type(other).__name__} instead."
        )
    if isinstance(other, da.Array):
        wanted = dict.fromkeys(range(1, other.ndim), -1)
        known = _known_rows(other)
        if known is not None and chunks is not None and known != chunks:
            if sum(known) != sum(chunks):
                raise ValueError(
                    f"'{name}' must have {sum(chunks)} rows, as 'X' has. Got {sum(known)}."
                )
            wanted[0] = tuple(chunks)  # type: ignore[assignment]
        parts = (other.rechunk(wanted) if wanted else other).to_delayed().ravel()
    else:
        parts = other.to_delayed()
    if len(parts) != count:
        raise ValueError(
            f"'{name}' must have {count} partitions, as 'X' has. Got {len(parts)}. If chunk sizes "
            "are unknown, call 'compute_chunk_sizes' first."
        )
    return parts
