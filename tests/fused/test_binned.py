"""Products of a matrix of bins that is never made, against those of the matrix itself."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rflaf import fused
from rflaf.bases import RBF
from rflaf.fused import binned, reference
from rflaf.fused.binned import BinnedMatrix, Bins
from rflaf.runtime import threads


def make_bins(rng, counts):
    """Columns with some numbers of bins, of any width."""
    edges = [np.cumsum(rng.uniform(0.01, 2, count + 1)) - 3 for count in counts]
    starts = np.cumsum([0] + [len(each) for each in edges])
    total = sum(counts)
    columns = rng.permutation(len(counts) + 2)[: len(counts)]
    return Bins(
        columns, starts, np.concatenate(edges), rng.uniform(0, 1, total), rng.uniform(0.1, 2, total)
    )


def make_matrix(rng, n, counts, plain, dtype):
    bins = make_bins(rng, counts)
    x = rng.uniform(-4, 4, (n, len(counts) + 2))
    return bins(x, rng.standard_normal((n, plain)).astype(dtype)), x


def dense(matrix, x):
    return reference.binned_matrix(matrix.bins, x, matrix.plain)


def close(got, expected, dtype):
    tol = 2e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(
        got, expected, rtol=0, atol=tol * (1 + np.abs(expected).max(initial=0))
    )
    assert got.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    seed=st.integers(0, 99),
    n=st.integers(0, 150),
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    plain=st.integers(0, 3),
    width=st.one_of(st.integers(1, 70), st.integers(250, 300)),
)
def test_products_are_those_of_the_matrix(dtype, seed, n, counts, plain, width):
    rng = np.random.default_rng(seed)
    matrix, x = make_matrix(rng, n, counts, plain, dtype)
    full = dense(matrix, x)
    assert matrix.shape == full.shape
    close(matrix.toarray(), full, dtype)
    w = rng.standard_normal((full.shape[1], width)).astype(dtype)
    close(matrix @ w, full @ w, dtype)
    slopes = rng.standard_normal((n, width)).astype(dtype)
    close(matrix.pull_back(slopes), full.T @ slopes, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("width", "parts"), [(1, 1), (32, 1), (33, 2), (64, 2), (65, 2), (300, 2)])
def test_work_that_threads_share(rng, monkeypatch, width, parts, dtype):
    """Columns go to two threads, where there are enough."""
    matrix, x = make_matrix(rng, 50, [24, 7], 2, dtype)
    slopes, whole, seen = rng.standard_normal((50, width)).astype(dtype), [], []
    whole = matrix.pull_back(slopes)
    pull_back = BinnedMatrix._pull_back_bins

    def watched(self, some):
        seen.append(some.shape[1])
        return pull_back(self, some)

    monkeypatch.setattr(binned, "_SHARED", 1)
    monkeypatch.setattr(BinnedMatrix, "_pull_back_bins", watched)
    np.testing.assert_array_equal(matrix.pull_back(slopes), whole)
    assert len(seen) == parts
    assert sum(seen) == width
    close(matrix.pull_back(np.asfortranarray(slopes)), dense(matrix, x).T @ slopes, dtype)


def test_rows_are_chosen_and_results_written_in_place(rng):
    matrix, x = make_matrix(rng, 40, [3, 24, 1], 2, np.float64)
    full, w = dense(matrix, x), rng.standard_normal((30, 37))
    for rows in (slice(5, 20), np.array([7, 3, 3]), rng.random(40) < 0.5):
        part = matrix[rows]
        close(part @ w, full[rows] @ w, np.float64)
        assert isinstance(part, BinnedMatrix)
    out = np.full((40, 40), 7.0)
    matrix.project(matrix.tables(w), out[:, :37])
    close(out[:, :37], full @ w, np.float64)
    assert (out[:, 37:] == 7).all()
    strided = np.asfortranarray(rng.standard_normal((40, 37)))
    close(matrix.pull_back(strided), full.T @ strided, np.float64)


def test_values_beyond_all_edges_are_clipped_and_missing_ones_stay(rng):
    bins = make_bins(rng, [4, 2])
    x = np.zeros((4, 4))
    x[:, bins.columns] = np.array([[-np.inf], [np.inf], [1e308], [np.nan]])
    matrix = bins(x, np.zeros((4, 0)))
    full = matrix.toarray()
    np.testing.assert_allclose(full[0], (0 - bins.mean) / bins.scale)
    np.testing.assert_allclose(full[1:3], [(1 - bins.mean) / bins.scale] * 2)
    w = rng.standard_normal((6, 5))
    assert np.isfinite((matrix @ w)[:3]).all()
    assert np.isnan((matrix @ w)[3]).all()


@pytest.mark.parametrize("outputs", [1, 3, 20])
def test_readout_of_bins(rng, outputs):
    sigma = fused.basis_layout(RBF(9)).table(rng.standard_normal(9))
    matrix, x = make_matrix(rng, 700, [24, 24, 5], 1, np.float32)
    w = (0.1 * rng.standard_normal((matrix.shape[1], 300))).astype(np.float32)
    v = rng.standard_normal((300, outputs)).astype(np.float32)
    readout = fused.Readout(sigma, w, v)
    expected = reference.predict(sigma, dense(matrix, x) @ w, v)
    close(readout(matrix), expected, np.float32)
    close(readout(matrix[3:4]), expected[3:4], np.float32)
    assert readout(matrix[:0]).shape == (0, outputs)


def test_threads_change_no_bit(rng):
    matrix, _ = make_matrix(rng, 3000, [24] * 4, 1, np.float32)
    w = rng.standard_normal((97, 500)).astype(np.float32)
    found = []
    for count in (1, 2, 4):
        with threads.use_threads(count):
            z = matrix @ w
            found.append((z, matrix.pull_back(z)))
    for each in found[1:]:
        np.testing.assert_array_equal(each[0], found[0][0])
        np.testing.assert_array_equal(each[1], found[0][1])


def test_where_bins_lie(rng):
    bins = make_bins(rng, [3, 1, 2])
    assert bins.column.tolist() == np.repeat(bins.columns, [3, 1, 2]).tolist()
    assert (bins.width > 0).all()
    np.testing.assert_allclose(bins.low[1:3], bins.low[:2] + bins.width[:2])
    same = pickle.loads(pickle.dumps(bins))
    np.testing.assert_array_equal(same.low, bins.low)
