"""Rows drawn by their numbers."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.rows import Block
from rflaf.rows.sample import FOLD, SAMPLE, SampleDraw, fold_cuts, fold_numbers, row_keys


@given(st.integers(0, 2**31 - 2), st.integers(0, 10**12), st.lists(st.integers(0, 30), max_size=6))
@settings(max_examples=40)
def test_keys_depend_on_the_number_alone(seed, start, sizes):
    ends = start + np.cumsum([0, *sizes])
    parts = [row_keys(seed, FOLD, a, b) for a, b in pairwise(ends)]
    whole = row_keys(seed, FOLD, start, ends[-1])
    np.testing.assert_array_equal(np.concatenate([*parts, whole[:0]]), whole)
    if whole.size:
        assert not np.array_equal(whole, row_keys(seed, SAMPLE, start, ends[-1]))


@given(st.integers(5, 400), st.sampled_from([[0.9, 0.1], [1 - 1e-5, 1e-5], [0.2] * 5]))
def test_folds_have_their_shares(n, shares):
    keys = row_keys(1, FOLD, 0, n)
    counts = np.bincount(fold_numbers(fold_cuts(keys, shares), keys), minlength=len(shares))
    assert (np.abs(counts - np.multiply(shares, n)) <= 1).all()
    assert counts[-1] > 0


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 60))
def test_draws_of_parts_are_put_together(sizes, wanted):
    """As partitions are: in any grouping, the draws that went in stay as they are."""
    ends = np.cumsum([0, *sizes])
    weights = np.where(np.arange(ends[-1]) % 5, 1.0, 0.0)

    def block(a, b):
        return Block(int(a), np.arange(a, b)[:, None], np.arange(a, b), weights[a:b])

    whole = SampleDraw(wanted, 3)
    whole.add(block(0, ends[-1]))
    parts = [SampleDraw(wanted, 3) for _ in sizes]
    for part, (a, b) in zip(parts, pairwise(ends), strict=True):
        part.add(block(a, b))
    counts = [part.count for part in parts]
    if not whole.used:
        return
    for _ in range(2):
        merged = parts[0].empty()
        for part in parts:
            merged.merge(part)
        got, expected = merged.result(), whole.result()
        np.testing.assert_array_equal(got.y, expected.y)
        np.testing.assert_array_equal(got.keys, expected.keys)
        assert (got.seen, got.used, got.whole) == (expected.seen, expected.used, expected.whole)
    assert [part.count for part in parts] == counts
