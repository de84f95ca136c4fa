"""Fits on a cluster give the model of one machine."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from rflaf import RFLAFClassifier, RFLAFRegressor, load, save
from rflaf.estimators.validation import InputCheck
from rflaf.fitting import budget
from rflaf.fitting.classes import ClassTally
from rflaf.rows import Block
from rflaf.rows.sample import SampleDraw

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pandas = pytest.importorskip("pandas")
from rflaf.dask import DaskRFLAFClassifier, DaskRFLAFRegressor  # noqa: E402
from rflaf.dask.base import predict_rows  # noqa: E402
from rflaf.dask.partitions import merge_draws, open_partition, tree  # noqa: E402
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
    near = 1e-6 * np.abs(expected).max()  # members' weights are rounded to float32
    np.testing.assert_allclose(prediction.compute(), expected, rtol=1e-6, atol=near)
    np.testing.assert_allclose(std.compute(), expected_std, rtol=1e-4)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6, atol=near)


@pytest.mark.parametrize("make", [DaskRFLAFRegressor, DaskRFLAFClassifier])
def test_teams(make, client, rows, mixed):
    X, y, weights = rows
    plain = RFLAFRegressor(**OPTIONS, alpha=1e-2)  # a small one makes more of rounding
    if make is DaskRFLAFClassifier:
        plain, y = RFLAFClassifier(**OPTIONS, alpha=1e-2), y > np.median(y)
    plain.fit(X, y, sample_weight=weights)
    model = make(**plain.get_params()).fit(uneven(X), uneven(y), uneven(weights))
    assert {member.seat.team for member in model.members_} == {0, 1, 2}
    rtol = 1e-9 if make is DaskRFLAFRegressor else 1e-4  # logistic regression stops near its least
    assert_near(model, plain, rtol)
    for mine, its in zip(model.members_, plain.members_, strict=True):
        assert mine.weight == its.weight
        assert mine.layer.form.name == its.layer.form.name
        size = np.abs(its.coef).max()
        np.testing.assert_allclose(mine.coef, its.coef, rtol=rtol, atol=rtol * size)


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


@pytest.mark.parametrize("alpha", [1e-2, 1e-4, "auto"])
@pytest.mark.parametrize("names", [["in", "outside"], [3, 1, 7]])
def test_classes(names, alpha, client, rows):
    X, y, weights = rows
    labels = np.array(names)[np.digitize(y, [0.5, 1.0][: len(names) - 1])]
    options = {**OPTIONS, "alpha": alpha, "class_weight": "balanced"}
    plain = RFLAFClassifier(**options).fit(X, labels, sample_weight=weights)
    model = DaskRFLAFClassifier(**options).fit(uneven(X), uneven(labels), uneven(weights))
    # next to no penalty leaves directions in which a step more or less changes the weights alone
    assert_near(model, plain, rtol=1e-9 if model.alpha_ >= 1e-4 else 1e-2)
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    p = model.predict_proba(uneven(X))
    assert p.shape == (N, len(names))
    np.testing.assert_allclose(p.compute(), plain.predict_proba(X), atol=2e-5)
    agree = model.predict(uneven(X)).compute() == plain.predict(X)
    assert agree.mean() > 0.999
    scores = model.decision_function(uneven(X))
    assert scores.shape == plain.decision_function(X).shape
    logs = model.predict_log_proba(uneven(X)).compute()
    np.testing.assert_allclose(np.exp(logs), p.compute(), rtol=1e-6)


@pytest.mark.parametrize("names", [["in", "outside"], [3, 1, 7]])
def test_no_more_rows_than_the_sample_has_give_the_very_same_model(names, client, rows):
    X, y, _ = rows
    labels = np.array(names)[np.digitize(y, [0.5, 1.0][: len(names) - 1])]
    few = slice(0, 300)
    small = DaskRFLAFClassifier(**OPTIONS).fit(uneven(X)[few], uneven(labels)[few])
    assert_near(small, RFLAFClassifier(**OPTIONS).fit(X[few], labels[few]), rtol=0)


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])
def test_conjugate_gradients(fit_intercept, client, rows):
    X, y, weights = rows
    Y = np.column_stack([y, X[:, 0]])
    options = {**OPTIONS, "solver": "cg", "alpha": 1e-2, "fit_intercept": fit_intercept}
    plain = RFLAFRegressor(**options).fit(X, Y, sample_weight=weights)
    model = DaskRFLAFRegressor(**options).fit(uneven(X), uneven(Y, 2), uneven(weights))
    assert model.activation_ == plain.activation_
    assert model.alpha_ == plain.alpha_
    np.testing.assert_array_equal(model.metric_, plain.metric_)
    expected = plain.predict(X)
    got = model.predict(uneven(X)).compute()
    np.testing.assert_allclose(got, expected, atol=1e-3 * expected.std())


def test_conjugate_gradients_that_held_out_rows_stop(client, rows):
    """As good as on one machine; the same to rounding it is not.

    When to stop and which penalty to try next hang on differences of losses that are as small as
    what float32 makes of other blocks, on one machine too.
    """
    X, y, weights = rows
    options = {**OPTIONS, "solver": "cg", "metric": "none"}
    plain = RFLAFRegressor(**options).fit(X, y, sample_weight=weights)
    model = DaskRFLAFRegressor(**options).fit(uneven(X), uneven(y), uneven(weights))
    assert model.activation_ == plain.activation_
    assert model.score(X, y) == pytest.approx(plain.score(X, y), abs=3e-3)
    assert {"alpha", "loss", "steps"} <= model.alpha_path_[0].keys()


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
    before = dict(vars(model))
    with pytest.raises(ValueError, match="Input X contains NaN in row 1234, column 1"):
        model.fit(uneven(spoilt), uneven(y))
    assert vars(model) == before
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
    with pytest.raises(ValueError, match="'solver' parameter"):
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
    for start, labels in ((0, ["a", "b"]), (2, ["b"])):
        n = len(labels)
        found.append(SampleDraw(10, 0, ClassTally))
        found[-1].add(Block(start, np.zeros((n, 1)), np.array(labels), np.ones(n)))
    first, second = (merge_draws(found) for _ in range(2))
    for merged in (first, second):
        assert merged.tally.weights.tolist() == [1, 2]
        assert merged.result().y.tolist() == ["a", "b", "b"]
    assert found[0].tally.weights.tolist() == [1, 1]
    assert found[0].count == 2


def test_partitions_that_do_not_fit_together(rows):
    X, y, weights = rows
    check = InputCheck(RFLAFRegressor, classes=False)
    with pytest.raises(ValueError, match=r"'y' must have 0 rows.*Got 5"):
        open_partition(check, (X[:0], y[:5]), 7, 0)
    with pytest.raises(ValueError, match=r"'sample_weight' must have 5 rows.*Got 4"):
        open_partition(check, (X[:5], y[:5], weights[:4]), 7, 5)
    with pytest.raises(ValueError, match="had 6 rows at first, and 5 later"):
        open_partition(check, (X[:5], y[:5]), 7, 6)
    assert open_partition(check, (X[:0], y[:0]), 7, 0) is None
    opened = open_partition(check, (X[:5], y[:5], weights[:5]), 7, 5)
    assert opened.first == 7
    np.testing.assert_array_equal(opened.weights, weights[:5])


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


# ---- all or nothing


def fails_at(block, limit, path):
    """A block, until so many have been read in all; the count is in a file, for all processes."""
    with path.open("ab") as file:
        file.write(b".")
        count = file.tell()
    if count > limit:
        raise MemoryError("a task has failed")
    return block


@pytest.mark.parametrize("make", [DaskRFLAFRegressor, DaskRFLAFClassifier])
def test_a_task_that_fails_leaves_the_estimator_as_it_was(make, client, rows, tmp_path):
    """The first block of all, one of the sample, one of the passes, the last."""
    X, y, weights = rows
    options = {**OPTIONS, "alpha": 0.1}
    labels = (y > 0.5).astype(int)
    model = make(**options).fit(uneven(X), uneven(labels))
    before, bits = dict(vars(model)), pickle.dumps(vars(model.to_local()))
    expected = model.predict(X)

    def counted(limit, path):
        return uneven(3 * X).map_blocks(fails_at, limit, path, dtype=float)

    whole = tmp_path / "whole"
    make(**options).fit(counted(10**9, whole), uneven(labels), uneven(weights))
    calls = whole.stat().st_size
    assert calls >= 6
    for limit in {0, 1, 2, calls // 2, calls - 1}:
        # a lazy collection of its own each time: what has been computed is not kept
        with pytest.raises(MemoryError, match="a task has failed"):
            model.fit(counted(limit, tmp_path / str(limit)), uneven(labels), uneven(weights))
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
        assert pickle.dumps(vars(model.to_local())) == bits
        np.testing.assert_array_equal(model.predict(X), expected)
    fresh = make(**options)
    with pytest.raises(MemoryError, match="a task has failed"):
        fresh.fit(counted(2, tmp_path / "fresh"), uneven(labels))
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    model.fit(uneven(3 * X), uneven(labels), uneven(weights))  # the cluster is fine
    assert not np.array_equal(model.scale_, before["scale_"])


def join_fails(results):
    raise RuntimeError("results do not fit together")


@pytest.mark.parametrize("call", [1, 2, 5])
def test_a_result_that_does_not_arrive_leaves_the_estimator_as_it_was(
    call, client, rows, monkeypatch
):
    X, y, _ = rows
    labels = (y > 0.5).astype(int)
    model = DaskRFLAFClassifier(**OPTIONS, alpha=0.1).fit(uneven(X), uneven(labels))
    before, calls = dict(vars(model)), []

    def breaking(parts, join):
        calls.append(None)
        return tree(parts, join_fails if len(calls) == call else join)

    monkeypatch.setattr("rflaf.dask.partitions.tree", breaking)
    with pytest.raises(RuntimeError, match="do not fit together"):
        model.fit(uneven(2 * X), uneven(labels))
    assert len(calls) == call
    assert vars(model) == before
