"""Threads for the kernels: a shared pool, work in chunks that do not depend on its size.

numba's own parallel loops abort the process when two Python threads enter them (the workqueue
layer) or when a process forks after them (OpenMP), and take far longer to compile. Here a kernel
runs on a range of rows without the GIL, and ordinary threads take ranges one by one. What a chunk
is depends on the data's shape alone, and partial sums are added in the order of the chunks, so the
number of threads never changes a result.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache

import joblib

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_busy = 0  # threads inside `parallel`, callers and helpers


def thread_count() -> int:
    """How many threads the kernels may use in this process.

    The first of the variables RFLAF_NUM_THREADS, NUMBA_NUM_THREADS and OMP_NUM_THREADS that is
    set, at most the processors this process may run on. joblib and Dask set the latter two in
    their worker processes.
    """
    available = _available_processors()
    for name in ("RFLAF_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return min(int(value), available)
    return available


@lru_cache(maxsize=1)
def _available_processors() -> int:
    """joblib's count, which reads the limits of the container from files: 100 microseconds."""
    return int(joblib.cpu_count())


def parallel(task: Callable[[int], None], n_chunks: int) -> None:
    """Run task(0), ..., task(n_chunks - 1), on this thread and on those that are free.

    Callers at the same time share the threads: a helper goes home after its chunk when there are
    more threads at work than `thread_count()`. A caller always works itself.
    """
    limit = thread_count()
    helpers = _enter(n_chunks - 1, limit)
    chunks = itertools.count()

    def work(helping: bool) -> None:
        try:
            for k in chunks:
                if k >= n_chunks:
                    return
                task(k)
                if helping and _busy > limit:
                    return
        finally:
            _leave()

    futures = [_get_pool().submit(work, True) for _ in range(helpers)]
    try:
        work(False)
    finally:
        wait(futures)  # they may still be writing into the caller's arrays
    for future in futures:
        future.result()


def _enter(helpers_wanted: int, limit: int) -> int:
    """Count this caller as busy, and as many helpers as there is room for."""
    global _busy
    with _lock:
        helpers = max(0, min(helpers_wanted, limit - _busy - 1))
        _busy += helpers + 1
    return helpers


def _leave() -> None:
    global _busy
    with _lock:
        _busy -= 1


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(_available_processors(), 1), thread_name_prefix="rflaf")
        return _pool


def _forget_pool() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that one of them held."""
    global _pool, _busy, _lock
    _pool, _busy, _lock = None, 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
