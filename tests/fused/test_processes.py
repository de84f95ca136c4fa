"""Threads, forks and worker processes."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest

import rflaf
from rflaf import Activation, fused
from rflaf.bases import RBF
from rflaf.runtime import threads
from rflaf.runtime.cached import computed_once
from tests.fused.test_starting import run

SOURCE = Path(rflaf.__file__).parent


def job(seed):
    """Every kernel once, on enough rows for several chunks."""
    rng = np.random.default_rng(seed)
    sigma = Activation(RBF(17), rng.standard_normal(17)).table()
    z = rng.standard_normal((300, 700)).astype(np.float32)
    v = rng.standard_normal(700).astype(np.float32)
    gradient = fused.adjoint(sigma, z, (np.ones(300, np.float32), v))
    return float(fused.predict(sigma, z, v).sum() + gradient.sum() + fused.apply(sigma, z).sum())


@pytest.fixture(scope="module")
def expected():
    return [job(seed) for seed in range(8)]


def test_many_python_threads_at_once(expected):
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert list(pool.map(job, range(8))) == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_new_processes(method, expected):
    job(0)  # this process has a pool when it forks
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(job, range(8)).get(timeout=120) == expected


def test_a_fork_while_another_thread_is_at_work(expected):
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            job(1)

    worker = threading.Thread(target=busy)
    worker.start()
    try:
        for _ in range(20):  # a lock that the thread holds now and then is met sooner or later
            test_new_processes("fork", expected)
    finally:
        stop.set()
        worker.join()


def test_no_lock_guards_what_is_computed_once():
    """A fork while another thread computes such a value must not wait for that thread."""
    began, end = threading.Event(), threading.Event()

    class Slow:
        @computed_once
        def value(self):
            if threading.current_thread() is not threading.main_thread():
                began.set()
                end.wait(60)
            return threading.get_ident()

    thing, other = Slow(), Slow()
    worker = threading.Thread(target=lambda: other.value)
    worker.start()
    try:
        assert began.wait(60)
        assert thing.value == thing.value == threading.get_ident()
    finally:
        end.set()
        worker.join()


def test_no_lock_of_functools_is_used():
    """`cached_property` has one per class, up to Python 3.11."""
    users = [file.name for file in SOURCE.rglob("*.py") if "@cached_property" in file.read_text()]
    assert users == []


def test_joblib_workers_do_not_oversubscribe(expected):
    with joblib.parallel_config("loky", n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(job)(s) for s in range(8)) == expected
        share = max(1, joblib.cpu_count() // 2)
        counts = joblib.Parallel()(joblib.delayed(fused.thread_count)() for _ in range(2))
    assert max(counts) <= share


def test_callers_share_the_threads(monkeypatch):
    """A helper of the first caller stops when others come."""
    monkeypatch.setenv("RFLAF_NUM_THREADS", "2")
    monkeypatch.setattr(threads, "_available_processors", lambda: 2)
    lock, state = threading.Lock(), {"now": 0, "most": 0}
    pause = threading.Event()

    def task(_):
        with lock:
            state["now"] += 1
            state["most"] = max(state["most"], state["now"])
        pause.wait(0.002)
        with lock:
            state["now"] -= 1

    def call(_):
        threads.parallel(task, 10)

    call(0)
    assert state["most"] == 2
    started = threading.Barrier(4)  # three callers, and the first one's helper
    state["most"] = 0
    after = []

    def first(k):
        if k < 2:
            started.wait(10)
        else:
            after.append(threading.current_thread().name)

    def later(k):
        if k == 0:
            started.wait(10)
        pause.wait(0.002)

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(threads.parallel, first, 20)]
        while len(threads._inside) < 2:
            pause.wait(0.001)
        jobs += [pool.submit(threads.parallel, later, 20) for _ in range(2)]
        for done in jobs:
            done.result()
    assert len(after) == 18
    assert len(set(after)) == 1  # the caller alone went on
    assert not threads._inside


def test_helpers_keep_to_the_limit_of_their_caller(monkeypatch):
    """What a helper calls uses no more threads than the caller may."""
    for name in ("RFLAF_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_available_processors", lambda: 8)
    monkeypatch.setattr(threads, "_pool", None)
    met, counts = threading.Barrier(2), []

    def task(_):
        met.wait(10)  # the caller and a helper, one chunk each
        counts.append(threads.thread_count())

    with threads.use_threads(2):
        threads.parallel(task, 2)
    assert counts == [2, 2]
    assert threads.thread_count() == 8


def test_an_error_in_a_chunk_is_raised():
    def task(k):
        if k == 5:
            raise RuntimeError("chunk five")

    with pytest.raises(RuntimeError, match="chunk five"):
        threads.parallel(task, 10)
    assert not threads._inside


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ZeroDivisionError])
def test_helpers_stop_soon_after_their_caller_has_left(processors, failure):
    """Someone who presses Ctrl-C does not wait for what a helper has just begun."""
    caller, met = threading.get_ident(), threading.Barrier(2)
    steps: list[int] = []

    def task(_):
        met.wait(10)
        if threading.get_ident() == caller:
            raise failure
        for _ in range(1000):  # a long chunk, whose steps are parallel in turn, and in these again
            threads.parallel(lambda _: threads.parallel(lambda _: time.sleep(0.005), 1), 1)
            steps.append(1)

    with threads.use_threads(2), pytest.raises(failure):
        threads.parallel(task, 2)
    assert len(steps) < 500
    assert not threads._inside
    threads.parallel(steps.append, 3)  # as if nothing had been
    assert sorted(steps[-3:]) == [0, 1, 2]


INTERRUPTED = """
import os, signal, threading, time
from rflaf.runtime import threads
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits it ignored
threads._available_processors = lambda: 4
caller, met, steps = threading.get_ident(), threading.Barrier(2), []

def task(_):
    met.wait(10)
    if threading.get_ident() == caller:
        return  # and wait for the other
    for k in range(1000):
        if k == 20:
            os.kill(os.getpid(), signal.SIGINT)
        threads.parallel(lambda _: time.sleep(0.005), 1)
        steps.append(1)

try:
    with threads.use_threads(2):
        threads.parallel(task, 2)
except KeyboardInterrupt:
    done = len(steps)
    time.sleep(0.1)
    print(20 <= done < 500, len(steps) == done, not threads._inside)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_helpers_stop_when_their_caller_is_interrupted_while_it_waits(tmp_path):
    """In a process of its own: other libraries change what a signal does to a thread that waits."""
    free = dict.fromkeys(("RFLAF_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "")
    assert run(INTERRUPTED, tmp_path, **free) == "True True True"


@pytest.mark.parametrize(
    ("variables", "expected_count"),
    [
        ({"RFLAF_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"RFLAF_NUM_THREADS": "3", "OMP_NUM_THREADS": "1"}, 3),
        ({"RFLAF_NUM_THREADS": "100"}, 4),
        ({"RFLAF_NUM_THREADS": "many"}, 4),
        ({}, 4),
    ],
)
def test_thread_count(variables, expected_count, monkeypatch):
    monkeypatch.setattr(threads, "_available_processors", lambda: 4)
    for name in ("RFLAF_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert fused.thread_count() == expected_count
