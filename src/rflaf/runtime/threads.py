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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import lru_cache
from typing import Any
from weakref import WeakSet

import joblib
from threadpoolctl import ThreadpoolController

from rflaf.runtime.clock import check_time

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_inside: set[object] = set()  # threads inside `parallel`, callers and helpers


def thread_count() -> int:
    """How many threads the kernels may use in this process.

    The first of the variables RFLAF_NUM_THREADS, NUMBA_NUM_THREADS and OMP_NUM_THREADS that is
    set, at most the processors this process may run on. joblib and Dask set the latter two in
    their worker processes.
    """
    available = min(_available_processors(), _limit.get() or _available_processors())
    for name in ("RFLAF_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return min(int(value), available)
    return available


@lru_cache(maxsize=1)
def _available_processors() -> int:
    """joblib's count, which reads the limits of the container from files: 100 microseconds."""
    return int(joblib.cpu_count())


@contextmanager
def use_threads(n_jobs: int | None) -> Iterator[None]:
    """Let the kernels that this thread calls use `n_jobs` threads, and BLAS one.

    BLAS gains little from several threads on matrices of this size, loses much where the machine
    is busy, and rounds otherwise with each number of them. Work is spread over threads here
    instead, in parts that do not depend on their number. None: the setting of joblib's context, and
    without one all processors.
    """
    if n_jobs is None:
        _, n_jobs = joblib.parallel.get_active_backend()
    if n_jobs is None:
        n_jobs = -1
    most = joblib.cpu_count() if n_jobs == 0 else joblib.effective_n_jobs(n_jobs)
    before = _limit.set(max(int(most), 1))
    guest = _Guest()
    try:
        _one_blas_thread.enter(guest)
        yield
    finally:
        _limit.reset(before)
        _one_blas_thread.leave(guest)


class at_most:  # a class and no generator: every step of training enters it twice
    """Let the kernels that this thread calls use no more than `n_threads`."""

    def __init__(self, n_threads: int) -> None:
        self._most = n_threads

    def __enter__(self) -> None:
        self._before = _limit.set(min(self._most, _limit.get() or self._most))

    def __exit__(self, *_: object) -> None:
        _limit.reset(self._before)


class _Guest:
    """Someone who wants one BLAS thread."""


class _OneBlasThread:
    """BLAS has one thread while any fit is inside; the last to leave restores its setting.

    A guest that an interrupt kept from leaving no longer counts once it is garbage-collected.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), WeakSet[_Guest]()
        self._limits: Any = None

    def enter(self, guest: _Guest) -> None:
        with self._lock:
            _take_control()
            if self._limits is None:
                self._limits = _blas().limit(limits=1, user_api="blas")
            else:  # others may have changed it meanwhile
                for library in _blas().lib_controllers:
                    if library.user_api == "blas" and library.num_threads != 1:
                        library.set_num_threads(1)
            self._inside.add(guest)

    def leave(self, guest: _Guest) -> None:
        with self._lock:
            self._inside.discard(guest)
            if not self._inside and self._limits is not None:
                _take_control()  # from the one who came first
                self._limits.restore_original_limits()
                self._limits = None
                _take_control()

    def forget(self) -> None:
        """In a forked child no fit is inside; the next to leave restores the parent's setting."""
        self._lock, self._inside = threading.Lock(), WeakSet()


def _take_control() -> None:
    """Let any thread set the threads of BLAS: threadpoolctl 3.8 obeys only the first that did."""
    for library in _blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@lru_cache(maxsize=1)
def _blas() -> Any:
    """Finding the libraries that are loaded takes milliseconds, and they do not change."""
    return ThreadpoolController()


class CallerLeft(Exception):
    """What a helper raises once nobody waits for its result: an error or Ctrl-C met the caller."""


class _Call:
    """A call of `parallel`, and the one that it was made in."""

    def __init__(self, outer: _Call | None) -> None:
        self.outer, self.left = outer, False

    def check(self) -> None:
        """Raise if the caller, or a caller of the caller, has left."""
        call: _Call | None = self
        while call is not None:
            if call.left:
                raise CallerLeft
            call = call.outer


_limit: ContextVar[int | None] = ContextVar("_limit", default=None)
_helps: ContextVar[_Call | None] = ContextVar("_helps", default=None)
_one_blas_thread = _OneBlasThread()


def nobody_helps() -> bool:
    """Whether the caller of `parallel` would be left to itself now."""
    nested = threading.get_ident() in _inside
    return thread_count() - len(_inside) - (0 if nested else 1) <= 0


def parallel(task: Callable[[int], None], n_chunks: int) -> None:
    """Run task(0), ..., task(n_chunks - 1), on this thread and on those that are free.

    Callers at the same time share the threads: a helper goes home after its chunk when there are
    more threads at work than `thread_count()`. A caller always works itself. Once it has failed or
    was interrupted, helpers stop at the next call of `parallel` in their chunk, or at its end.
    """
    outer = _helps.get()
    if outer is not None:
        outer.check()
    check_time()
    limit = thread_count() if n_chunks > 1 else 1
    if limit == 1:  # nobody could help
        for k in range(n_chunks):
            check_time()
            task(k)
        return
    caller = threading.get_ident()
    nested = caller in _inside
    chunks, futures = itertools.count(), []
    free = limit - len(_inside) - (0 if nested else 1)
    helpers = [object() for _ in range(max(0, min(n_chunks - 1, free)))]
    call = _Call(outer)

    def work(helping: bool) -> None:
        for k in chunks:
            if k >= n_chunks or call.left:
                return
            check_time()
            task(k)
            if helping and len(_inside) > limit:
                return

    def help_out(helper: object) -> None:
        place = threading.get_ident()
        _helps.set(call)
        try:
            _inside.add(place)  # in the place that was kept for it
            _inside.discard(helper)
            work(True)
        finally:
            _inside.difference_update([place, helper])

    try:
        _inside.add(caller)
        for helper in helpers:
            _inside.add(helper)
            # with the caller's limit, for what the helper calls in turn
            futures.append(_get_pool().submit(copy_context().run, help_out, helper))
        work(False)
        wait(futures)  # here, so that an interrupt meanwhile is one of the caller, too
    except BaseException:
        call.left = True
        raise
    finally:
        # an interrupt may come at any moment: who was not sent out goes home with the caller
        _inside.difference_update(
            helpers[len(futures) :] if nested else [caller, *helpers[len(futures) :]]
        )
        wait(futures)  # they may still be writing into the caller's arrays
    for future in futures:
        future.result()


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(_available_processors(), 1), thread_name_prefix="rflaf")
        return _pool


def _forget_pool() -> None:
    """A forked child has none of its parent's threads, and perhaps a lock that one of them held."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
    _inside.clear()
    _one_blas_thread.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
