"""Fits inside tasks of workers, and frames whose columns are no numbers."""

import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.dask import DaskRFLAFClassifier, DaskRFLAFRegressor
from rflaf.rows import Blocks
from tests.dask.conftest import OPTIONS

SMALL = {"n_components": 15, "max_iter": 2, "random_state": 0}
WAIT = 240  # seconds: a deadlock shall be seen as one


def rows(seed):
    X = np.random.default_rng(seed).normal(size=(200, 3))
    return X, np.sin(X[:, 0]) + X[:, 1]


def fitted(seed):
    return RFLAFRegressor(**SMALL).fit(*rows(seed)).output_weights_.tobytes()


def cross_validated(seed):
    return cross_val_score(RFLAFRegressor(**SMALL), *rows(seed), cv=2, n_jobs=2).tolist()


def fitted_by_the_cluster(seed):
    """A task that gives tasks to its own cluster, and waits for them."""
    X, y = rows(seed)
    model = DaskRFLAFRegressor(**SMALL)
    with distributed.worker_client():
        model.fit(da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100))
    return model.output_weights_.shape


@pytest.fixture(scope="module", params=["processes", "threads"])
def busy(request):
    """Workers that run several tasks at once."""
    processes = request.param == "processes"
    workers, threads = (2, 2) if processes else (1, 4)
    with (
        distributed.LocalCluster(
            workers, threads_per_worker=threads, processes=processes, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("job", [fitted, cross_validated])
def test_a_fit_in_a_task_is_the_fit_outside(job, busy):
    found = [future.result(WAIT) for future in busy.map(job, range(6), pure=False)]
    assert found == [job(seed) for seed in range(6)]


def test_a_fit_by_the_cluster_in_a_task_of_it(busy):
    """Of the first tasks, one connects its worker's client, and the others must wait for it."""
    futures = busy.map(fitted_by_the_cluster, range(4), pure=False)
    assert [future.result(WAIT) for future in futures] == [(15,)] * 4


# ---- frames


def mixed():
    X, y = rows(0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return frame, pd.Series(np.where(y > 0, "high", "low"), name="y")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (lambda d: d.a.round(0).astype(int).astype("category"), "Categorical"),  # unknown ones
        (lambda d: d.a.round(0).astype("category").cat.as_known(), "Categorical"),
        (lambda d: d.a.map(lambda value: f"t{value:.0f}", meta=("a", "str")), "String"),
        (lambda d: dd.to_datetime(d.a), "Datetime"),
    ],
    ids=["unknown categories", "known categories", "text", "dates"],
)
def test_columns_that_are_no_numbers_are_named(column, kind, client):
    """Categories of numbers would be taken for numbers, and text gave an error without a name."""
    frame, _ = mixed()
    table = dd.from_pandas(frame, npartitions=3)
    model = DaskRFLAFRegressor(**OPTIONS)
    with pytest.raises(ValueError, match=rf"must be numbers. Got {kind}.* in column 'town'"):
        model.fit(table.assign(town=column(table)), table.b)
    assert not hasattr(model, "output_weights_")


def test_blocks_with_categories_are_refused_alike():
    frame, _ = mixed()
    town = frame["a"].round(0).astype("category")
    blocks = Blocks([(frame.assign(town=town), frame["b"])])
    with pytest.raises(ValueError, match=r"must be numbers. Got Categorical in column 'town'"):
        RFLAFRegressor(**SMALL).fit(blocks)


def test_classes_of_unknown_categories(client):
    """The partitions know different ones; the classes are those of all."""
    frame, y = mixed()
    y[:70] = "first"
    table = dd.from_pandas(frame.assign(y=y), npartitions=3)
    labels = table.y.astype("category")
    assert not labels.cat.known
    model = DaskRFLAFClassifier(**OPTIONS).fit(table[["a", "b", "c"]], labels)
    assert model.classes_.tolist() == ["first", "high", "low"]
    plain = RFLAFClassifier(**OPTIONS).fit(frame, y)
    assert np.mean(model.predict(table[["a", "b", "c"]]).compute() == plain.predict(frame)) > 0.9
