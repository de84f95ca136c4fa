"""What the Dask estimators share: a client, rows, lazy predictions."""

from __future__ import annotations

from typing import Any

import dask
import distributed
import numpy as np
from dask import array as da
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from rflaf.dask.collections import is_dask, partition
from rflaf.dask.partitions import PartitionRows
from rflaf.estimators.validation import InputCheck
from rflaf.fitting import fit


class DaskMixin:
    """Fits on the workers of a client; comes before an estimator among the bases."""

    _plain: type  # the estimator of one machine
    _client: Any = None

    @property
    def client(self) -> Any:
        """The client that fits: the one that was set, otherwise the current one."""
        client = self._client
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError as error:
                raise ValueError(
                    f"{type(self).__name__} found no Dask client. Start one with "
                    "distributed.Client(...), or set the attribute 'client'."
                ) from error
        # one that another task of this worker has begun to connect is as good as one that runs
        if client.status in ("closing", "closed"):
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn from Dask arrays or frames X, n × d, and targets y; `groups` are refused."""
        model: Any = self
        check, rows = self._open(X, y, sample_weight, groups)
        model._publish(check, fit(rows, check.loss, model._fit_settings()))
        return self

    def _open(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[InputCheck, PartitionRows]:
        """The rows of a fit, and what checks them."""
        if groups is not None:
            raise ValueError(
                f"{type(self).__name__} takes no 'groups'. Give them to {self._plain.__name__}, "
                "with 'X' as an array in memory."
            )
        if y is None:
            raise ValueError(f"{self._plain.__name__} requires y to be passed. Got None.")
        found = partition(X, y, sample_weight)
        model: Any = self
        check = InputCheck(self._plain, model._loss())
        check.like(found.like)
        if getattr(y, "dtype", None) == np.float32:
            check.dtype = np.dtype(np.float32)
        return check, PartitionRows.of(self.client, found, check)

    def _is_lazy(self, X: Any) -> bool:
        """Whether a prediction for X is a Dask array."""
        if is_dask(X):
            check_is_fitted(self)
            return True
        return False

    def _lazily(self, X: Any, method: str, dtype: Any, width: int | None = None) -> Any:
        """A Dask array of what a method of the model gives; `width` None: a number per row."""
        found = partition(X)
        model = dask.delayed(self.to_local(), pure=False, traverse=False)
        run = dask.delayed(predict_rows, pure=False)
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


def predict_rows(model: Any, X: Any, method: str) -> Any:
    """What a method of the model returns for a partition, even one without rows."""
    if len(X):
        return np.asarray(getattr(model, method)(X))
    if hasattr(X, "columns"):
        one = X.reindex(range(1)).fillna(0)
    else:
        one = np.zeros((1, model.n_features_in_), X.dtype)
    return np.asarray(getattr(model, method)(one))[:0]
