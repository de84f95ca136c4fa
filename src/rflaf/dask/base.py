"""What the Dask estimators share: a client, the first pass, predictions."""

from __future__ import annotations

from typing import Any

import dask
import distributed
import numpy as np
from dask import array as da
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from rflaf.dask import tasks
from rflaf.dask.partitions import Partitions, is_dask, partition
from rflaf.estimators.classes import ClassTally
from rflaf.estimators.reading import ReadingMixin
from rflaf.estimators.sample import Sample, as_sample

Array = NDArray[Any]
_KEYS = 2**64


class DaskMixin:
    """Fits on the workers of a client; stands before an estimator among the bases."""

    _plain: type  # the estimator of one machine
    _settings: tuple[str, ...] = (*ReadingMixin._settings, "_client")
    _client: Any = None

    @property
    def client(self) -> Any:
        """The client that fits; one that is set here, else the current one."""
        client = self._client
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError as error:
                raise ValueError(
                    f"{type(self).__name__} found no Dask client. Start one with "
                    "distributed.Client(...), or set the attribute 'client'."
                ) from error
        if client.status != "running":
            raise ValueError(
                f"The Dask client of {type(self).__name__} is not running. Its status is "
                f"{client.status!r}; start another."
            )
        if client.asynchronous:
            raise ValueError(
                f"{type(self).__name__} needs a client that waits. Got an asynchronous one."
            )
        return client

    @client.setter
    def client(self, client: Any) -> None:
        self._client = client

    def to_local(self) -> Any:
        """The plain estimator: the same parameters and fitted attributes, without Dask."""
        model: Any = self
        plain = self._plain(**model.get_params(deep=False))
        plain.__dict__.update(model.__getstate__())
        return plain

    def __getstate__(self) -> dict[str, Any]:
        parent: Any = super()
        state = dict(parent.__getstate__())
        state.pop("_client", None)  # a connection cannot be copied
        return state

    def _is_lazy(self, X: Any) -> bool:
        """Whether a prediction for X is a Dask array."""
        if is_dask(X):
            check_is_fitted(self)
            return True
        return False

    def _run(self, work: Any) -> Any:
        """The result of delayed work. The scheduler repeats what a lost worker had done."""
        future = self.client.compute(work, sync=False)
        try:
            return future.result()
        finally:
            future.release()

    def _open_partitions(self, X: Any, y: Any, sample_weight: Any) -> tuple[Partitions, list[int]]:
        """The partitions and the number of rows in each; sets what the columns are."""
        model: Any = self
        if model.solver in ("adam", "cg"):
            raise ValueError(f"{type(self).__name__} takes no solver={model.solver!r}.")
        if y is None:
            raise ValueError(f"{self._plain.__name__} requires y to be passed. Got None.")
        parts = partition(X, y, sample_weight)
        _check_feature_names(self, parts.like, reset=True)
        model.n_features_in_ = parts.like.shape[1]
        rows = parts.rows
        if rows is None:
            count = dask.delayed(tasks.count_rows, pure=False)
            rows = self._run(dask.delayed(list)([count(part) for part in parts.parts]))
        if not sum(rows):
            raise ValueError("Found no rows: a minimum of 1 is required.")
        return parts, rows

    def _on_each(
        self, function: Any, parts: Partitions, rows: list[int], *others: Any
    ) -> list[Any]:
        """Delayed: a function of this model, a partition, its first row and its rows."""
        model = dask.delayed(self.to_local(), pure=False, traverse=False)
        run = dask.delayed(function, pure=False)
        starts = np.cumsum([0, *rows]).tolist()
        return [
            run(model, part, start, count, *others)
            for part, start, count in zip(parts.parts, starts, rows)
        ]

    def _sample_parts(
        self, parts: Partitions, rows: list[int], classes: bool
    ) -> tuple[Sample, ClassTally | None]:
        """The sample of rows, which comes to the client; nothing else does."""
        model: Any = self
        size = model._sample_size(_floats_like(parts.like))
        n = sum(rows)
        # Keys are uniform: with this limit there are enough below it, unless many weights are zero.
        enough = min(1.0, (size + 8 * size**0.5) / n)
        for share in (enough, 1.0):
            limit = min(int(share * _KEYS), _KEYS - 1)
            drawn = self._on_each(tasks.draw_rows, parts, rows, size, limit, classes)
            found = self._run(tasks.tree(drawn, tasks.merge_drawn))
            if found.used and len(found.piece[-1]) >= min(size, found.used):
                return as_sample(found.piece, found.seen, found.used), found.tally
        raise ValueError("'sample_weight' must have a positive entry. Got only zeros.")

    def _lazily(self, X: Any, method: str, dtype: Any, width: int | None = None) -> Any:
        """A Dask array of what a method of the model says; `width` None: one number a row."""
        found = partition(X)
        model = dask.delayed(self.to_local(), pure=False, traverse=False)
        run = dask.delayed(tasks.predict_rows, pure=False)
        rows: list[Any] = found.rows or [np.nan] * len(found.parts)
        pieces = [
            da.from_delayed(
                run(model, part[0], method),
                (count,) if width is None else (count, width),
                dtype=dtype,
            )
            for part, count in zip(found.parts, rows)
        ]
        return da.concatenate(pieces, allow_unknown_chunksizes=True)


def _floats_like(like: Any) -> Array:
    """No rows, in the precision that they are read in."""
    kinds = [like.dtype] if hasattr(like, "dtype") else list(like.dtypes)
    single = all(kind == np.float32 for kind in kinds)
    return np.zeros((0, like.shape[1]), np.float32 if single else np.float64)


def precision(X: Any) -> Any:
    """The type of predictions for X."""
    like = np.zeros((0, 1), X.dtype) if isinstance(X, da.Array) else X._meta
    return _floats_like(like).dtype


__all__ = ["DaskMixin", "precision"]
