"""Properties of distributions made of errors, for errors of any kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

from rflaf.distributions import ErrorDistribution, ErrorShape

LEVELS = np.linspace(1e-6, 1 - 1e-6, 401)
numbers = st.floats(-100, 100, allow_nan=False).map(lambda e: round(e, 4))
errors = arrays(np.float64, st.integers(20, 120), elements=numbers).filter(
    lambda e: np.ptp(e) > 1e-3
)


@settings(max_examples=50, deadline=None)
@given(errors)
def test_quantiles_never_cross_and_the_cdf_inverts_them(sample):
    shape = ErrorShape.of_errors(sample)
    found = shape.quantile(LEVELS)
    assert (np.diff(found) > 0).all()
    np.testing.assert_allclose(shape.cdf(found), LEVELS, atol=1e-9)
    assert np.isfinite(shape.logpdf(np.append(found, [-1e6, 1e6]))).all()


@settings(max_examples=20, deadline=None)
@given(errors)
def test_the_density_is_the_slope_of_the_cdf_and_integrates_to_one(sample):
    shape = ErrorShape.of_errors(sample)
    edges = shape.quantile(np.linspace(1e-9, 1 - 1e-9, 400))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    edges = np.unique(np.concatenate([edges, shape.values]))
    half = np.diff(edges)[:, None] / 2
    density = np.exp(shape.logpdf(edges[:-1, None] + half * (1 + nodes)))
    parts = (density * weights * half).sum(axis=1)
    np.testing.assert_allclose(parts, np.diff(shape.cdf(edges)), atol=1e-5)
    assert parts.sum() == pytest.approx(1, abs=1e-4)


@settings(max_examples=10, deadline=None)
@given(errors, numbers)
def test_crps_and_moments_against_quadrature(sample, at):
    shape = ErrorShape.of_errors(sample / np.std(sample))
    at = at / 20
    ends = shape.quantile(np.array([1e-12, 1 - 1e-12]))

    def part(low, high, of):
        t = np.linspace(low, high, 20_001)
        return integrate.simpson(of(shape.cdf(t)), x=t) if high > low else 0.0

    expected = part(min(ends[0], at), at, np.square)
    expected += part(at, max(ends[1], at), lambda share: (1 - share) ** 2)
    assert shape.crps(np.array(at)) == pytest.approx(expected, rel=1e-3, abs=1e-4)
    z = np.linspace(-10, 10, 100_001)
    density = stats.norm.pdf(z)
    mean = integrate.simpson(shape.value(z)[0] * density, x=z)
    variance = integrate.simpson((shape.value(z)[0] - mean) ** 2 * density, x=z)
    assert shape.mean == pytest.approx(mean, abs=1e-6)
    assert shape.std == pytest.approx(np.sqrt(variance), rel=1e-5)


@settings(max_examples=20, deadline=None)
@given(errors, st.sampled_from([1e-12, 0.1, 1e9]))
def test_units_do_not_matter(sample, unit):
    plain, other = ErrorShape.of_errors(sample), ErrorShape.of_errors(sample * unit)
    np.testing.assert_allclose(
        other.quantile(LEVELS), plain.quantile(LEVELS) * unit, rtol=1e-6, atol=1e-9 * unit
    )


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    sample = rng.gumbel(size=300)
    twice = ErrorShape.of_errors(np.repeat(sample, 2))
    weighted = ErrorShape.of_errors(sample, np.full(300, 2.0))
    inner = LEVELS[20:-20]  # more rows have more knots, and other tails
    np.testing.assert_allclose(twice.quantile(inner), weighted.quantile(inner), atol=0.25)
    heavy = ErrorShape.of_errors(sample, np.where(sample > 0, 2.0, 1.0))
    rows = ErrorShape.of_errors(np.concatenate([sample, sample[sample > 0]]))
    np.testing.assert_allclose(heavy.quantile(inner), rows.quantile(inner), atol=0.25)


@pytest.mark.parametrize("family", [stats.norm(), stats.gumbel_r(), stats.t(4)])
def test_it_comes_near_the_distribution_of_the_errors(family):
    shape = ErrorShape.of_errors(family.rvs(5000, random_state=0))
    q = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
    np.testing.assert_allclose(family.cdf(shape.quantile(q)), q, atol=0.02)
    new = family.rvs(5000, random_state=1)
    assert shape.logpdf(new).mean() == pytest.approx(family.logpdf(new).mean(), abs=0.06)


def test_the_normal_distribution():
    found = ErrorDistribution(np.zeros((3, 1)), np.full((3, 1), 2.0), [ErrorShape.normal()])
    y = np.array([-1.0, 0.0, 7.5])
    np.testing.assert_allclose(found.cdf(y), stats.norm.cdf(y / 2), atol=1e-9)
    np.testing.assert_allclose(found.logpdf(y), stats.norm.logpdf(y, 0, 2))
    np.testing.assert_allclose(found.std, 2)
    known = y * (2 * stats.norm.cdf(y / 2) - 1) + 4 * stats.norm.pdf(y / 2) - 2 / np.sqrt(np.pi)
    np.testing.assert_allclose(found.crps(y), known)
    assert found.sample(10, rng=0).shape == (10, 3)
    np.testing.assert_array_equal(found.sample(10, rng=0), found.sample(10, rng=0))
    with pytest.raises(ValueError, match="'q' must be levels between 0 and 1"):
        found.quantile(1.5)
    with pytest.raises(ValueError, match="'coverage' must lie between 0 and 1"):
        found.interval(0)
    with pytest.raises(ValueError, match="Got 'a'"):
        found.interval("a")


def test_without_any_width_all_is_at_the_prediction():
    found = ErrorDistribution(np.full((1, 1), 3.0), np.zeros((1, 1)), [ErrorShape.normal()])
    assert found.cdf([2.9]).tolist() == [0.0]
    assert found.cdf([3.0]).tolist() == [1.0]
    assert found.crps([5.0]).tolist() == [2.0]
    assert found.logpdf([2.0]).tolist() == [-np.inf]
    assert found.quantile([0.1, 0.9]).tolist() == [[3.0, 3.0]]


def test_no_width_and_no_warning():
    found = ErrorDistribution(np.array([[3.0]]), np.array([[0.0]]), [ErrorShape.normal(0.0)])
    with np.errstate(all="raise"):
        assert [found.cdf(y)[0] for y in (2.0, 3.0, 4.0)] == [0, 1, 1]
        assert [found.crps(y)[0] for y in (3.0, 5.0)] == [0, 2]
        assert found.logpdf(3.0)[0] == np.inf
