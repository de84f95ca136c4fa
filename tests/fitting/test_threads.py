"""BLAS has one thread inside a fit, and what it had before after it."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from rflaf import RFLAFClassifier, RFLAFRegressor
from rflaf.fitting import solving
from rflaf.runtime.threads import _one_blas_thread, use_threads


def blas():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    """More than one, whatever the machine and its variables say."""
    with threadpool_limits(2, user_api="blas"):
        if set(blas()) != {2}:
            pytest.skip("this BLAS keeps to one thread")
        yield


@pytest.fixture
def rows(rng):
    x = rng.standard_normal((150, 2))
    return x, np.sin(x[:, 0])


def model(**options):
    return RFLAFRegressor(20, max_iter=2, n_members=2, random_state=0, **options)


@pytest.fixture
def seen(monkeypatch):
    """What BLAS has inside fits, where the rows are solved for."""
    found = []
    solve = solving.solve_sums

    def watched(*arguments):
        found.append(set(blas()))
        return solve(*arguments)

    monkeypatch.setattr(solving, "solve_sums", watched)
    return found


def test_after_a_fit(rows, seen):
    x, y = rows
    model().fit(x, y)
    assert seen == [{1}]
    assert set(blas()) == {2}
    RFLAFClassifier(20, max_iter=2, n_members=2, random_state=0).fit(x, y > 0)
    assert set(blas()) == {2}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_after_a_fit_that_fails(rows, error, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(solving, "solve_sums", fail)
    with pytest.raises(error):
        model().fit(*rows)
    assert set(blas()) == {2}
    with pytest.raises(error), use_threads(1):
        raise error
    assert set(blas()) == {2}


def test_who_is_interrupted_on_the_way_out_counts_no_longer(rows, seen, monkeypatch):
    def interrupted(guest):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_one_blas_thread, "leave", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model().fit(*rows)
    assert set(blas()) == {1}
    threadpool_limits(2, user_api="blas")  # by someone else
    model().fit(*rows)
    assert seen == [{1}, {1}]
    assert set(blas()) == {2}


def test_two_fits_at_once(rows, seen):
    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            jobs = [pool.submit(model().fit, *rows) for _ in range(2)]
            models = [job.result() for job in jobs]
            assert set(blas()) == {2}
    assert seen == [{1}] * 8
    np.testing.assert_array_equal(models[0].output_weights_, models[1].output_weights_)


def test_the_last_to_leave_restores(rows):
    """One comes while another is inside, and stays longer."""
    inside, out, done = threading.Event(), threading.Event(), threading.Event()

    def first():
        with use_threads(1):
            inside.set()
            out.wait(10)
        done.set()

    worker = threading.Thread(target=first)
    worker.start()
    inside.wait(10)
    with use_threads(2):
        out.set()
        done.wait(10)
        assert set(blas()) == {1}
    worker.join()
    assert set(blas()) == {2}


def _use():
    with use_threads(1):
        pass
    return blas()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_fork_while_somebody_is_inside():
    """The child has none of its parent's fits: it is not locked, and restores what was before."""
    with (
        use_threads(1),
        _one_blas_thread._lock,
        multiprocessing.get_context("fork").Pool(1) as pool,
    ):
        assert set(pool.apply_async(_use).get(timeout=30)) == {2}
    assert set(blas()) == {2}
