"""DaskRFLAFClassifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from rflaf.dask.base import DaskMixin
from rflaf.estimators.classifier import RFLAFClassifier


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

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Not here: `fit` takes all rows (X, y, classes, sample_weight)."""
        raise NotImplementedError("partial_fit is for arrays: 'to_local' gives the plain model.")

    def predict(self, X: Any) -> Any:
        """Classes as a Dask array, not yet computed; for plain arrays as RFLAFClassifier."""
        if not self._is_lazy(X):
            return super().predict(X)
        return self._lazily(X, "predict", self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities as a Dask array, not yet computed."""
        if not self._is_lazy(X):
            return super().predict_proba(X)
        return self._lazily(X, "predict_proba", np.float64, len(self.classes_))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities as a Dask array, not yet computed."""
        if not self._is_lazy(X):
            return super().predict_log_proba(X)
        return self._lazily(X, "predict_log_proba", np.float64, len(self.classes_))

    def decision_function(self, X: Any) -> Any:
        """Scores of the classes as a Dask array, not yet computed."""
        if not self._is_lazy(X):
            return super().decision_function(X)
        width = None if len(self.classes_) == 2 else len(self.classes_)
        return self._lazily(X, "decision_function", np.float64, width)
