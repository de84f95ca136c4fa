"""How an estimator reads its rows: arrays at once, sources and arrays on disk in passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from rflaf.data import Arrays, Source
from rflaf.estimators import memory as budget
from rflaf.estimators.rows import ArrayRows, Block, CheckedRows
from rflaf.estimators.sample import FOLD, Sample, draw_sample, row_keys
from rflaf.estimators.scaling import standardise

Array = NDArray[Any]

# What belongs to an estimator as its parameters do, and comes from no fit: scikit-learn's settings.
_SETTINGS = ("_metadata_request", "_sklearn_output_config")


def is_streamed(X: Any) -> bool:
    """Whether rows are read block by block, never all at once."""
    return isinstance(X, Source | np.memmap)


class ReadingMixin:
    """Checks of inputs, the first pass, and those after it."""

    _settings: tuple[str, ...] = _SETTINGS
    n_components: int
    solver: str
    memory: int | None
    random_state: Any
    components_: Array
    mean_: Array
    scale_: Array

    def _check_inputs(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32]
        )

    def _check_block(self, X: Any, first: bool) -> Array:
        """A block of a source as an array; CheckedRows looks at its numbers."""
        return validate_data(
            self, X, reset=first, dtype=[np.float64, np.float32], ensure_all_finite=False
        )

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Arrays of all rows, checked."""
        raise NotImplementedError

    def _check_targets(self, y: Any) -> Array:
        """The targets of a block of a source as an array."""
        raise NotImplementedError

    def _open(self, X: Any, y: Any, sample_weight: Any) -> ArrayRows | CheckedRows:
        """The rows of a fit. Arrays are checked at once, what lies on disk as it is read."""
        if isinstance(X, Source) and self.solver == "adam":
            raise ValueError("solver='adam' takes arrays. Got a source.")
        if not is_streamed(X) or self.solver == "adam":
            return ArrayRows(*self._check_rows(X, y, sample_weight))
        if isinstance(X, Source):
            if y is not None or sample_weight is not None:
                raise ValueError(
                    "With a source for 'X', targets and weights come from its blocks. Got 'y' or "
                    "'sample_weight' besides."
                )
            return CheckedRows(X, self._check_block, self._check_targets)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed. Got None.")
        if sample_weight is not None and np.ndim(sample_weight) == 0:
            sample_weight = np.broadcast_to(np.float64(sample_weight), len(X))
        return CheckedRows(Arrays(X, y, sample_weight), self._check_block, self._check_targets)

    @contextmanager
    def _unfitted_on_error(self, streamed: bool) -> Iterator[None]:
        """A source that fails midway leaves no half of a model behind."""
        kept = {*self.get_params(deep=False), *self._settings}  # type: ignore[attr-defined]
        try:
            yield
        except BaseException:
            if streamed:
                for name in set(vars(self)) - kept:
                    delattr(self, name)
            raise

    def _begin(self, gram: bool = True) -> None:
        """What comes before the first pass; `gram` says whether second moments will be needed."""
        if gram:
            budget.check_gram(self.n_components, self.memory)
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _sample_size(self, x: Any) -> int:
        """How many rows to draw, for the first block of them."""
        if sparse.issparse(x):  # it is in memory, and a few of its rows hardly show a column
            return budget.SAMPLE_ROWS
        return budget.sample_rows(x.shape[1], x.dtype.itemsize, self.memory)

    def _read_rows(self, x: Any) -> int:
        """Rows to read at once in the first pass, for the first block of them."""
        return budget.read_rows(x.shape[1], self.memory)

    def _draw_sample(
        self, rows: ArrayRows | CheckedRows, tally: Callable[[Block], None] | None = None
    ) -> Sample:
        """The first pass: rows to learn the activation on."""
        sample = draw_sample(rows, self._sample_size, self._read_rows, self._seed, tally)
        if not sample.used:
            raise ValueError("'sample_weight' must have a positive entry. Got only zeros.")
        return sample

    def _blocks_again(
        self,
        rows: ArrayRows | CheckedRows,
        encode: Callable[[Array, Array], tuple[Array, Array]],
        size: int | None = None,
    ) -> Iterator[tuple[Any, Array, Array, Array]]:
        """Another pass over all rows of positive weight: standardised, with encoded targets.

        Gives inputs, targets, weights, and the keys that decide on folds.
        """
        for block in rows.blocks(size or self._block_rows(rows)):
            keys = row_keys(self._seed, FOLD, block.start, block.start + len(block.weights))
            targets, weights = encode(block.y, block.weights)
            used = weights > 0
            if used.all():
                yield self._standardised(block.x), targets, weights, keys
            elif used.any():
                x = self._standardised(block.x[used])
                yield x, targets[used], weights[used], keys[used]

    def _block_rows(self, rows: Any) -> int:
        """Rows of a block, in every pass but the first; `rows` has `x` where it is in memory."""
        d, m = self.components_.shape
        thin = sparse.issparse(getattr(rows, "x", None))
        return budget.block_rows(m, 1 if thin else d, self.memory)

    def _standardised(self, X: Any) -> Any:
        return standardise(X, self.mean_, self.scale_, self.components_.dtype)

    def _input_blocks(self, X: Any) -> Iterator[Any]:
        """The rows of arrays or of a source, checked, in blocks."""
        check_is_fitted(self)
        rows: ArrayRows | CheckedRows
        if is_streamed(X):
            source = X if isinstance(X, Source) else Arrays(X)
            rows = CheckedRows(source, self._check_block, first=False)
        else:
            X = self._check_inputs(X, reset=False)
            rows = ArrayRows(X, np.zeros(X.shape[0]), np.zeros(X.shape[0]))
        for block in rows.blocks(self._block_rows(rows)):
            yield block.x
        if rows.count == 0:
            raise ValueError("Found no rows: a minimum of 1 is required.")
