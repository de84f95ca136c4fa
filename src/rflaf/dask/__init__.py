"""Estimators on Dask collections (extra `dask`).

Partitions stay on the workers. The client sees a sample of rows, which the activation is learned
on, and sums over rows.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError("rflaf.dask needs Dask: pip install 'rflaf[dask]'.") from error

from rflaf.dask.estimators import DaskRFLAFClassifier, DaskRFLAFRegressor

__all__ = ["DaskRFLAFClassifier", "DaskRFLAFRegressor"]
