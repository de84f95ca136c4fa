"""The estimators on Dask collections: a client, rows, lazy predictions."""

from __future__ import annotations

from typing import Any

import dask
import distributed
import numpy as np
from dask import array as da
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils.validation import check_is_fitted

from rflaf.dask.partitions import PartitionRows, is_dask, partition
from rflaf.distributions import Distribution
from rflaf.estimators.classifier import RFLAFClassifier
from rflaf.estimators.regressor import RFLAFRegressor
from rflaf.estimators.validation import InputCheck
from rflaf.fitting import fit


class DaskMixin(BaseEstimator):
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
                f"{type(self).__name__} needs a synchronous client. Got an asynchronous one."
            )
        return client

    @client.setter
    def client(self, client: Any) -> None:
        self._client = client

    def to_local(self) -> Any:
        """The plain estimator: the same parameters and fitted attributes, without Dask."""
        plain = self._plain(**self.get_params(deep=False))
        plain.__dict__.update(self.__getstate__())
        return plain

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_client", None)  # a connection cannot be copied
        return state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Learn from Dask arrays or frames X, n × d, and targets y; `groups` are refused."""
        check, rows = self._open(X, y, sample_weight, groups)
        if self.time_limit is not None:
            raise ValueError(f"{type(self).__name__} takes no 'time_limit'. Got {self.time_limit}.")
        settings = check.settled(self._fit_settings(), self)
        self._publish(check, fit(rows, check.loss, settings))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Not available: `fit` takes all rows (X, y, classes, sample_weight)."""
        raise NotImplementedError(
            "partial_fit needs arrays: use the model that 'to_local' returns."
        )

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
        if self.categorical_features not in (None, "from_dtype"):
            raise ValueError(
                f"{type(self).__name__} takes numbers, and no 'categorical_features'. Got "
                f"{self.categorical_features!r}."
            )
        found = partition(X, y, sample_weight)
        check = InputCheck(self._plain, self._loss())
        check.like(found.like)
        if getattr(y, "dtype", None) == np.float32:
            check.dtype = np.dtype(np.float32)
        return check, PartitionRows.of(self.client, found, check)

    def _lazily(self, method: str, X: Any) -> Any:
        """What a method gives: for a Dask collection a Dask array, not yet computed."""
        if not is_dask(X):
            return getattr(super(), method)(X)
        check_is_fitted(self)
        dtype, width = self._kind_of(method)
        found = partition(X)
        model = dask.delayed(self.to_local(), pure=False, traverse=False)
        run = dask.delayed(predict_rows, pure=False)
        rows: list[Any] = found.rows or [np.nan] * len(found.parts)
        shapes = [(count,) if width is None else (count, width) for count in rows]
        pieces = [
            da.from_delayed(run(model, part[0], method), shape, dtype=dtype)
            for part, shape in zip(found.parts, shapes)
        ]
        return da.concatenate(pieces, allow_unknown_chunksizes=True)

    def _kind_of(self, method: str) -> tuple[Any, int | None]:
        """The dtype of what a method gives, and its width; None: a number per row."""
        raise NotImplementedError


class DaskRFLAFRegressor(DaskMixin, RFLAFRegressor):
    """RFLAFRegressor on Dask arrays and frames.

    Parameters and fitted attributes are those of RFLAFRegressor. The model is that of the same rows
    on one machine, up to rounding.

    Attributes
    ----------
    client : distributed.Client
        The client to use; by default the current one.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from rflaf.dask import DaskRFLAFRegressor
    >>> X = da.random.default_rng(0).uniform(-1, 1, (2000, 3), chunks=(600, 3))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     model = DaskRFLAFRegressor(n_components=50, random_state=0).fit(X, X[:, 0] ** 2)
    ...     prediction = model.predict(X)  # lazy
    ...     shape = prediction.compute().shape
    >>> shape
    (2000,)
    """

    _plain = RFLAFRegressor

    def predict_dist(self, X: Any) -> Distribution:
        """As RFLAFRegressor, for plain arrays; quantiles and intervals come from it."""
        if is_dask(X):
            check_is_fitted(self)
            raise TypeError(
                "Distributions, quantiles and intervals take arrays in memory. Got a Dask "
                "collection: call the model that 'to_local' returns on its partitions."
            )
        return super().predict_dist(X)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions as a Dask array, not yet computed; for plain arrays as RFLAFRegressor.

        With `return_std`, also the standard deviation of a new observation at each row.
        """
        prediction = self._lazily("predict", X)
        return (prediction, self.predict_std(X)) if return_std else prediction

    def predict_std(self, X: Any) -> Any:
        """Standard deviations as a Dask array; for plain arrays as RFLAFRegressor."""
        return self._lazily("predict_std", X)

    def _kind_of(self, method: str) -> tuple[Any, int | None]:
        several = self.output_weights_.ndim == 2
        return self.dtype_, self.output_weights_.shape[1] if several else None


class DaskRFLAFClassifier(DaskMixin, RFLAFClassifier):
    """RFLAFClassifier on Dask arrays and frames.

    Parameters and fitted attributes are those of RFLAFClassifier. Penalty and activation are
    learned on the sample; each step of the last solve sums over the partitions, whose standardised
    inputs stay on the workers.

    Attributes
    ----------
    client : distributed.Client
        The client to use; by default the current one.
    """

    _plain = RFLAFClassifier

    def predict(self, X: Any) -> Any:
        """Classes as a Dask array, not yet computed; for plain arrays as RFLAFClassifier."""
        return self._lazily("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities as a Dask array, not yet computed."""
        return self._lazily("predict_proba", X)

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes as a Dask array, not yet computed."""
        return self._lazily("decision_function", X)

    def _kind_of(self, method: str) -> tuple[Any, int | None]:
        count = len(self.classes_)
        if method == "predict":
            return self.classes_.dtype, None
        return np.float64, None if method == "decision_function" and count == 2 else count


def predict_rows(model: Any, X: Any, method: str) -> Any:
    """What a method of the model returns for a partition, even one without rows."""
    if len(X):
        return np.asarray(getattr(model, method)(X))
    if hasattr(X, "columns"):
        one = X.reindex(range(1)).fillna(0)
    else:
        one = np.zeros((1, model.n_features_in_), X.dtype)
    return np.asarray(getattr(model, method)(one))[:0]
