"""Which rows repeat others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rflaf.rows.repeats import repeated_rows


def brute(x, y):
    """The first row with the same inputs and targets, by comparing all pairs."""
    both = np.column_stack([x, y])
    return np.array([next(i for i in range(len(x)) if (both[i] == row).all()) for row in both])


@given(
    st.lists(
        st.tuples(st.integers(-2, 2), st.sampled_from([0.0, -0.0, 2.0**60, 2.0**60 + 512])),
        min_size=2,
        max_size=120,
    ),
    st.integers(0, 2**32 - 1),
)
def test_against_all_pairs(rows, seed):
    x = np.array(rows, np.float64)
    y = np.random.default_rng(seed).integers(0, 30, len(x)) / 7
    found, expected = repeated_rows(x, y), brute(x, y)
    groups, inputs = len(np.unique(expected)), len(np.unique(x, axis=0))
    if groups in (1, len(x)) or len(np.unique(y)) < max(20, inputs / 2):
        assert found is None
    else:
        np.testing.assert_array_equal(found, expected)


def test_measurements_with_other_targets_repeat_and_levels_do_not():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(300)
    measured = np.repeat(rng.standard_normal((60, 2)), 5, axis=0)
    np.testing.assert_array_equal(repeated_rows(measured, y), np.repeat(np.arange(0, 300, 5), 5))
    assert repeated_rows(rng.integers(0, 5, (300, 2)).astype(float), y) is None


def test_classes_of_a_few_combinations_do_not_repeat():
    """In one fold they would leave it without the other classes."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 2)).astype(float)
    for y in (rng.integers(0, 3, 300), rng.choice(["a", "b"], 300), rng.integers(0, 3, 300) / 1.0):
        assert repeated_rows(X, y) is None


def test_whole_numbers_of_every_size_stay_apart():
    x = np.arange(5000.0)[:, None]
    assert repeated_rows(x, x[:, 0]) is None
    assert repeated_rows(x * 2.0**40, x[:, 0]) is None
    square = np.stack(np.meshgrid(np.arange(70.0), np.arange(70.0)), -1).reshape(-1, 2)
    assert repeated_rows(square, square[:, 0]) is None
