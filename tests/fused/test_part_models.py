"""Scores of partitions, and their slopes, against their specification."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf import fused
from rflaf.bases import RBF, Fixed
from rflaf.fused import PartModels, PartRows, fit_parts, part_scores, part_slopes, reference
from rflaf.runtime.threads import at_most


def _made(rng, depth, trees, m, outputs):
    shape = trees, 2**depth - 1
    cuts = np.where(rng.random(shape) < 0.1, np.inf, rng.standard_normal(shape))
    widths = 10 ** rng.uniform(-2, 0.5, shape)
    coef = rng.standard_normal((trees, 2**depth, outputs, m + 1)).astype(np.float32)
    return PartModels(cuts, widths, coef)


def _sigma(rng):
    return fused.compile_activation(RBF(9), rng.standard_normal(9), 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 7), st.integers(0, 99)
)
@settings(max_examples=25, deadline=None)
def test_against_the_specification(dtype, depth, trees, outputs, n, seed):
    rng = np.random.default_rng(seed)
    partitions, sigma = _made(rng, depth, trees, 6, outputs), _sigma(rng)
    z = rng.standard_normal((n, trees * 6)).astype(dtype)
    tolerance = 2e-5 if dtype == np.float32 else 1e-6
    found, expected = part_scores(partitions, sigma, z), reference.part_scores(partitions, sigma, z)
    assert found.shape == (n, outputs)
    assert np.all(np.abs(found - expected) < tolerance * 20)
    end = rng.standard_normal(z.shape).astype(dtype)
    for way in ((), (end,), (end, 5)):
        found = part_slopes(partitions, sigma, z, *way)
        expected = reference.part_slopes(partitions, sigma, z, *way)
        assert found.dtype == dtype
        assert np.all(np.abs(found - expected) < tolerance * (20 + np.abs(expected)))


def test_slopes_are_those_of_the_scores(rng):
    partitions, sigma = _made(rng, 4, 2, 6, 2), _sigma(rng)
    z = rng.standard_normal((200, 12))
    slopes = reference.part_slopes(partitions, sigma, z)
    for k in range(12):
        up, down = z.copy(), z.copy()
        up[:, k] += 1e-6
        down[:, k] -= 1e-6
        change = reference.part_scores(partitions, sigma, up)
        change = (change - reference.part_scores(partitions, sigma, down)) / 2e-6
        assert np.median(np.abs(change - slopes[:, :, k])) < 1e-6


def test_steps_add_up_where_slopes_miss_a_narrow_cut(rng):
    """Along a line that crosses hand-overs far narrower than its steps."""
    partitions = _made(rng, 3, 1, 6, 1)
    partitions = partitions._replace(widths=np.full((1, 7), 1e-5))
    sigma, ends = _sigma(rng), rng.standard_normal((2, 50, 6))
    mean = part_slopes(partitions, sigma, *ends, 64)
    known = [part_scores(partitions, sigma, z)[:, 0] for z in ends]
    apart = np.abs((mean[:, 0] * (ends[1] - ends[0])).sum(axis=1) - (known[1] - known[0]))
    assert np.abs(known[1] - known[0]).max() > 3
    assert np.median(apart) < 0.03


@pytest.mark.parametrize("sigma", ["table", "direct"])
def test_the_same_bits_for_any_rows_beside_and_any_threads(sigma, rng):
    partitions = _made(rng, 4, 3, 40, 2)
    sigma = _sigma(rng) if sigma == "table" else fused.Direct(Fixed("cos"), np.ones(1))
    z = rng.standard_normal((3000, 120)).astype(np.float32)
    for kernel in (part_scores, part_slopes):
        found = kernel(partitions, sigma, z)
        with at_most(1):
            np.testing.assert_array_equal(kernel(partitions, sigma, z), found)
        np.testing.assert_array_equal(kernel(partitions, sigma, z[7:8]), found[7:8])


def test_without_a_number_both_sides_have_half(rng):
    partitions = PartModels(np.zeros((1, 1)), np.ones((1, 1)), np.ones((1, 2, 1, 2), np.float32))
    partitions.coef[0, 0, 0, 1] = 3
    sigma = fused.Direct(Fixed("relu"), np.ones(1))
    z = np.array([[np.nan]])
    assert np.isnan(part_scores(partitions, sigma, z)).all()
    partitions.coef[..., 0] = 0
    relu = part_scores(partitions, sigma, np.array([[-5.0], [0.0], [5.0]]))
    assert relu.ravel().tolist() == [3, 2, 1]


def test_arrays_that_cannot_be_written_compile_nothing_new(rng):
    from rflaf.fused.jit_parts import score_rows

    partitions, sigma = _made(rng, 2, 1, 6, 1), _sigma(rng)
    z = rng.standard_normal((4, 6)).astype(np.float32)
    part_scores(partitions, sigma, z)
    before = len(score_rows.signatures)
    for array in (z, *partitions):
        array.flags.writeable = False
    part_scores(PartModels(*(np.asfortranarray(each) for each in partitions)), sigma, z)
    assert len(score_rows.signatures) == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.lists(st.integers(0, 25), min_size=1, max_size=5), st.integers(1, 3), st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_ridge_solutions_of_parts(dtype, sizes, outputs, width):
    """Parts without rows, with fewer rows than features, and with more."""
    rng = np.random.default_rng(sum(sizes))
    phi, target = rng.standard_normal((30, width)).astype(dtype), rng.standard_normal((30, outputs))
    rows = rng.integers(0, 30, sum(sizes))
    parts = PartRows(rows, rng.uniform(0.1, 1, len(rows)), np.cumsum(sizes))
    penalties = np.array([1.0, 0.03])
    found = fit_parts(parts, phi, target, penalties)
    np.testing.assert_allclose(
        found, reference.fit_parts(parts, phi, target, penalties), rtol=1e-6, atol=1e-6
    )


def test_parts_without_a_solution_are_zero(rng):
    phi, target = rng.standard_normal((20, 4)), rng.standard_normal((20, 1))
    phi[0] = np.inf
    parts = PartRows(np.arange(20), np.ones(20), np.array([10, 20]))
    found = fit_parts(parts, phi, target, np.array([0.1]))
    assert np.all(found[0] == 0)
    assert np.all(found[1] != 0)
