"""Means of the target by level in place of the codes of levels, and predictions for text.

scikit-learn's TargetEncoder is not used: it takes no weights, and it forgets the means of its folds
after `fit_transform`, while a fit asks for the means of any row without the row's own fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.arrays import Array
from rflaf.inputs.text_ridge import TextRidge, learn_text, text_width

_LEAST_SHRINKAGE, _MOST_SHRINKAGE = 1.0, 1000.0  # rows of average weight
_INNER = 5  # folds that means leave out, one at a time
_SMALLEST = 5e-324  # unit of a fold whose targets are all 0, so that the others decide


@dataclass(frozen=True)
class Coded:
    """The columns of a matrix that hold codes of levels, or numbers of texts."""

    columns: NDArray[np.intp]  # those of codes
    sizes: tuple[int, ...]  # the number of codes of each: its levels, then missing, then unknown
    texts: tuple[NDArray[np.intp], ...] = ()  # the columns that each column of text has become

    @property
    def replaced(self) -> NDArray[np.intp]:
        return np.concatenate([self.columns, *self.texts])

    def width(self, d: int, outputs: int) -> int:
        """The largest number of columns, of d, once these are replaced."""
        made = outputs * len(self.columns) + sum(text_width(at, outputs) for at in self.texts)
        return d - len(self.replaced) + made


@dataclass(frozen=True)
class TargetMeans:
    """Means of C targets by level in place of codes, and predictions in place of texts."""

    d: int  # the number of columns of x
    columns: NDArray[np.intp]  # those that hold codes
    tables: list[Array]  # size × C for each of these, for new rows
    # for training rows: the means without the rows of their own fold, by fold
    of_fold: dict[int, list[Array]] = field(default_factory=dict)
    texts: list[TextRidge] = field(default_factory=list)  # the predictions

    @property
    def replaced(self) -> NDArray[np.intp]:
        """The columns of x that give way to others."""
        return np.concatenate([self.columns, *(text.columns for text in self.texts)])

    @property
    def outputs(self) -> int:
        """C, the number of targets."""
        return int([*self.tables, *(text.weights for text in self.texts)][0].shape[1])

    def __call__(self, x: Array, fold: Array | None = None) -> Array:
        """The other columns of x in their order, then C means per coded column, then texts.

        `fold` is the fold of each row in training, -1 for new rows; None: all rows are new.
        """
        codes = x[:, self.columns].astype(np.intp)
        means = [table[code] for table, code in zip(self.tables, codes.T)]
        for number in [] if fold is None else np.intersect1d(fold, [*self.of_fold]).tolist():
            rows = np.flatnonzero(fold == number)
            for found, table, code in zip(means, self.of_fold[number], codes.T):
                found[rows] = table[code[rows]]
        means += [text(x, fold) for text in self.texts]
        others = np.delete(x, self.replaced, axis=1)
        return np.hstack([others, *means]).astype(x.dtype, copy=False)

    def export(self, graph: Any, x: str) -> str:
        """The same for new rows, as part of a graph."""
        others = np.delete(np.arange(self.d), self.replaced)
        parts = [graph.columns(x, others)] if len(others) else []
        for column, table in zip(self.columns, self.tables):
            parts.append(graph.rows(table, graph.cast(graph.columns(x, [column]), np.int64)))
        parts += [text.export(graph, x) for text in self.texts]
        return str(graph.joined(parts))

    @property
    def origin(self) -> NDArray[np.intp]:
        """The column of x that each resulting column comes from."""
        others = np.delete(np.arange(self.d), self.replaced)
        made = np.repeat(self.columns, self.outputs)
        return np.concatenate([others, made, *(text.origin for text in self.texts)])

    def published(self) -> TargetMeans:
        """The same without the means of folds, for a finished model."""
        return replace(self, of_fold={}, texts=[text.published() for text in self.texts])


def inner_folds(keys: Array) -> NDArray[np.intp]:
    """The fold of each row, which its target means leave out; rows with one key share it."""
    return (keys % keys.dtype.type(_INNER)).astype(np.intp)


def learn_means(
    x: Array, coded: Coded, targets: Array, weights: Array, fold: Array, least: int = 1
) -> TargetMeans:
    """Means of targets by level and predictions by text: of all rows, and of all but a fold's.

    Rows that belong together share a fold; folds are numbered from 0 on. Rows of weight zero do not
    count. An unknown level, or one without rows, has the common mean.

    For new rows, so have levels in fewer than `least` folds. With 2, these are levels whose rows
    all lie in one fold, such as the name of a group: these rows saw nothing else in training.

    Means without a fold come from sums over the other folds, each in units of its own, so that no
    bit of the fold's targets is in them. Without any positive weight the means are 0.
    """
    texts = [learn_text(x, at, targets, weights, fold) for at in coded.texts]
    if not coded.sizes:
        return TargetMeans(x.shape[1], coded.columns, [], texts=texts)
    numbers, place = np.unique(fold, return_inverse=True)
    codes = x[:, coded.columns].astype(np.intp)
    order = np.argsort(place, kind="stable")
    order = order[weights[order] > 0]
    ends = np.searchsorted(place[order], np.arange(1, len(numbers)))
    sums = [
        _sums_of_fold(codes[rows], coded.sizes, targets[rows], weights[rows])
        for rows in np.split(order, ends)
    ]
    empty = [np.zeros((size, targets.shape[1])) for size in coded.sizes]
    of_fold = {
        number: _tables([part for j, part in enumerate(sums) if j != k and part.rows], empty)
        for k, number in enumerate(numbers.tolist())
    }
    parts = [part for part in sums if part.rows]
    tables = _tables(parts, empty, min(least, len(parts)))
    return TargetMeans(x.shape[1], coded.columns, tables, of_fold, texts)


@dataclass(frozen=True)
class _FoldSums:
    """Sums over the rows of a fold, in units that neither overflow nor vanish."""

    rows: int  # of positive weight
    heaviest: float  # the largest weight, the unit of weights
    unit: Array  # targets are `unit * (centre + value)`
    centre: Array
    by_level: list[Array]  # weights, values and squares by level, 3 × size × C per coded column

    @property
    def weight(self) -> float:
        """The total weight, in units of the heaviest."""
        return float(self.by_level[0][0, :, 0].sum())


def _sums_of_fold(
    codes: Array, sizes: tuple[int, ...], targets: Array, weights: Array
) -> _FoldSums:
    width = targets.shape[1]
    if not len(targets):
        return _FoldSums(0, 0.0, np.ones(width), np.zeros(width), [])
    # powers of two, so that no bit is lost: the largest target is between 1 and 2 units
    largest = np.abs(targets).max(axis=0)
    unit = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), _SMALLEST)
    heaviest = float(weights.max())
    weights, values = weights / heaviest, targets / unit
    centre = weights @ values / weights.sum()
    values = values - centre
    by_level = []
    for code, size in zip(codes.T, sizes):
        found = np.empty((3, size, width))
        found[0] = np.bincount(code, weights, minlength=size)[:, None]
        for k, value in enumerate(values.T):
            found[1, :, k] = np.bincount(code, weights * value, minlength=size)
            found[2, :, k] = np.bincount(code, weights * value**2, minlength=size)
        by_level.append(found)
    return _FoldSums(len(targets), heaviest, unit, centre, by_level)


def _tables(folds: list[_FoldSums], empty: list[Array], least: int = 1) -> list[Array]:
    """Means by level over the rows of `folds`; the common mean for levels in fewer than `least`."""
    if not folds:
        return empty
    heaviest = max(part.heaviest for part in folds)
    unit = np.max([part.unit for part in folds], axis=0)
    shares = [part.heaviest / heaviest for part in folds]
    weight = sum(share * part.weight for share, part in zip(shares, folds))
    average = weight / sum(part.rows for part in folds)  # of a row
    scales = [part.unit / unit for part in folds]
    centre = sum(
        share * part.weight / weight * part.centre * scale
        for share, part, scale in zip(shares, folds, scales)
    )
    tables = []
    for column, nothing in enumerate(empty):
        total = np.zeros((3, *nothing.shape))
        for part, share, scale in zip(folds, shares, scales):
            rows, first, second = part.by_level[column] * (share / average)
            shift = part.centre * scale - centre
            total[0] += rows
            total[1] += scale * first + shift * rows
            total[2] += scale**2 * second + 2 * scale * shift * first + shift**2 * rows
        means, prior = smoothed_means(total)
        there = sum((part.by_level[column][0] > 0).astype(int) for part in folds)
        means = np.where(there >= least, means, prior)
        means[-1] = prior
        tables.append((means + centre) * unit)
    return tables


def smoothed_means(sums: Any) -> tuple[Array, Array]:
    """Means by level, drawn towards the mean of all as far as their number leaves them uncertain.

    `sums` are weights, targets and squared targets by level, 3 × levels × C, where a row of average
    weight has the weight 1. A level of weight w has its own mean with w, and the common one with m,
    the variance within levels over that between them.
    """
    weight, first, second = sums
    total = np.maximum(weight.sum(axis=0), 1e-300)
    prior = first.sum(axis=0) / total
    means = first / np.where(weight > 0, weight, 1.0)
    within = np.maximum((second - weight * means**2).sum(axis=0), 0.0) / total
    between = (weight * (means - prior) ** 2).sum(axis=0) / total
    between = between - within * np.minimum((weight > 0).sum(axis=0) / total, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        m = np.where(between > 0, within / between, np.inf)
    m = np.clip(np.nan_to_num(m, nan=1.0, posinf=np.inf), _LEAST_SHRINKAGE, _MOST_SHRINKAGE)
    return (first + m * prior) / (weight + m), prior
