"""Fits on a cluster give the model of one machine."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from rflaf.estimators.classes import ClassTally
from sklearn.exceptions import NotFittedError

from rflaf import RFLAFClassifier, RFLAFRegressor, load, save
from rflaf.fitting import budget

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pandas = pytest.importorskip("pandas")
from rflaf.dask.tasks import Drawn, checked, merge_drawn, predict_rows, tree  # noqa: E402

from rflaf.dask import DaskRFLAFClassifier, DaskRFLAFRegressor  # noqa: E402
from tests.tables import weighted_rows  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:Only .* of the projected inputs:UserWarning",
    "ignore::ResourceWarning",  # sockets of processes that were killed
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

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
    monkeypatch.setattr(budget, "SAMPLE_ROWS", 1000)


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
    assert model.alpha_ == plain.alpha_
    size = np.abs(plain.coef_).max()
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=rtol, atol=rtol * size)


def test_regression(client, rows):
    X, y, weights = rows
    Y = np.column_stack([y, X[:, 0]])
    plain = RFLAFRegressor(**OPTIONS).fit(X, Y, sample_weight=weights)
    model = DaskRFLAFRegressor(**OPTIONS)
    # columns in chunks of their own, targets cut elsewhere
    model.fit(uneven(X, (2, 1)), da.from_array(Y, chunks=(777, 1)), uneven(weights))
    assert_near(model, plain)
    prediction, std = model.predict(uneven(X), return_std=True)
    assert isinstance(prediction, da.Array)
    assert prediction.shape == std.shape == (N, 2)
    expected, expected_std = plain.predict(X, return_std=True)
    np.testing.assert_allclose(prediction.compute(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(std.compute(), expected_std, rtol=1e-4)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6, atol=1e-6)


def test_unknown_chunks(client, rows):
    X, y, _ = rows
    model = DaskRFLAFRegressor(**OPTIONS).fit(unknown(uneven(X)), unknown(uneven(y)))
    plain = RFLAFRegressor(**OPTIONS).fit(X, y)
    assert_near(model, plain)
    prediction = model.predict(unknown(uneven(X.astype(np.float32))))
    assert np.isnan(prediction.shape[0])
    assert prediction.dtype == np.float32
    np.testing.assert_allclose(prediction.compute(), plain.predict(X), rtol=1e-3, atol=1e-3)


def test_frames(client, rows, tmp_path):
    X, y, weights = rows
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    parts = [frame[:1000], frame[:0], frame[1000:]]
    frames = dd.from_map(lambda k: parts[k], range(3), meta=frame[:0])
    others = [
        dd.from_map(lambda k, s=s: [s[:1000], s[:0], s[1000:]][k], range(3), meta=s[:0])
        for s in (pandas.Series(y, name="y"), pandas.Series(weights, name="w"))
    ]
    model = DaskRFLAFRegressor(**OPTIONS).fit(frames, *others)
    plain = RFLAFRegressor(**OPTIONS).fit(frame, y, sample_weight=weights)
    assert_near(model, plain)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    prediction = model.predict(frames).compute()
    np.testing.assert_allclose(prediction, plain.predict(frame), rtol=1e-6, atol=1e-6)
    local = model.to_local()
    assert type(local) is RFLAFRegressor
    np.testing.assert_array_equal(local.predict(frame), model.predict(frame))
    save(local, tmp_path / "model.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "model.skops").predict(frame), local.predict(frame)
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frames[["b", "a", "c"]]).compute()


@pytest.mark.parametrize("names", [["in", "outside"], [3, 1, 7]])
def test_classes(names, client, rows):
    X, y, weights = rows
    labels = np.array(names)[np.digitize(y, [0.5, 1.0][: len(names) - 1])]
    options = {**OPTIONS, "alpha": 1e-2, "class_weight": "balanced"}
    plain = RFLAFClassifier(**options).fit(X, labels, sample_weight=weights)
    model = DaskRFLAFClassifier(**options).fit(uneven(X), uneven(labels), uneven(weights))
    assert_near(model, plain, rtol=1e-2)  # as close as the steps of the solver end
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    p = model.predict_proba(uneven(X))
    assert p.shape == (N, len(names))
    np.testing.assert_allclose(p.compute(), plain.predict_proba(X), atol=1e-3)
    agree = model.predict(uneven(X)).compute() == plain.predict(X)
    assert agree.mean() > 0.998
    scores = model.decision_function(uneven(X))
    assert scores.shape == plain.decision_function(X).shape
    logs = model.predict_log_proba(uneven(X)).compute()
    np.testing.assert_allclose(np.exp(logs), p.compute(), rtol=1e-6)
    few = slice(0, 300)  # no more than the sample: the very same model
    one, other = uneven(X)[few], uneven(labels)[few]
    small = DaskRFLAFClassifier(**OPTIONS).fit(one, other)
    assert_near(small, RFLAFClassifier(**OPTIONS).fit(X[few], labels[few]), rtol=0)


def slow_identity(block, seconds):
    time.sleep(seconds)
    return block


def test_a_worker_that_is_killed_changes_nothing(client, rows):
    X, y, _ = rows
    x, target = (
        da.from_array(part, chunks=(300, 3)[: part.ndim]).map_blocks(
            slow_identity, 0.15, dtype=float
        )
        for part in (X, y)
    )
    undisturbed = DaskRFLAFRegressor(**OPTIONS).fit(x, target)
    victim = client.run(os.getpid)
    pid = next(iter(victim.values()))
    killer = threading.Timer(1.0, os.kill, (pid, signal.SIGKILL))
    killer.start()
    model = DaskRFLAFRegressor(**OPTIONS).fit(x, target)
    killer.join()
    assert_near(model, undisturbed)
    client.wait_for_workers(2, timeout=60)
    assert pid not in client.run(os.getpid).values()


def test_errors_come_from_the_workers(client, rows):
    X, y, _ = rows
    spoilt = X.copy()
    spoilt[1234, 1] = np.nan
    model = DaskRFLAFRegressor(**OPTIONS).fit(uneven(X), uneven(y))
    with pytest.raises(ValueError, match="Input X contains NaN in row 1234, column 1"):
        model.fit(uneven(spoilt), uneven(y))
    assert set(vars(model)) == set(model.get_params())
    with pytest.raises(ValueError, match="positive entry"):
        model.fit(uneven(X), uneven(y), uneven(0 * y))
    with pytest.raises(ValueError, match="'y' must have 2400 rows"):
        model.fit(uneven(X), uneven(y)[:-1])
    with pytest.raises(ValueError, match="'y' must have 4 partitions"):
        model.fit(unknown(uneven(X)), unknown(da.from_array(y, chunks=N)))
    with pytest.raises(TypeError, match="'y' parameter must be a Dask array or frame"):
        model.fit(uneven(X), y)
    with pytest.raises(TypeError, match="'X' parameter must be a Dask array or frame"):
        model.fit(X, uneven(y))
    with pytest.raises(ValueError, match="requires y"):
        model.fit(uneven(X))
    with pytest.raises(ValueError, match="no rows"):
        model.fit(uneven(X)[:0], uneven(y)[:0])
    with pytest.raises(ValueError, match="solver='adam'"):
        DaskRFLAFRegressor(solver="adam").fit(uneven(X), uneven(y))
    with pytest.raises(ValueError, match="n_components"):
        DaskRFLAFRegressor(0).fit(uneven(X), uneven(y))


def test_without_a_client(rows, monkeypatch):
    X, y, _ = rows
    model = DaskRFLAFRegressor(**OPTIONS)

    def none(*_args, **_kwargs):
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match="DaskRFLAFRegressor found no Dask client"):
        model.fit(uneven(X), uneven(y))


def test_a_client_that_is_closed(client, rows):
    X, y, _ = rows
    model = DaskRFLAFClassifier(**OPTIONS)
    model.client = distributed.Client(client.scheduler.address, set_as_default=False)
    model.client.close()
    with pytest.raises(ValueError, match="Its status is 'closed'"):
        model.fit(uneven(X), uneven(y))
    with pytest.raises(ValueError, match="Its status is 'closed'"):  # it is still the one set
        model.fit(uneven(X), uneven(y))
    model.client = client
    with pytest.raises(ValueError, match="requires y"):
        model.fit(uneven(X))
    assert model.client is client
    assert "_client" not in vars(pickle.loads(pickle.dumps(model)))


def test_a_tree_keeps_the_order():
    import dask

    for n in (1, 7, 8, 9, 70):
        leaves = [dask.delayed([k]) for k in range(n)]
        joined = tree(leaves, lambda found: [k for part in found for k in part])
        assert joined.compute(scheduler="synchronous") == list(range(n))


def test_what_tasks_gave_stays_as_it_is():
    """The scheduler may run what follows once more."""
    found = []
    for labels in (["a", "b"], ["b"]):
        tally = ClassTally()
        tally.add(np.array(labels), np.ones(len(labels)))
        found.append(Drawn(None, len(labels), len(labels), tally, 10))
    first, second = (merge_drawn(found).tally for _ in range(2))
    for merged in (first, second):
        assert merged.weights.tolist() == [1, 2]
    assert found[0].tally.weights.tolist() == [1, 1]


def test_partitions_that_do_not_fit_together(rows):
    X, y, weights = rows
    with pytest.raises(ValueError, match=r"'y' must have 0 rows.*Got 5"):
        checked(RFLAFRegressor(), (X[:0], y[:5]), 7, 0)
    with pytest.raises(ValueError, match=r"'sample_weight' must have 5 rows.*Got 4"):
        checked(RFLAFRegressor(), (X[:5], y[:5], weights[:4]), 7, 5)


def test_predictions_need_a_fit(rows):
    for model in (DaskRFLAFRegressor(), DaskRFLAFClassifier()):
        with pytest.raises(NotFittedError):
            model.predict(uneven(rows[0]))


def test_a_partition_without_rows(rows):
    X, y, _ = rows
    model = RFLAFRegressor(**OPTIONS).fit(pandas.DataFrame(X, columns=["a", "b", "c"]), y)
    empty = pandas.DataFrame(X[:0], columns=["a", "b", "c"])
    assert predict_rows(model, empty, "predict").shape == (0,)
    model = RFLAFRegressor(**OPTIONS).fit(X, y)
    for dtype in (np.float32, np.float64):
        assert predict_rows(model, X[:0].astype(dtype), "predict").dtype == dtype
