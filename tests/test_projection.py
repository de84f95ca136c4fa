"""Random first layers: their distribution, their orthogonality, and what a seed decides."""

import numpy as np
import pytest
from scipy import stats

from rflaf.projection import PROJECTIONS, draw, gaussian, orthogonal

every_kind = pytest.mark.parametrize("kind", sorted(PROJECTIONS))


@every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "m"), [(1, 5), (3, 7), (8, 8), (20, 3)])
def test_shape_and_dtype(kind, dtype, d, m, rng):
    w = draw(kind, d, m, rng, dtype)
    assert w.shape == (d, m)
    assert w.dtype == dtype
    assert np.isfinite(w).all()


@every_kind
def test_the_generator_decides_every_entry(kind):
    first, second, other = (
        draw(kind, 4, 9, np.random.default_rng(seed), np.float64) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.any(first == other)


@every_kind
def test_single_precision_is_the_rounded_double(kind):
    double = draw(kind, 4, 9, np.random.default_rng(0), np.float64)
    single = draw(kind, 4, 9, np.random.default_rng(0), np.float32)
    np.testing.assert_array_equal(single, double.astype(np.float32))


def test_gaussian_is_what_the_generator_gives():
    np.testing.assert_array_equal(
        gaussian(3, 5, np.random.default_rng(0)), np.random.default_rng(0).standard_normal((3, 5))
    )


@pytest.mark.parametrize(("d", "m"), [(5, 5), (5, 12), (5, 3), (1, 4)])
def test_orthogonal_within_each_block_of_d_columns(d, m, rng):
    w = orthogonal(d, m, rng)
    for first in range(0, m, d):
        block = w[:, first : first + d]
        products = block.T @ block
        off_diagonal = products - np.diag(np.diag(products))
        np.testing.assert_allclose(off_diagonal, 0, atol=1e-12 * products.max())


def test_blocks_are_independent_draws(rng):
    w = orthogonal(4, 8, rng)
    assert np.abs(w[:, :4].T @ w[:, 4:]).max() > 0.01


@every_kind
def test_every_column_is_a_standard_normal_vector(kind, rng):
    """Lengths follow the chi distribution, and each coordinate the normal one."""
    d = 3
    w = draw(kind, d, 6000, rng, np.float64)
    assert stats.kstest(np.linalg.norm(w, axis=0), stats.chi(d).cdf).pvalue > 1e-3
    for coordinate in w:
        # columns of one block depend on each other: take one column per block
        assert stats.kstest(coordinate[::d], stats.norm.cdf).pvalue > 1e-3


def test_directions_of_one_block_prefer_no_side(rng):
    """Without the sign of R's diagonal the first entry of Q would always be negative."""
    signs = np.sign([orthogonal(4, 1, rng)[0, 0] for _ in range(400)])
    assert abs(signs.mean()) < 0.2
