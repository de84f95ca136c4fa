"""Free text as a few numbers: hashed character n-grams, and the main directions among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rflaf.inputs.column import Column
from rflaf.inputs.kinds import as_levels
from rflaf.inputs.scaling import column_moments, standardise
from rflaf.inputs.target_means import inner_folds
from rflaf.runtime.threads import use_threads

Array = NDArray[Any]

_DIRECTIONS = 30
_BUCKETS = 4096  # that n-grams are hashed to
_MOST_LEARNED = 5_000  # texts
_LONGEST = 2_000  # characters that are read of a text
_BLOCK = 1_000  # texts at a time, so that memory does not grow with their number
_MOST_JUDGED, _FEWEST_JUDGED = 2_000, 20  # rows that decide whether text helps
_PENALTIES = (1.0, 10.0, 100.0, 1000.0, 10_000.0)  # of linear models on standardised columns
_CLEARLY = 2.0  # standard errors


@dataclass(frozen=True)
class TextPart:
    """Free text: how much its character n-grams point in each of the fit's main directions.

    Attributes
    ----------
    column : int
    weights : array of buckets
        Of n-grams: the rarer, the larger.
    directions : array, buckets × width
    flagged : bool
        Whether a last column marks missing texts, which are 0 in all others.
    """

    column: int
    weights: Array
    directions: Array
    flagged: bool

    @property
    def origin(self) -> Array:
        """The column that each of the results comes from."""
        return np.full(self.directions.shape[1] + self.flagged, self.column)

    def names(self, names: Sequence[str]) -> list[str]:
        """Names of the results."""
        name = names[self.column]
        found = [f"{name}_text_{k}" for k in range(self.directions.shape[1])]
        return found + [f"{name}_missing"] * self.flagged

    def encode(self, columns: Sequence[Column]) -> Array:
        """The texts' numbers, n × width."""
        codes, texts = as_levels(columns[self.column])
        used, place = np.unique(codes, return_inverse=True)
        given = ["" if k < 0 else texts[k] for k in used.tolist()]
        blocks = [given[k : k + _BLOCK] for k in range(0, len(given), _BLOCK)]
        found = np.vstack([_weighted(_hashed(b), self.weights) @ self.directions for b in blocks])
        flags = (codes < 0)[:, None] if self.flagged else np.empty((len(codes), 0))
        return np.hstack([found[place], flags])


def text_part(column: int, values: Column) -> TextPart:
    """The directions in which the texts of a column spread most.

    They are learned from the different texts in alphabetical order, whatever rows they are in.
    """
    from sklearn.utils.extmath import randomized_svd

    codes, texts = as_levels(values)
    different = sorted(texts[k] for k in np.unique(codes[codes >= 0]).tolist())
    hashed = _hashed([different[k] for k in _spaced(len(different), _MOST_LEARNED)])
    seen = np.bincount(hashed.indices, minlength=_BUCKETS)  # texts that an n-gram is in
    weights = np.log((1 + hashed.shape[0]) / (1 + seen)) + 1
    with use_threads(1):  # BLAS rounds otherwise with each number of threads
        _, size, found = randomized_svd(
            _weighted(hashed, weights), min(_DIRECTIONS, hashed.shape[0]), random_state=0
        )
    kept = found[size > 1e-6 * size[0]]
    return TextPart(column, weights, kept.T, bool((codes < 0).any()))


def text_helps(text: Array, others: Array, targets: Array, weights: Array, keys: Array) -> bool:
    """Whether linear models predict rows of other folds clearly better with text than without.

    Parameters
    ----------
    text, others : array, n × width
        The columns that text became, and the columns beside them.
    targets : array, n × C
        In units of like size.
    weights : array of n
    keys : array of n ints
        Rows that belong together share one; a row's fold is that of its key.
    """
    fold, weights = inner_folds(keys), weights / weights.mean()
    if len(keys) < _FEWEST_JUDGED or len(np.unique(fold)) < 2:
        return False
    x = standardised(np.hstack([others, text]), weights)
    with use_threads(1):
        without = _errors(x[:, : others.shape[1]], targets, weights, fold)
        gain = without - _errors(x, targets, weights, fold)
    together = np.bincount(np.unique(keys, return_inverse=True)[1], gain)
    return bool(together.sum() > _CLEARLY * together.std() * np.sqrt(len(together)))


def judging_rows(weights: Array) -> NDArray[np.intp]:
    """Rows of positive weight that decide whether text helps."""
    used = np.flatnonzero(weights > 0)
    return used[_spaced(len(used), _MOST_JUDGED)]


def standardised(x: Array, weights: Array) -> Array:
    """Columns with the mean 0 and the variance 1, or constant ones."""
    return np.asarray(standardise(x, *column_moments(x, weights), np.float64))


def _errors(x: Array, y: Array, weights: Array, fold: Array) -> Array:
    """Weighted squared errors of rows, by ridge regression on the other folds; the best penalty."""
    predicted = np.empty((len(_PENALTIES), *y.shape))
    root = np.sqrt(weights)[:, None]
    for number in np.unique(fold):
        rest, own = fold != number, fold == number
        mean, centre = (np.average(a[rest], axis=0, weights=weights[rest]) for a in (x, y))
        u, s, v = np.linalg.svd(root[rest] * (x[rest] - mean), full_matrices=False)
        target = u.T @ (root[rest] * (y[rest] - centre))
        inputs = (x[own] - mean) @ v.T
        for k, penalty in enumerate(_PENALTIES):
            predicted[k, own] = inputs @ ((s / (s**2 + penalty))[:, None] * target) + centre
    errors = weights * ((predicted - y) ** 2).sum(axis=2)
    return np.asarray(errors[errors.mean(axis=1).argmin()])


def _spaced(count: int, most: int) -> NDArray[np.intp]:
    """At most `most` of `count` places, evenly spaced."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


def _hashed(texts: Sequence[str]) -> Any:
    """How often each n-gram is in a text."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectors = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(3, 4),
        n_features=_BUCKETS,
        alternate_sign=False,
        norm=None,
    )
    return vectors.transform([text[:_LONGEST] for text in texts])


def _weighted(hashed: Any, weights: Array) -> Any:
    """Rows of length 1; without n-grams a row is 0."""
    from sklearn.preprocessing import normalize

    return normalize(hashed.multiply(weights).tocsr())
