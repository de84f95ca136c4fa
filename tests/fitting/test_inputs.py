"""The form in which inputs enter a model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from rflaf.fitting import inputs
from rflaf.inputs.form import FORMS, measure_inputs
from rflaf.inputs.scaling import standardise

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture
def x(rng):
    """Heavy tails, two values, a constant, whole numbers, a normal column."""
    n = 1000
    return np.column_stack(
        [
            rng.standard_cauchy(n),
            rng.integers(0, 2, n),
            np.full(n, 3.3),
            rng.poisson(4, n),
            5 + 1e-3 * rng.standard_normal(n),
        ]
    )


RANKED = [0, 3, 4]


def form(name, x, weights=None):
    return replace(measure_inputs(x, np.ones(len(x)) if weights is None else weights), name=name)


@each_dtype
def test_columns_of_each_form(x, dtype):
    raw, both, ranks, bins = (form(name, x)(x, dtype) for name in FORMS)
    assert raw.dtype == both.dtype == ranks.dtype == bins.dtype == dtype
    measured = measure_inputs(x, np.ones(len(x)))
    assert measured.name == "raw"
    assert measured.ranked.tolist() == RANKED
    np.testing.assert_array_equal(raw, standardise(x, measured.mean, measured.scale, dtype))
    assert both.shape == (1000, 5 + 3)
    np.testing.assert_array_equal(both[:, :5], raw)
    np.testing.assert_array_equal(ranks[:, RANKED], both[:, 5:])
    np.testing.assert_array_equal(ranks[:, [1, 2]], raw[:, [1, 2]])
    np.testing.assert_array_equal(bins.plain, raw[:, [1, 2]])  # few values: no bins
    np.testing.assert_array_equal(
        bins.toarray()[:, 2:], measured.bins(x, bins.plain[:, :0]).toarray()
    )


def test_where_columns_come_from_and_their_units(x):
    raw, both, ranks, bins = (form(name, x) for name in FORMS)
    assert raw.origin.tolist() == ranks.origin.tolist() == [0, 1, 2, 3, 4]
    assert both.origin.tolist() == [0, 1, 2, 3, 4, *RANKED]
    np.testing.assert_array_equal(raw.scales, raw.scale)
    np.testing.assert_array_equal(both.scales, [*raw.scale, *raw.scale[RANKED]])
    np.testing.assert_array_equal(ranks.scales, raw.scale)
    assert bins.origin.tolist() == [1, 2, *bins.bins.column]
    assert sorted(set(bins.bins.column)) == RANKED
    np.testing.assert_array_equal(bins.scales, [*raw.scale[1:3], *bins.bins.scale])


@each_dtype
def test_ranks_are_monotone_and_of_unit_variance(x, dtype):
    got = form("ranks", x)(x.astype(dtype), np.float64)
    for j in RANKED:
        order = np.argsort(x[:, j], kind="stable")
        assert (np.diff(got[order, j]) >= 0).all()
        assert np.abs(got[:, j]).max() <= np.sqrt(3) + 1e-9
    for j in (0, 4):  # whole numbers have ties
        assert got[:, j].mean() == pytest.approx(0, abs=0.02)
        assert got[:, j].std() == pytest.approx(1, abs=0.02)


def test_far_rows_have_the_last_rank(x):
    shape = form("ranks", x)
    highest, lowest = shape(x, np.float64).max(axis=0), shape(x, np.float64).min(axis=0)
    for size in (1e6, 1e30, 1e300):
        far = shape(np.full((1, 5), size), np.float64)[0]
        near = shape(np.full((1, 5), -size), np.float64)[0]
        np.testing.assert_array_equal(far[RANKED], highest[RANKED])
        np.testing.assert_array_equal(near[RANKED], lowest[RANKED])
        assert np.isfinite(form("both", x)(np.full((1, 5), size), np.float32)).all()


def test_rows_that_share_a_value_share_the_middle_of_their_ranks():
    x = np.repeat([0.0, 1, 2, 3, 4], [500, 100, 100, 100, 200])[:, None]
    got = np.unique(form("ranks", x)(x, np.float64))
    assert len(got) == 5
    middle = np.sqrt(3) * (2 * np.array([0.25, 0.55, 0.65, 0.75, 0.9]) - 1)
    np.testing.assert_allclose(got, middle, atol=0.05)


def test_few_values_have_no_ranks(rng):
    for values in (1, 2, 4):
        x = rng.integers(0, values, (300, 1)).astype(float)
        measured = measure_inputs(x, np.ones(300))
        assert len(measured.ranked) == 0
        for name in FORMS:
            np.testing.assert_array_equal(
                replace(measured, name=name)(x, np.float64), measured(x, np.float64)
            )


def test_sparse_inputs_have_none(rng):
    x = sparse.random_array((80, 6), density=0.5, rng=rng, format="csr")
    measured = measure_inputs(x, np.ones(80))
    assert len(measured.ranked) == 0
    assert measured.bins is None
    for name in FORMS:
        assert sparse.issparse(replace(measured, name=name)(x, np.float32))


def test_ranks_do_not_depend_on_units(x):
    one = form("ranks", x)(x, np.float64)
    other = form("ranks", 1e4 * x - 7)(1e4 * x - 7, np.float64)
    np.testing.assert_allclose(one[:, [0, 3]], other[:, [0, 3]], atol=1e-6)


def test_many_rows_are_measured_by_some(x, monkeypatch):
    whole = form("ranks", x)(x, np.float64)
    monkeypatch.setattr(inputs, "_MOST_MEASURED", 250)
    np.testing.assert_allclose(
        form("ranks", x)(x, np.float64)[:, RANKED], whole[:, RANKED], atol=0.4
    )
