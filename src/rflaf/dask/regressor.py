"""DaskRFLAFRegressor."""

from __future__ import annotations

from typing import Any

from rflaf.dask.base import DaskMixin
from rflaf.estimators.regressor import RFLAFRegressor


class DaskRFLAFRegressor(DaskMixin, RFLAFRegressor):
    """RFLAFRegressor on Dask arrays and frames.

    Parameters and fitted attributes are those of RFLAFRegressor. The model is that of the same rows
    on one machine, up to rounding.

    Attributes
    ----------
    client : distributed.Client
        What fits; set it, or the current client is taken.

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

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Not here: fit takes all rows."""
        raise NotImplementedError("partial_fit is for arrays: 'to_local' gives the plain model.")

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions as a Dask array, not yet computed; for plain arrays as RFLAFRegressor.

        With `return_std`, also the standard deviation of a new observation at each row.
        """
        if not self._is_lazy(X):
            return super().predict(X, return_std)
        width = None if self.output_weights_.ndim == 1 else self.output_weights_.shape[1]
        prediction = self._lazily(X, "predict", self.dtype_, width)
        if not return_std:
            return prediction
        return prediction, self._lazily(X, "predict_std", self.dtype_, width)
