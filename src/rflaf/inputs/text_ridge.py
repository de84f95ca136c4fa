"""Free text as predictions of the target, by ridge regression on the numbers of its n-grams."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from rflaf.arrays import Array
from rflaf.runtime.threads import use_threads

_PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # in rows; a text has the length 1
_CLEARLY = 2.0  # standard errors
_MOST_ROWS = 20_000  # that a regression is learned from
_BESIDE = 10  # numbers that stay beside the predictions
_SMALLEST = 1e-300  # unit of targets


@dataclass(frozen=True)
class TextRidge:
    """Predictions of C targets in place of a text's K numbers, of which the first few stay.

    If the text does not help, predictions are the mean, and no number stays.
    """

    columns: NDArray[np.intp]  # of x, which hold the K numbers
    weights: Array  # (K + 1) × C, for new rows; intercepts are last
    # 2 × C, the least and the largest out-of-fold prediction, to which all are clipped: on rows it
    # learned from, the ridge goes beyond them, where models have seen nothing.
    ends: Array
    # for training rows: the weights without the rows of their own fold, by fold
    of_fold: dict[int, Array] = field(default_factory=dict)

    def __call__(self, x: Array, fold: Array | None = None) -> Array:
        """The predictions for rows of x and their first numbers; `fold` as for `TargetMeans`."""
        given = x[:, self.columns]
        found = _predicted(given, self.weights)
        for number in [] if fold is None else np.intersect1d(fold, [*self.of_fold]).tolist():
            rows = np.flatnonzero(fold == number)
            found[rows] = _predicted(given[rows], self.of_fold[number])
        return np.hstack([np.clip(found, *self.ends), x[:, self.beside]])

    @property
    def beside(self) -> NDArray[np.intp]:
        """The numbers that stay, as columns of x."""
        return self.columns[: _BESIDE * bool(self.weights[:-1].any())]

    @property
    def origin(self) -> NDArray[np.intp]:
        """The column of x that each result comes from; of predictions the first."""
        made = np.repeat(self.columns[:1], self.weights.shape[1])
        return np.concatenate([made, self.beside])

    def export(self, graph: Any, x: str) -> str:
        """The same for new rows, as part of a graph."""
        product = graph.add("MatMul", graph.columns(x, self.columns), self.weights[:-1])
        found = graph.add("Add", product, self.weights[-1])
        found = graph.add("Min", graph.add("Max", found, self.ends[0]), self.ends[1])
        beside = [graph.columns(x, self.beside)] if len(self.beside) else []
        return str(graph.joined([found, *beside]))

    def published(self) -> TextRidge:
        """The same without the weights of folds, for a finished model."""
        return replace(self, of_fold={})


def text_width(columns: NDArray[np.intp], outputs: int) -> int:
    """The largest number of columns that predictions and what is beside them have."""
    return outputs + len(columns[:_BESIDE])


def learn_text(
    x: Array, columns: NDArray[np.intp], targets: Array, weights: Array, fold: Array
) -> TextRidge:
    """Ridge regressions on columns of x, over all rows and over all rows but those of a fold.

    The arguments are those of `learn_means`. One penalty is chosen by the errors in the folds.
    Where none is clearly better than the mean, all rows have the mean. Weights without a fold come
    from sums over the other folds: but for the penalty and rounding, they know nothing of its
    targets. All predictions are about the mean of all rows, or they would tell the folds apart.
    """
    used = np.flatnonzero(weights > 0)
    used = used[np.linspace(0, len(used) - 1, min(len(used), _MOST_ROWS)).astype(np.intp)]
    numbers, place = np.unique(fold[used], return_inverse=True)
    nothing = np.zeros((len(columns) + 1, targets.shape[1]))
    if len(numbers) < 2:  # no second fold to choose a penalty by
        return TextRidge(columns, nothing, nothing[-2:])
    weights = weights[used] / weights[used].max()
    weights = weights / weights.mean()
    x, targets = x[np.ix_(used, columns)].astype(np.float64), targets[used]
    middle, centre = (weights / len(used) @ each for each in (x, targets))
    # in units whose squares neither cancel nor overflow
    unit = np.abs(targets - centre).max(axis=0) + _SMALLEST
    with use_threads(1):  # BLAS rounds otherwise with each number of threads
        found = _cross_fitted(x - middle, (targets - centre) / unit, weights, place)
    if found is None:
        nothing[-1] = centre
        return TextRidge(columns, nothing, np.stack([centre, centre]))
    every, without, predicted = found
    in_units = [np.vstack([v * unit, centre - middle @ v * unit]) for v in (every, *without)]
    ends = np.stack([predicted.min(axis=0), predicted.max(axis=0)]) * unit + centre
    return TextRidge(columns, in_units[0], ends, dict(zip(numbers.tolist(), in_units[1:])))


def _cross_fitted(
    x: Array, targets: Array, weights: Array, fold: Array
) -> tuple[Array, list[Array], Array] | None:
    """Weights of all rows and of all but each fold, and the latter's predictions; None: no gain."""
    parts = [fold == k for k in range(int(fold.max()) + 1)]
    sums = [_RidgeSums.of(x[own], targets[own], weights[own]) for own in parts]
    without = [_solutions(_total(sums[:k] + sums[k + 1 :])) for k in range(len(sums))]
    predicted = np.empty((len(_PENALTIES), *targets.shape))
    for own, solutions in zip(parts, without):
        predicted[:, own] = x[own] @ solutions
    gains = weights * (targets**2 - (targets - predicted) ** 2).sum(axis=2)
    best = int(np.argmax(gains.sum(axis=1)))
    if gains[best].sum() <= _CLEARLY * gains[best].std() * np.sqrt(len(x)):
        return None
    return _solutions(_total(sums))[best], [each[best] for each in without], predicted[best]


class _RidgeSums(NamedTuple):
    """Sums over rows of products of inputs, the last of which is 1, and of these with targets."""

    gram: Array
    moment: Array

    @classmethod
    def of(cls, x: Array, targets: Array, weights: Array) -> _RidgeSums:
        x = np.column_stack([x, np.ones(len(x))])
        heavy = weights[:, None] * x
        return cls(heavy.T @ x, heavy.T @ targets)


def _total(parts: list[_RidgeSums]) -> _RidgeSums:
    return _RidgeSums(*(np.sum(each, axis=0) for each in zip(*parts)))


def _solutions(sums: _RidgeSums) -> Array:
    """Weights for each penalty, of regressions with an intercept."""
    mean = sums.gram[-1, :-1] / sums.gram[-1, -1]
    gram = sums.gram[:-1, :-1] - np.outer(mean, sums.gram[-1, :-1])
    moment = sums.moment[:-1] - np.outer(mean, sums.moment[-1])
    unit = np.eye(len(gram))
    return np.stack([cho_solve(cho_factor(gram + each * unit), moment) for each in _PENALTIES])


def _predicted(x: Array, weights: Array) -> Array:
    """Row by row, so that the number of rows does not matter for rounding."""
    x = np.ascontiguousarray(x)
    found = [(x * v).sum(axis=1) for v in weights[:-1].T]
    return np.column_stack(found) + weights[-1]
