"""Counts, positive numbers and sums, against samples and against scipy."""

import numpy as np
import pytest
from scipy import stats

from rflaf.distributions import CountDistribution, GammaDistribution, SumDistribution

MEAN, STD = np.array([0.3, 2.0, 30.0]), np.array([1.0, 2.5, 9.0])
ALL = [
    GammaDistribution(MEAN, STD),
    CountDistribution(MEAN, STD),
    SumDistribution(MEAN, STD),
    SumDistribution(MEAN, STD, 1.2),
]


@pytest.mark.parametrize("found", ALL, ids=lambda found: type(found).__name__)
def test_everything_agrees_with_samples(found):
    some = found.sample(4000, rng=0)
    assert (np.abs(some.mean(axis=0) - MEAN) < 0.06 * STD).all()
    np.testing.assert_allclose(some.std(axis=0), found.std, rtol=0.15)
    for y in (-1.0, 0.0, 1.5, 7.0):
        np.testing.assert_allclose(found.cdf(y), np.mean(some <= y, axis=0), atol=0.03)
        pairs = np.abs(some[:2000] - some[2000:]).mean(axis=0) / 2
        expected = np.abs(some - y).mean(axis=0) - pairs
        assert (np.abs(found.crps(y) - expected) < 0.06 * STD).all()
    quantiles = found.quantile([0.05, 0.5, 0.95, 0.99])
    assert (np.diff(quantiles, axis=1) >= 0).all()
    less = 1.0 if isinstance(found, CountDistribution) else 1e-4
    for k, q in enumerate([0.05, 0.5, 0.95, 0.99]):
        assert (found.cdf(quantiles[:, k]) >= q - 1e-6).all()
        assert (found.cdf(quantiles[:, k] - less) <= q).all()


def test_known_cases():
    plain = CountDistribution(MEAN, np.sqrt(MEAN))
    np.testing.assert_allclose(plain.cdf(3.0), stats.poisson.cdf(3, MEAN), atol=1e-6)
    np.testing.assert_allclose(plain.logpdf(3.0), stats.poisson.logpmf(3, MEAN), atol=1e-3)
    found = SumDistribution(MEAN, STD)
    zero = np.exp(found.logpdf(0.0))
    np.testing.assert_allclose(zero, found.cdf(0.0), atol=1e-8)
    slope = (found.cdf(3.0 + 1e-4) - found.cdf(3.0 - 1e-4)) / 2e-4
    np.testing.assert_allclose(np.exp(found.logpdf(3.0)), slope, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("family", [GammaDistribution, SumDistribution, CountDistribution])
def test_no_width_is_no_obstacle(family):
    """As of a constant target; counts have that of Poisson's at least."""
    found = family(np.array([4.0]), np.array([0.0]))
    assert np.isfinite(found.logpdf(4.0)).all()
    assert found.quantile([0.1, 0.9])[0] == pytest.approx(
        [2, 7] if family is CountDistribution else [4, 4]
    )
