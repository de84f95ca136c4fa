"""Workers that die, tasks and arguments that fail: what is said, and what stays as it was."""

import os
import pickle
import signal
import threading
import time

import dask.array as da
import distributed
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from rflaf.dask import DaskRFLAFClassifier, DaskRFLAFRegressor
from rflaf.dask.partitions import tree
from tests.dask.conftest import OPTIONS, N, assert_near, uneven, unknown

pytestmark = pytest.mark.filterwarnings(
    "ignore:Only .* of the projected inputs:UserWarning",
    "ignore::ResourceWarning",  # sockets of processes that were killed
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


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
