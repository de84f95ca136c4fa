"""Free text as a few numbers: hashed character n-grams, and the main directions among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rflaf.arrays import Array
from rflaf.inputs.column import Column
from rflaf.inputs.kinds import as_levels
from rflaf.runtime.threads import use_threads

_FEW = 30  # directions that become inputs of a model
_MANY = 300  # directions from which members predict the target
_MOST_NUMBERS = 2**24  # n × directions, above _FEW of them
_BUCKETS = 4096  # that n-grams are hashed to
_MOST_LEARNED = 5_000  # texts
_LONGEST = 2_000  # characters that are read of a text
_BLOCK = 1_000  # texts at a time, so that memory does not grow with their number


@dataclass(frozen=True)
class TextPart:
    """Free text: how much its character n-grams point in each of the fit's main directions."""

    column: int
    weights: Array  # of the buckets of n-grams: the rarer, the larger
    directions: Array  # buckets × width
    flagged: bool  # whether a last column marks missing texts, which are 0 in all others

    @property
    def origin(self) -> Array:
        return np.full(self.directions.shape[1] + self.flagged, self.column)

    def names(self, names: Sequence[str]) -> list[str]:
        name = names[self.column]
        found = [f"{name}_text_{k}" for k in range(self.directions.shape[1])]
        return found + [f"{name}_missing"] * self.flagged

    def encode(self, columns: Sequence[Column]) -> Array:
        codes, texts = as_levels(columns[self.column])
        used, place = np.unique(codes, return_inverse=True)
        given = ["" if k < 0 else texts[k] for k in used.tolist()]
        blocks = [given[k : k + _BLOCK] for k in range(0, len(given), _BLOCK)]
        found = np.vstack([_weighted(_hashed(b), self.weights) @ self.directions for b in blocks])
        flags = (codes < 0)[:, None] if self.flagged else np.empty((len(codes), 0))
        return np.hstack([found[place], flags])


def text_part(column: int, values: Column, many: bool) -> TextPart:
    """The main directions, few or `many`, of distinct texts; sorted, so that rows do not matter."""
    from sklearn.utils.extmath import randomized_svd

    codes, texts = as_levels(values)
    different = sorted(texts[k] for k in np.unique(codes[codes >= 0]).tolist())
    some = np.linspace(0, len(different) - 1, min(len(different), _MOST_LEARNED)).astype(np.intp)
    hashed = _hashed([different[k] for k in some])
    seen = np.bincount(hashed.indices, minlength=_BUCKETS)  # texts that an n-gram is in
    weights = np.log((1 + hashed.shape[0]) / (1 + seen)) + 1
    most = max(_FEW, min(_MANY, _MOST_NUMBERS // len(codes))) if many else _FEW
    with use_threads(1):  # BLAS rounds otherwise with each number of threads
        _, size, found = randomized_svd(
            _weighted(hashed, weights), min(most, hashed.shape[0]), random_state=0
        )
    kept = found[size > 1e-6 * size[0]]
    return TextPart(column, weights, kept.T.astype(np.float32), bool((codes < 0).any()))


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
