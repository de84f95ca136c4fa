"""What runs on the workers: a partition in, something small out; and how these are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from rflaf import fused
from rflaf.data import Blocks
from rflaf.estimators.classes import ClassTally
from rflaf.estimators.rows import ArrayRows, Block, CheckedRows
from rflaf.estimators.sample import Piece, SampleDraw, smallest
from rflaf.solvers import NormalEquations
from rflaf.solvers.softmax import Rows

Array = NDArray[Any]
_FAN_IN = 8  # results that one task puts together


def tree(parts: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Delayed results, put together by `join` a few at a time, in their order."""
    found = list(parts)
    together = dask.delayed(join, pure=False)
    while len(found) > 1:
        groups = [found[k : k + _FAN_IN] for k in range(0, len(found), _FAN_IN)]
        found = [together(group) if len(group) > 1 else group[0] for group in groups]
    return found[0]


def count_rows(part: tuple[Any, ...]) -> int:
    """How many rows a partition has."""
    return len(part[0])


def checked(model: Any, part: tuple[Any, ...], start: int, rows: int) -> Block | None:
    """A partition as arrays, checked as an estimator checks blocks; None without a row."""
    if len(part[0]) != rows:
        raise ValueError(
            f"A partition had {rows} rows at first, and {len(part[0])} later. Expected the same "
            "rows every time it is computed."
        )
    for name, other in zip(("y", "sample_weight"), part[1:]):
        if len(other) != rows:
            raise ValueError(
                f"A partition of '{name}' must have {rows} rows, as that of 'X' from row {start} "
                f"on has. Got {len(other)}."
            )
    reader = CheckedRows(
        Blocks([part]), model._check_block, model._check_targets, first=False, start=start
    )
    return next(iter(reader.blocks(max(rows, 1))), None)


@dataclass
class Drawn:
    """Rows of the sample from some partitions, and what was counted there."""

    piece: Piece | None
    seen: int
    used: int
    tally: ClassTally | None
    size: int


def draw_rows(
    model: Any, part: tuple[Any, ...], start: int, rows: int, size: int, limit: int, classes: bool
) -> Drawn:
    """The rows of a partition that may be in the sample."""
    block = checked(model, part, start, rows)
    tally = ClassTally() if classes else None
    if block is None:
        return Drawn(None, 0, 0, tally, size)
    if tally is not None:
        tally.add(block.y, block.weights)
    draw = SampleDraw(size, model._seed, limit)
    draw.add(block)
    return Drawn(draw.piece(), draw.seen, draw.used, tally, size)


def merge_drawn(found: list[Drawn]) -> Drawn:
    pieces = [one.piece for one in found if one.piece is not None]
    # a new one: what tasks have given must stay as it is, for it may be needed again
    tally = None if found[0].tally is None else ClassTally()
    for one in found:
        if tally is not None and one.tally is not None and one.tally.classes.size:
            tally.merge(one.tally.classes, one.tally.weights)
    size = found[0].size
    return Drawn(
        smallest(pieces, size) if pieces else None,
        sum(one.seen for one in found),
        sum(one.used for one in found),
        tally,
        size,
    )


def sum_rows(
    model: Any, part: tuple[Any, ...], start: int, rows: int, n: int, outputs: int
) -> list[NormalEquations]:
    """A regressor's sums over a partition, fold by fold; n is the number of rows in all."""
    block = checked(model, part, start, rows)
    blocks: Any = []
    if block is not None:
        rows_in_memory = ArrayRows(block.x, block.y, block.weights, start)
        blocks = model._blocks_again(rows_in_memory, model._scale_targets)
    return model._sum_folds(blocks, n, outputs)


def add_sums(found: list[list[NormalEquations]]) -> list[NormalEquations]:
    return [reduce(add, folds) for folds in zip(*found)]


def encode_rows(
    model: Any, part: tuple[Any, ...], start: int, rows: int
) -> tuple[Any, Array, Array] | None:
    """A classifier's partition: standardised inputs, classes as numbers, weights."""
    block = checked(model, part, start, rows)
    if block is None:
        return None
    target, weights = model._encode(block.y, block.weights)
    used = weights > 0
    return model._standardised(block.x[used]), target[used], weights[used]


Slopes = tuple[float, Array, Array]


def sum_slopes(
    encoded: tuple[Any, Array, Array] | None,
    w: Array,
    sigma: fused.Sigma,
    v: Array,
    intercept: bool,
    total: float,
) -> Slopes:
    """A partition's part of the mean loss and its gradient."""
    nothing = 0.0, np.zeros(v.shape), np.zeros(sigma.basis.n)
    if encoded is None or not len(encoded[1]):
        return nothing
    x, target, weights = encoded
    rows = Rows(x, w, target, weights, kept_bytes=0)
    loss, by_v, by_a = rows.slopes(v, sigma, intercept, by_sigma=False)
    share = rows.weight / total
    return loss * share, by_v * share, by_a * share


def add_slopes(found: list[Slopes]) -> Slopes:
    loss, by_v, by_a = (reduce(add, parts) for parts in zip(*found))
    return loss, by_v, by_a


def predict_rows(model: Any, X: Any, method: str) -> Array:
    """What a method of the model says of a partition, without rows too."""
    if len(X):
        return np.asarray(getattr(model, method)(X))
    if hasattr(X, "columns"):
        one = X.reindex(range(1)).fillna(0)
    else:
        one = np.zeros((1, model.n_features_in_), X.dtype)
    return np.asarray(getattr(model, method)(one))[:0]
