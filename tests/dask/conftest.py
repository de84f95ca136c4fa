"""A cluster of two processes; tests of rflaf.dask are skipped without Dask."""

import importlib.util

import numpy as np
import pytest

from rflaf import rules
from tests.tables import weighted_rows

if any(importlib.util.find_spec(name) is None for name in ("dask", "distributed", "pandas")):
    collect_ignore_glob = ["test_*.py"]
else:
    import dask.array as da
    import distributed

N = 2400
OPTIONS = {"n_components": 25, "max_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def short_sample(monkeypatch):
    """So that the workers sum over the rows."""
    monkeypatch.setattr(rules, "SAMPLE_ROWS", 1000)


@pytest.fixture(scope="module")
def rows():
    return weighted_rows(N)


def uneven(X, columns=3):
    return da.from_array(X, chunks=((900, 0, 1400, 100), columns)[: X.ndim])


def unknown(x):
    """A Dask array that does not know how many rows its chunks have."""
    return x.map_blocks(lambda block: block, dtype=x.dtype, chunks=x.chunks)[
        da.ones(N, chunks=x.chunks[0]) > 0
    ]


def assert_near(model, plain, rtol=1e-9):
    assert model.activation_ == plain.activation_
    for name in ("mean_", "scale_", "metric_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))
    # it lies between two steps, and moves by a rounding error where the losses do
    np.testing.assert_allclose(model.alpha_, plain.alpha_, rtol=1e-6 if rtol else 0)
    # sums in another order differ in their last digit, which moves the weights by 1 / alpha of it
    rtol = max(rtol, 1e-15 / plain.alpha_) if rtol else 0
    size = np.abs(plain.output_weights_).max()
    np.testing.assert_allclose(
        model.output_weights_, plain.output_weights_, rtol=rtol, atol=rtol * size
    )
