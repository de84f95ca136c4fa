"""Workers with too little memory: an error that says so."""

from types import SimpleNamespace

import dask.array as da
import distributed
import numpy as np
import pytest

from rflaf.dask import DaskRFLAFRegressor, partitions

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def test_a_cluster_without_room_for_the_sums(rng):
    x = da.from_array(rng.standard_normal((1400, 3)), chunks=(350, 3))
    model = DaskRFLAFRegressor(
        2500, n_members=1, max_iter=0, metric="none", input_form="raw", random_state=0
    )
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="400MB", dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        pytest.raises(MemoryError, match=r"hold 501 MB .* has 400 MB in all.*'n_components'"),
    ):
        model.fit(x, x[:, 0])
    assert not hasattr(model, "output_weights_")


class Future:
    def __init__(self, error):
        self.error, self.released = error, False

    def result(self, timeout):
        raise self.error

    def done(self):
        return not isinstance(self.error, distributed.TimeoutError)

    def release(self):
        self.released = True


def client_with(error, *states):
    future = Future(error)
    workers = {f"w{k}": {"status": s, "memory_limit": 3e8} for k, s in enumerate(states)}
    return future, SimpleNamespace(
        compute=lambda work, sync: future, scheduler_info=lambda n_workers: {"workers": workers}
    )


@pytest.mark.parametrize("states", [["paused"], ["paused", "paused"], []], ids=repr)
def test_workers_that_wait_for_room(states, monkeypatch):
    monkeypatch.setattr(partitions, "_LOOK_EVERY", 0.0)
    future, client = client_with(distributed.TimeoutError(), *states)
    with pytest.raises(MemoryError, match=r"no worker available.*(300 MB|None is left)"):
        partitions.run(client, None)
    assert future.released


def test_workers_that_are_killed():
    error = distributed.KilledWorker("task", SimpleNamespace(address="w0"), 3)
    future, client = client_with(error, "running")
    with pytest.raises(MemoryError, match=r"died repeatedly.*300 MB"):
        partitions.run(client, None)
    assert future.released


def test_a_timeout_of_the_work_itself_is_told():
    _, client = client_with(ValueError("in the work"), "paused")
    with pytest.raises(ValueError, match="in the work"):
        partitions.run(client, None)


def test_an_answer_without_the_workers_is_asked_for_again():
    worker = {"status": "running", "memory_limit": 3e8}
    answers = [{"workers": {}, "n_workers": 1}] * 2 + [{"workers": {"w0": worker}, "n_workers": 1}]
    client = SimpleNamespace(scheduler_info=lambda n_workers: answers.pop(0))
    with pytest.raises(MemoryError, match=r"The worker w0 has 300 MB in all"):
        partitions.check_workers(client, np.zeros(10**8), 1)


def test_the_bytes_of_results():
    assert partitions.held_bytes([(np.zeros(3), np.zeros((2, 2), np.float32)), 5, None]) == 24 + 16
