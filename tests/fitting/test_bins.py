"""Bins of the inputs, against a plain specification."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rflaf.inputs.form import measure_inputs

LARGE = 1e6


def places(values, edges):
    """How far each value has come through each bin: a loop over values and bins."""
    out = np.empty((len(values), len(edges) - 1))
    for i, value in enumerate(values):
        for k, (low, high) in enumerate(pairwise(edges)):
            if value <= low:
                out[i, k] = 0
            elif value >= high:
                out[i, k] = 1
            else:
                out[i, k] = (value - low) / (high - low)
    return out


def expected_bins(x, ranked, new_x):
    """Columns of bins for `new_x`, measured on the rows of `x`."""
    parts = []
    for j in ranked:
        edges = np.unique(np.quantile(x[:, j], np.arange(25) / 24)).astype(np.float64)
        seen = places(x[:, j].astype(np.float64), edges)
        spread = seen.std(axis=0)
        spread[spread == 0] = 1
        parts.append((places(new_x[:, j].astype(np.float64), edges) - seen.mean(axis=0)) / spread)
    return np.hstack(parts)


def in_bins(measured, x, dtype):
    """The bins of some rows, without the other columns."""
    return measured.bins(x, np.zeros((len(x), 0), dtype)).toarray()


def columns(dtype):
    """Many values, ties, whole numbers, a constant, two values, a spike with a tail."""
    rng = np.random.default_rng(2)
    n = 150
    x = np.column_stack(
        [
            rng.standard_cauchy(n),
            np.round(rng.standard_normal(n), 1),
            rng.poisson(3, n),
            np.full(n, 2.5),
            rng.integers(0, 2, n),
            np.where(rng.random(n) < 0.5, 0, rng.exponential(1, n)),
        ]
    )
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(values=st.lists(st.floats(-LARGE, LARGE, width=32), min_size=1, max_size=30))
def test_bins_are_those_of_the_specification(dtype, values):
    """Inside and outside the range, at ties, and at the edges themselves."""
    x = columns(dtype)
    measured = measure_inputs(x, np.ones(len(x)))
    assert measured.ranked.tolist() == [0, 1, 2, 5]
    new = np.repeat(np.array(values, dtype)[:, None], 6, axis=1)
    rows = np.concatenate([new, x[:20], x.min(axis=0)[None], x.max(axis=0)[None]])
    got = in_bins(measured, rows, np.float64)
    expected = expected_bins(x, measured.ranked, rows)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert in_bins(measured, rows, np.float32).dtype == np.float32


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(30, 60), st.integers(1, 3)),
        elements=st.sampled_from([0.0, 1e-300, 1.0, 1 + 1e-15, 2.0, -5.0, 7.0, 1e300, -1e300]),
    )
)
def test_columns_with_any_ties_have_finite_bins(x):
    measured = measure_inputs(x, np.ones(len(x)))
    if measured.bins is None:
        assert not len(measured.ranked)
        return
    bins = measured.bins
    assert (bins.width > 0).all()
    assert (bins.scale > 0).all()
    ends = [[1.7e308] * x.shape[1], [-1.7e308] * x.shape[1]]
    got = in_bins(measured, np.concatenate([x, ends]), np.float64)
    assert np.isfinite(got).all()
    # outside the range is the same as at its end
    np.testing.assert_allclose(got[-2], got[:-2].max(axis=0))
    np.testing.assert_allclose(got[-1], got[:-2].min(axis=0))


def test_bins_are_standardised_and_increase(rng):
    x = rng.standard_cauchy((1000, 2))
    got = in_bins(measure_inputs(x, np.ones(1000)), x, np.float64)
    assert got.shape == (1000, 48)
    np.testing.assert_allclose(got.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(got.std(axis=0), 1, rtol=1e-9)
    assert (np.diff(got[np.argsort(x[:, 0])][:, :24], axis=0) >= 0).all()
    assert (np.diff(got[np.argsort(x[:, 1])][:, 24:], axis=0) >= 0).all()


def test_fewer_bins_for_many_columns_and_none_for_too_many(rng):
    for d, each in ((21, 24), (40, 12), (128, 4)):
        x = rng.standard_normal((50, d))
        assert len(measure_inputs(x, np.ones(50)).bins.column) == each * d <= 512
    assert measure_inputs(rng.standard_normal((50, 129)), np.ones(50)).bins is None
    # columns that stay as they are count, too
    x = np.hstack([rng.standard_normal((50, 100)), rng.integers(0, 2, (50, 200))])
    assert measure_inputs(x, np.ones(50)).bins is None


@pytest.mark.parametrize("far", [-1e6, -1e9, 1e9])
def test_a_rare_value_far_away_leaves_products_of_float32_right(rng, far):
    """Its bin is nearly constant: divided by its standard deviation, nothing else would be left."""
    x = rng.standard_normal((20_001, 1))
    x[7] = far
    matrix = replace(measure_inputs(x, np.ones(len(x))), name="bins")(x, np.float32)
    w = rng.standard_normal((matrix.shape[1], 20)).astype(np.float32) / 5
    expected = matrix.toarray().astype(np.float64) @ w
    others = np.arange(len(x)) != 7
    np.testing.assert_allclose((matrix @ w)[others], expected[others], atol=1e-3)
    assert 0.1 < expected[others].std() < 2
