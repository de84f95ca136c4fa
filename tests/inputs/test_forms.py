"""The forms in which inputs enter a model, against plain specifications."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from rflaf import rules
from rflaf.inputs.forms import AUTOMATIC, FORMS, Binned, Ranks, Standardised, WithRanks
from rflaf.inputs.forms.ranked import spread_values
from rflaf.inputs.scaling import column_moments, standardise
from rflaf.solvers.features import as_array

each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
LARGE = 1e6


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


SEVERAL = [0, 3, 4]  # columns with several values


def learned(form, x):
    return form.learn(x, np.ones(x.shape[0]))


def off_the_knots(x, scale, rng):
    """Rows that do not lie where a line of a form ends, and steps that do not reach there."""
    away = 1e-3 * rng.uniform(0.5, 1, x.shape) * rng.choice([-1, 1], x.shape)
    return x + away * scale, 1e-6 * np.where(scale > 0, scale, 1.0)


def test_names_are_those_of_the_parameter():
    assert list(FORMS) == ["raw", "both", "ranks", "bins"]
    assert all(FORMS[form.name] is form for form in FORMS.values())
    assert set(AUTOMATIC) < set(FORMS.values())
    assert {form.smooth for form in AUTOMATIC} == {True, False}  # errors of two sorts


@each_dtype
def test_columns_of_each_form(x, dtype):
    forms = [learned(form, x) for form in FORMS.values()]
    raw, both, ranks, bins = (form(x, dtype) for form in forms)
    assert raw.dtype == both.dtype == ranks.dtype == bins.dtype == dtype
    mean, scale = column_moments(x, np.ones(len(x)))
    for form in forms:
        np.testing.assert_array_equal(form.mean, mean)
        np.testing.assert_array_equal(form.scale, scale)
    np.testing.assert_array_equal(raw, standardise(x, mean, scale, dtype))
    assert both.shape == (1000, 5 + 3)
    np.testing.assert_array_equal(both[:, :5], raw)
    np.testing.assert_array_equal(ranks[:, SEVERAL], both[:, 5:])
    np.testing.assert_array_equal(ranks[:, [1, 2]], raw[:, [1, 2]])
    np.testing.assert_array_equal(bins.plain, raw[:, [1, 2]])  # few values: no bins


@each_form
def test_where_results_come_from_their_units_and_their_names(form, x):
    """A result changes with the column that `origin` names, and with no other."""
    own, names = learned(form, x), ["a", "b", "c", "d", "e"]
    results = as_array(own(x, np.float64))
    assert results.shape[1] == len(own.origin) == len(own.scales) == len(own.names(names))
    assert set(own.origin.tolist()) == set(range(5))
    for j in range(5):
        moved = x.copy()
        moved[:, j] = x[::-1, j]
        changed = (as_array(own(moved, np.float64)) != results).any(axis=0)
        assert not changed[own.origin != j].any()
        assert changed[own.origin == j].any() == (j != 2)  # a constant moves nothing
    for name, j in zip(own.names(names), own.origin, strict=True):
        assert name in (names[j], f"rank of {names[j]}")
    ranks = [k for k, name in enumerate(own.names(names)) if name.startswith("rank of")]
    assert own.origin[ranks].tolist() == (SEVERAL if form in (WithRanks, Ranks) else [])
    if form is Binned:
        np.testing.assert_array_equal(own.scales, [*own.scale[1:3], *own.bins.scale])
    else:
        np.testing.assert_array_equal(own.scales, own.scale[own.origin])


@each_form
def test_derivatives_against_finite_differences(form, x, rng):
    """Between knots and edges every result is a line in its column."""
    own = learned(form, x)
    at, step = off_the_knots(x[:200], own.scale, rng)
    found = own.derivative(at)
    assert found.shape == (200, len(own.origin))
    low, high = (as_array(own(at + side * step, np.float64)) for side in (-1, 1))
    expected = (high - low) / (2 * step[own.origin])
    unit = np.abs(expected).max(axis=0) + 1e-12
    close = np.abs(found - expected) <= 1e-5 * unit
    assert close.mean() > 0.995  # a step may cross a knot
    assert (found[:, own.origin == 2] == 0).all()


@each_form
def test_derivatives_go_back_to_the_columns(form, x, rng):
    """The derivative of a sum over the results, by the chain rule, against finite differences."""
    own = learned(form, x)
    at, steps = off_the_knots(x[:100], own.scale, rng)
    v = rng.standard_normal(len(own.origin))

    def value(at):
        return as_array(own(at, np.float64)) @ v

    found = own.back(at, np.broadcast_to(v, (100, len(v))))
    assert found.shape == (100, 5)
    for j in range(5):
        step = np.where(np.arange(5) == j, steps, 0.0)
        expected = (value(at + step) - value(at - step)) / (2 * step[j])
        apart = np.abs(found[:, j] - expected) / (np.abs(expected).max() + 1e-12)
        assert np.mean(apart < 1e-5) > 0.96  # a step may cross a knot


def test_results_far_out_do_not_move(x):
    """Where standardised columns are cut off, so is their derivative."""
    far = np.full((1, 5), 1e30)
    for form in FORMS.values():
        own = learned(form, x)
        assert np.isfinite(as_array(own(far, np.float32))).all()
        assert not own.derivative(far).any()
        assert not own.back(far, np.ones((1, len(own.origin)))).any()


# ---- ranks


@each_dtype
def test_ranks_are_monotone_and_of_unit_variance(x, dtype):
    got = learned(Ranks, x)(x.astype(dtype), np.float64)
    for j in SEVERAL:
        order = np.argsort(x[:, j], kind="stable")
        assert (np.diff(got[order, j]) >= 0).all()
        assert np.abs(got[:, j]).max() <= np.sqrt(3) + 1e-9
    for j in (0, 4):  # whole numbers have ties
        assert got[:, j].mean() == pytest.approx(0, abs=0.02)
        assert got[:, j].std() == pytest.approx(1, abs=0.02)


def test_far_rows_have_the_last_rank(x):
    own = learned(Ranks, x)
    highest, lowest = own(x, np.float64).max(axis=0), own(x, np.float64).min(axis=0)
    for size in (1e6, 1e30, 1e300):
        far = own(np.full((1, 5), size), np.float64)[0]
        near = own(np.full((1, 5), -size), np.float64)[0]
        np.testing.assert_array_equal(far[SEVERAL], highest[SEVERAL])
        np.testing.assert_array_equal(near[SEVERAL], lowest[SEVERAL])
        assert np.isfinite(learned(WithRanks, x)(np.full((1, 5), size), np.float32)).all()


def test_rows_that_share_a_value_share_the_middle_of_their_ranks():
    x = np.repeat([0.0, 1, 2, 3, 4], [500, 100, 100, 100, 200])[:, None]
    got = np.unique(learned(Ranks, x)(x, np.float64))
    assert len(got) == 5
    middle = np.sqrt(3) * (2 * np.array([0.25, 0.55, 0.65, 0.75, 0.9]) - 1)
    np.testing.assert_allclose(got, middle, atol=0.05)


def test_values_are_spread_as_quantiles_where_none_is_frequent(rng):
    column = np.sort(rng.standard_cauchy(1000))
    expected = np.quantile(column, np.linspace(0, 1, 25))
    np.testing.assert_array_equal(spread_values(column, 25), expected)


def test_a_frequent_value_takes_one_place_and_the_others_are_spread_over_the_rest(rng):
    some = np.sort(rng.exponential(1, 80)) + 1
    column = np.concatenate([np.zeros(900), np.full(20, 0.5), some])
    rest = np.quantile(some, np.linspace(0, 1, 21 - 3 + 1))
    np.testing.assert_array_equal(spread_values(column, 21), [0.0, 0.5, *rest])


@given(
    st.lists(st.sampled_from([-7.0, 0.0, 1e-9, 1.0, 2.0, 3.0, 5.5, 1e300]), min_size=1),
    st.lists(st.floats(-1e6, 1e6), max_size=60),
    st.integers(5, 30),
)
def test_spread_values_increase_from_the_least_to_the_greatest(frequent, others, most):
    column = np.sort(np.array(frequent * 3 + others, np.float64))
    values = spread_values(column, most)
    assert 1 <= len(values) <= most
    assert (np.diff(values) > 0).all()
    assert (values[0], values[-1]) == (column[0], column[-1])
    if len(np.unique(column)) <= most:
        np.testing.assert_array_equal(values, np.unique(column))


def test_columns_that_are_mostly_zero_have_ranks_and_bins(rng):
    """As gains of capital have, or counts of words: what is not zero is told apart."""
    x = np.where(rng.random((2000, 1)) < 0.96, 0.0, rng.exponential(1, (2000, 1)))
    some = np.flatnonzero(x[:, 0])
    assert len(np.unique(learned(Ranks, x)(x[some], np.float64))) == len(some)
    bins = learned(Binned, x).bins
    assert np.count_nonzero(bins.low > 0) >= rules.BINS - 3


def test_few_values_have_no_ranks_and_no_bins(rng):
    for values in range(1, rules.SEVERAL_VALUES):
        x = rng.integers(0, values, (300, 1)).astype(float)
        assert learned(WithRanks, x) is None
        assert learned(Binned, x) is None
        plain = learned(Standardised, x)(x, np.float64)
        np.testing.assert_array_equal(learned(Ranks, x)(x, np.float64), plain)


def test_sparse_inputs_have_none_and_stay_sparse(rng):
    x = sparse.random_array((80, 6), density=0.5, rng=rng, format="csr")
    assert learned(WithRanks, x) is None
    assert learned(Binned, x) is None
    for form in (Standardised, Ranks):
        own = learned(form, x)
        assert own.stays_sparse
        assert sparse.issparse(own(x, np.float32))
        np.testing.assert_allclose(own(x, np.float64).toarray(), own(x.toarray(), np.float64))


@each_form
def test_sparse_rows_for_a_form_of_dense_ones(form, rng):
    x = np.round(rng.standard_normal((60, 3)), 1) + 5
    own = learned(form, x)
    assert not own.stays_sparse
    rows = sparse.csr_array(x[:9])
    np.testing.assert_array_equal(as_array(own(rows, np.float64)), as_array(own(x[:9], np.float64)))


def test_ranks_do_not_depend_on_units(x):
    one = learned(Ranks, x)(x, np.float64)
    other = learned(Ranks, 1e4 * x - 7)(1e4 * x - 7, np.float64)
    np.testing.assert_allclose(one[:, [0, 3]], other[:, [0, 3]], atol=1e-6)


def test_many_rows_are_measured_by_some(x, monkeypatch):
    whole = learned(Ranks, x)(x, np.float64)
    monkeypatch.setattr(rules, "QUANTILE_ROWS", 250)
    some = learned(Ranks, x)(x, np.float64)
    assert not np.array_equal(some, whole)
    np.testing.assert_allclose(some[:, SEVERAL], whole[:, SEVERAL], atol=0.4)


# ---- bins


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


def expected_bins(x, columns, new_x):
    """Columns of bins for `new_x`, measured on the rows of `x`."""
    parts = []
    for j in columns:
        edges = spread_values(np.sort(x[:, j]).astype(np.float64), rules.BINS + 1)
        seen = places(x[:, j].astype(np.float64), edges)
        spread = seen.std(axis=0)
        spread[spread == 0] = 1
        parts.append((places(new_x[:, j].astype(np.float64), edges) - seen.mean(axis=0)) / spread)
    return np.hstack(parts)


def in_bins(form, x, dtype):
    """The bins of some rows, without the other columns."""
    return form.bins(x, np.zeros((len(x), 0), dtype)).toarray()


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


@each_dtype
@given(values=st.lists(st.floats(-LARGE, LARGE, width=32), min_size=1, max_size=30))
def test_bins_are_those_of_the_specification(dtype, values):
    """Inside and outside the range, at ties, and at the edges themselves."""
    x = columns(dtype)
    own = learned(Binned, x)
    assert own.bins.columns.tolist() == [0, 1, 2, 5]
    new = np.repeat(np.array(values, dtype)[:, None], 6, axis=1)
    rows = np.concatenate([new, x[:20], x.min(axis=0)[None], x.max(axis=0)[None]])
    got = in_bins(own, rows, np.float64)
    expected = expected_bins(x, own.bins.columns, rows)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert in_bins(own, rows, np.float32).dtype == np.float32


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(30, 60), st.integers(1, 3)),
        elements=st.sampled_from([0.0, 1e-300, 1.0, 1 + 1e-15, 2.0, -5.0, 7.0, 1e300, -1e300]),
    )
)
def test_columns_with_any_ties_have_finite_bins(x):
    own = learned(Binned, x)
    if own is None:
        assert learned(WithRanks, x) is None
        return
    assert (own.bins.width > 0).all()
    assert (own.bins.scale > 0).all()
    ends = [[1.7e308] * x.shape[1], [-1.7e308] * x.shape[1]]
    got = in_bins(own, np.concatenate([x, ends]), np.float64)
    assert np.isfinite(got).all()
    # outside the range is the same as at its end
    np.testing.assert_allclose(got[-2], got[:-2].max(axis=0))
    np.testing.assert_allclose(got[-1], got[:-2].min(axis=0))


def test_bins_are_standardised_and_increase(rng):
    x = rng.standard_cauchy((1000, 2))
    got = in_bins(learned(Binned, x), x, np.float64)
    assert got.shape == (1000, 2 * rules.BINS)
    np.testing.assert_allclose(got.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(got.std(axis=0), 1, rtol=1e-9)
    assert (np.diff(got[np.argsort(x[:, 0])][:, : rules.BINS], axis=0) >= 0).all()
    assert (np.diff(got[np.argsort(x[:, 1])][:, rules.BINS :], axis=0) >= 0).all()


def test_fewer_bins_for_many_columns_and_none_for_too_many(rng):
    most, fewest = rules.MOST_BINS, rules.FEWEST_BINS
    counts = []
    for d in (most // rules.BINS, 40, most // fewest):
        own = learned(Binned, rng.standard_normal((50, d)))
        assert len(own.bins.column) <= most
        counts.append(len(own.bins.column) // d)
    assert counts[0] == rules.BINS > counts[1] > counts[2] == fewest
    assert learned(Binned, rng.standard_normal((50, most // fewest + 1))) is None
    # columns that stay as they are count, too
    x = np.hstack([rng.standard_normal((50, 100)), rng.integers(0, 2, (50, 200))])
    assert learned(Binned, x) is None


@pytest.mark.parametrize("far", [-1e6, -1e9, 1e9])
def test_a_rare_value_far_away_leaves_products_of_float32_right(rng, far):
    """Its bin is nearly constant: divided by its standard deviation, nothing else would be left."""
    x = rng.standard_normal((20_001, 1))
    x[7] = far
    matrix = learned(Binned, x)(x, np.float32)
    w = rng.standard_normal((matrix.shape[1], 20)).astype(np.float32) / 5
    expected = matrix.toarray().astype(np.float64) @ w
    others = np.arange(len(x)) != 7
    np.testing.assert_allclose((matrix @ w)[others], expected[others], atol=1e-3)
    assert 0.1 < expected[others].std() < 2


def test_warps_rise_from_edge_to_edge(x):
    """A metric of ones moves a value through a bin as far as its scale is small."""
    own = learned(Binned, x)
    for j in SEVERAL:
        edges, heights = own.warp(np.ones(len(own.origin)), j)
        assert len(edges) == len(heights)
        assert (np.diff(edges) > 0).all()
        np.testing.assert_allclose(np.diff(heights), 1 / own.bins.scale[own.bins.column == j])
        assert heights[0] == 0
