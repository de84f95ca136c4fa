"""DaskRFLAFClassifier."""

from __future__ import annotations

from typing import Any

import dask
from sklearn.base import _fit_context

from rflaf import fused
from rflaf.dask import tasks
from rflaf.dask.base import Array, DaskMixin, precision
from rflaf.estimators.classifier import RFLAFClassifier
from rflaf.solvers.softmax import StreamedRows


class DaskRFLAFClassifier(DaskMixin, RFLAFClassifier):
    """RFLAFClassifier on Dask arrays and frames.

    Parameters and fitted attributes are those of RFLAFClassifier. Penalty and activation come from
    the sample; each step of the last fit sums over the partitions, whose standardised inputs the
    workers hold.

    Attributes
    ----------
    client : distributed.Client
        What fits; set it, or the current client is taken.
    """

    _plain = RFLAFClassifier

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DaskRFLAFClassifier:
        """Learn from Dask arrays or frames X, n × d, and classes y."""
        with self._unfitted_on_error(True):
            parts, rows = self._open_partitions(X, y, sample_weight)
            self._begin()
            sample, tally = self._sample_parts(parts, rows, classes=True)
            assert tally is not None
            weight = self._set_classes(tally)

            def every() -> WorkerRows:
                encoded = self._on_each(tasks.encode_rows, parts, rows)
                return WorkerRows(self, encoded, sample.used, weight)

            self._fit_sample(sample, None if sample.whole else every)
        return self

    def predict(self, X: Any) -> Any:
        """Classes as a Dask array, not yet computed; for plain arrays as RFLAFClassifier."""
        if not self._is_lazy(X):
            return super().predict(X)
        return self._lazily(X, "predict", self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities as a Dask array, not yet computed."""
        if not self._is_lazy(X):
            return super().predict_proba(X)
        return self._lazily(X, "predict_proba", precision(X), len(self.classes_))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities as a Dask array, not yet computed."""
        if not self._is_lazy(X):
            return super().predict_log_proba(X)
        return self._lazily(X, "predict_log_proba", precision(X), len(self.classes_))

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes as a Dask array, not yet computed."""
        if not self._is_lazy(X):
            return super().decision_function(X)
        width = None if len(self.classes_) == 2 else len(self.classes_)
        return self._lazily(X, "decision_function", precision(X), width)


class WorkerRows(StreamedRows):
    """Rows that workers hold: loss and gradient are summed where the rows are."""

    def __init__(
        self, model: DaskRFLAFClassifier, encoded: list[Any], count: int, weight: float
    ) -> None:
        super().__init__(list, model.components_, count, weight)
        self._model = model
        self._encoded = model.client.persist(encoded)
        self._w = model.client.persist(dask.delayed(self.w, pure=False, traverse=False))

    def keep_features(self, sigma: fused.Sigma, intercept: bool) -> None:
        """They are computed where they are needed."""

    def slopes(
        self, v: Array, sigma: fused.Sigma, intercept: bool, by_sigma: bool
    ) -> tuple[float, Array, Array]:
        assert not by_sigma
        run = dask.delayed(tasks.sum_slopes, pure=False)
        weights = dask.delayed(v, pure=False, traverse=False)
        table = dask.delayed(sigma, pure=False, traverse=False)
        found = [
            run(part, self._w, table, weights, intercept, self.weight) for part in self._encoded
        ]
        loss, by_v, by_a = self._model._run(tasks.tree(found, tasks.add_slopes))
        return loss, by_v, by_a
