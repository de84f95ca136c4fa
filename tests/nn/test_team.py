"""PyTorch's threads run the kernels: the same bits for any number of them, and without them."""

import ctypes
import multiprocessing
from functools import lru_cache

import numpy as np
import pytest
import torch

from rflaf.bases import RBF, BSpline, Continued
from rflaf.nn import RFLAF, LearnableActivation, eager, team
from rflaf.nn import table_kernels as kernels
from rflaf.nn.layouts import basis_name, named_basis
from rflaf.nn.table_maps import table_map
from rflaf.runtime import threads

GAUSSIANS, SPLINES = basis_name(RBF(17)), basis_name(Continued(BSpline(9)))
SHAPES = [(1, 1, 300_001), (30, 70, 41), (5, 3, 9000)]  # outer, channels, inner
needs_team = pytest.mark.skipif(team._find_starter() is None, reason="no GOMP_parallel in PyTorch")


@lru_cache(maxsize=64)  # made before a fork: in a child PyTorch's operations may wait for ever
def drawn(shape, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


@lru_cache(maxsize=64)
def tables_of(name, channels, dtype):
    return table_map(name).tables(drawn((channels, named_basis(name).n), dtype, 3), dtype)


def unknown(like, shape):
    return torch.from_numpy(np.full(shape, np.nan, like.numpy().dtype))


def block(shape, dtype=torch.float32, name=GAUSSIANS):
    """Values, sums and slopes of z in the shape that the kernels take."""
    tables, z, g = tables_of(name, shape[1], dtype), drawn(shape, dtype), drawn(shape, dtype, 1)
    out, dz = unknown(z, shape), unknown(z, shape)
    kernels.apply_tables(tables, z, shape, out)
    sums = kernels.cell_sums(tables, z, shape, g, dz).copy()
    np.testing.assert_array_equal(kernels.cell_sums(tables, z, shape, g, None), sums)
    return out.numpy(), sums, dz.numpy()


def network(dtype=torch.float32, outputs=(), n=300):
    """Values, sigma(Z), sums and slopes of a read-out of rows in any order."""
    tables = tables_of(GAUSSIANS, 1, dtype)
    z, order = drawn((200, 701), dtype), torch.from_numpy(np.arange(n) * 7 % 200)
    v, h = drawn((701, *outputs), dtype, 1), drawn((n, *outputs), dtype, 2)
    phi, dz = unknown(z, (n, 701)), unknown(z, (n, 701))
    out = kernels.readout_tables(tables, z, order, v, phi)
    sums = kernels.readout_sums(tables, z, order, v, h, dz)
    np.testing.assert_array_equal(kernels.readout_sums(tables, z, order, v, h, None), sums)
    return out.numpy(), phi.numpy(), sums, dz.numpy()


def everything():
    return [array for shape in SHAPES for array in block(shape)] + list(network())


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def started(processors, monkeypatch):
    """Threads asked for and seats, of each time that PyTorch's threads are started."""
    found, calls = team._find_starter(), []

    def start(function, call, n_threads, flags):
        calls.append((n_threads, (ctypes.c_int64 * team._ARRAYS).from_address(call)[team._SEATS]))
        found(function, call, n_threads, flags)

    monkeypatch.setattr(team, "_team", [start])
    return calls


@needs_team
def test_the_number_of_threads_changes_no_bit(started):
    results = []
    for n_threads in (1, 2, 3):
        torch.set_num_threads(n_threads)
        started.clear()
        results.append(everything())
        assert set(started) == ({(n_threads, n_threads)} if n_threads > 1 else set())
    for other in results[1:]:
        for one, same in zip(results[0], other):
            np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("missing", ["library", "symbol", "OpenMP"])
def test_without_the_library_other_threads_do_the_same(processors, monkeypatch, missing):
    torch.set_num_threads(1)
    expected = everything()

    def load(*_, **__):
        if missing == "library":
            raise OSError("no such file")
        return object()

    monkeypatch.setattr(team.ctypes, "CDLL", load)
    monkeypatch.setattr(torch.backends.openmp, "is_available", lambda: missing != "OpenMP")
    monkeypatch.setattr(team, "_team", [])
    torch.set_num_threads(3)
    for one, same in zip(expected, everything()):
        np.testing.assert_array_equal(one, same)
    assert team._team == [None]
    assert threads._pool is not None


@needs_team
def test_limits_hold(started, monkeypatch):
    torch.set_num_threads(3)
    with threads.at_most(2):  # all of PyTorch's threads begin, so that none ends, but two have work
        block(SHAPES[0])
    assert set(started) == {(3, 2)}
    started.clear()
    with threads.at_most(1):
        block(SHAPES[0])
    monkeypatch.setenv("RFLAF_NUM_THREADS", "1")
    block(SHAPES[0])
    monkeypatch.delenv("RFLAF_NUM_THREADS")
    block((1, 1, 1000))  # too little work
    assert not started


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(processors):
    torch.set_num_threads(2)
    expected = everything()  # PyTorch's threads have begun
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        found = pool.apply_async(everything).get(timeout=60)
    for one, same in zip(expected, found):
        np.testing.assert_array_equal(one, same)


def test_a_kernel_that_fails_is_noticed():
    from rflaf.fused import jit

    def failing(x, k):
        if k == 3:
            raise MemoryError
        x[k] = k
        return k != 4

    kernel, x = jit.compiled(failing), np.zeros(5)
    arguments = team.Part("d", (5,)), np.arange(3)
    assert team.Plan(kernel, 3, 0, arguments).run(team.address(x))
    np.testing.assert_array_equal(x, [0, 1, 2, 0, 0])
    assert not team.Plan(kernel, 2, 0, (arguments[0], np.array([1, 4]))).run(team.address(x))
    with pytest.raises(MemoryError, match="no memory"):
        team.Plan(kernel, 4, 0, (arguments[0], np.arange(4))).run(team.address(x))


def test_copies_of_sums():
    from rflaf.fused import jit_vectors

    assert kernels._COPIES == jit_vectors.COPIES


@pytest.mark.parametrize("grad", [False, True], ids=["values", "training"])
def test_memory_is_the_cpu_s_whatever_the_default_device_is(grad):
    layer, z = LearnableActivation(), torch.randn(300, 300)
    network, x = RFLAF(4, 300, input_scale=None, seed=0), torch.randn(300, 4)
    expected = layer(z), network(x)
    eager._all_rows.cache_clear()
    with torch.device("meta"), torch.set_grad_enabled(grad):
        found = layer(z), network(x)
    for one, other in zip(found, (*expected, *expected)):
        assert torch.equal(one, other)
    assert torch.equal(network(x), expected[1])


def test_what_is_no_plain_memory_is_computed_or_refused():
    layer, z = LearnableActivation(), torch.randn(5)
    assert torch.equal(layer(torch._neg_view(z)), layer(-z))
    with torch.no_grad():
        zeros = layer(torch._efficientzerotensor(5))
    assert torch.equal(zeros, layer(torch.zeros(5)))
    for wrong in (torch.empty(3, device="meta"), torch._neg_view(z)):
        with pytest.raises(TypeError, match="plain tensors"):
            kernels.place_of(wrong)


def test_sums_of_many_elements_stay_in_small_ranges():
    _, rows = kernels._split(30_000_000, 1)
    assert rows.max() <= kernels._LARGEST
    assert rows.sum() == 30_000_000
