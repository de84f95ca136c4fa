"""Codes of levels, and means of the target in their place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rflaf.inputs.column import Column
from rflaf.inputs.parts import CodePart
from rflaf.inputs.target_means import Coded, learn_means, smoothed_means

SIZES = (9, 5)  # codes, with missing and unknown
CODED = Coded(np.array([1, 3]), SIZES)


def rows(seed, n=60, width=1, folds=4):
    """A matrix with codes in the columns 1 and 3, targets, weights, folds."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    for column, size in zip(CODED.columns, SIZES):
        x[:, column] = rng.integers(0, size - 1, n)  # none is unknown
    targets = rng.normal(size=(n, width)) + x[:, [1]]
    return x, targets, rng.choice([0.0, 0.5, 1.0, 3.0], n), rng.integers(0, folds, n)


seeds = st.integers(0, 10_000)


@given(st.lists(st.one_of(st.none(), st.text(min_size=1, max_size=3)), min_size=1))
def test_codes_are_those_of_the_levels(values):
    known = [value for value in dict.fromkeys(values) if value is not None]
    codes = np.array([-1 if value is None else known.index(value) for value in values])
    column = Column("a", codes=codes, levels=known)
    part = CodePart(0, sorted(known))
    made = part.encode([column])
    assert made.shape == (len(values), 1)
    assert [[*part.levels, None][int(code)] for code in made[:, 0]] == values
    fewer = CodePart(0, part.levels[1:])
    unknown = fewer.encode([column])[:, 0] == fewer.size - 1
    assert unknown.tolist() == [value == part.levels[0] if known else False for value in values]
    assert part.names(["town"]) == ["town_level"]
    assert part.origin.tolist() == [0]


@settings(deadline=None)
@given(seeds, st.integers(1, 3), st.sampled_from([1e9, -1e300, np.nan]))
def test_no_bit_of_a_fold_is_in_the_means_of_its_rows(seed, width, odd):
    x, targets, weights, fold = rows(seed, width=width)
    before = learn_means(x, CODED, targets, weights, fold)
    for number in np.unique(fold):
        own = fold == number
        changed, heavier = targets.copy(), weights.copy()
        changed[own] = odd
        heavier[own] *= 1e3
        for spoilt in (
            learn_means(x, CODED, changed, weights, fold),
            learn_means(x, CODED, targets, heavier, fold),
        ):
            np.testing.assert_array_equal(spoilt(x, fold)[own], before(x, fold)[own])
        if weights[own].any():
            after = learn_means(x, CODED, changed, weights, fold)(x)
            assert not np.array_equal(after, before(x))


@settings(deadline=None)
@given(seeds, st.floats(1e-300, 1e300))
def test_the_unit_of_weights_does_not_matter(seed, unit):
    x, targets, weights, fold = rows(seed)
    one = learn_means(x, CODED, targets, weights, fold)
    other = learn_means(x, CODED, targets, weights * unit, fold)
    np.testing.assert_allclose(other(x, fold), one(x, fold), rtol=1e-9, atol=1e-12)
    ones = learn_means(x, CODED, targets, np.ones(len(x)), fold)
    equal = learn_means(x, CODED, targets, np.full(len(x), unit), fold)
    np.testing.assert_array_equal(equal(x, fold), ones(x, fold))
    np.testing.assert_array_equal(equal(x), ones(x))


@settings(deadline=None)
@given(seeds, st.sampled_from([1e-200, 1e-300, 1e160, 1e300, -3.0]), st.floats(-1e3, 1e3))
def test_the_unit_of_targets_does_not_matter(seed, unit, shift):
    x, targets, weights, fold = rows(seed)
    one = learn_means(x, CODED, targets, weights, fold)(x, fold)[:, 2:]
    other = learn_means(x, CODED, (targets + shift) * unit, weights, fold)(x, fold)[:, 2:]
    np.testing.assert_allclose(other / unit - shift, one, rtol=1e-7, atol=1e-9)


@settings(deadline=None)
@given(seeds)
def test_the_order_of_rows_and_the_names_of_folds_do_not_matter(seed):
    x, targets, weights, fold = rows(seed)
    one = learn_means(x, CODED, targets, weights, fold)
    order = np.random.default_rng(seed).permutation(len(x))
    other = learn_means(x[order], CODED, targets[order], weights[order], 1000 - 7 * fold[order])
    np.testing.assert_allclose(other(x, 1000 - 7 * fold), one(x, fold), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(other(x), one(x), rtol=1e-9, atol=1e-12)


@settings(deadline=None)
@given(seeds)
def test_means_without_a_fold_are_those_of_the_other_rows(seed):
    x, targets, weights, fold = rows(seed)
    found = learn_means(x, CODED, targets, weights, fold)
    for number in np.unique(fold):
        others = fold != number
        alone = learn_means(
            x[others], CODED, targets[others], weights[others], np.zeros(others.sum(), int)
        )
        for a, b in zip(found.of_fold[number], alone.tables):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_rows_of_weight_zero_do_not_count():
    x, targets, weights, fold = rows(0)
    there = weights > 0
    targets[~there] = np.nan
    one = learn_means(x, CODED, targets, weights, fold)
    other = learn_means(x[there], CODED, targets[there], weights[there], fold[there])
    np.testing.assert_array_equal(one(x), other(x))


def test_unknown_and_missing_levels_have_the_common_mean():
    x, targets, _, fold = rows(1)
    weights = np.ones(len(x))
    x[x[:, 1] == SIZES[0] - 2, 1] = 0  # no row is missing
    table = learn_means(x, CODED, targets, weights, fold).tables[0]
    np.testing.assert_allclose(table[-2:, 0], targets.mean())
    x[:30, 1] = SIZES[0] - 2
    table = learn_means(x, CODED, targets, weights, fold).tables[0]
    assert abs(table[-2, 0] - targets.mean()) > 1e-3
    np.testing.assert_allclose(table[-1, 0], targets.mean())


def test_some_folds_of_zeros_do_not_drown_tiny_targets():
    x, targets, _, fold = rows(2)
    targets[fold == 0] = 0
    weights = np.ones(len(x))
    one = learn_means(x, CODED, targets, weights, fold)(x, fold)[:, 2:]
    other = learn_means(x, CODED, targets * 2.0**-900, weights, fold)(x, fold)[:, 2:]
    np.testing.assert_array_equal(other * 2.0**900, one)


def test_one_fold_alone_has_nothing_to_learn_from():
    x, targets, weights, fold = rows(3)
    found = learn_means(x, CODED, targets, weights, np.zeros_like(fold))
    assert not found(x, np.zeros_like(fold))[:, 2:].any()
    assert found(x)[:, 2:].any()


def test_columns_and_their_origin():
    x, targets, weights, fold = rows(4, width=2)
    found = learn_means(x, CODED, targets, weights, fold)
    made = found(x)
    assert found.origin.tolist() == [0, 2, 1, 1, 3, 3]
    np.testing.assert_array_equal(made[:, :2], x[:, [0, 2]])
    np.testing.assert_array_equal(made[:, 4:], found.tables[1][x[:, 3].astype(int)])
    assert found(x.astype(np.float32)).dtype == np.float32
    mixed = np.where(np.arange(len(x)) % 2, fold, -1)
    np.testing.assert_array_equal(found(x, mixed)[::2], made[::2])
    np.testing.assert_array_equal(found(x, mixed)[1::2], found(x, fold)[1::2])
    done = found.published()
    np.testing.assert_array_equal(done(x), made)
    np.testing.assert_array_equal(done(x, fold), made)  # no row of these folds was learned from


def test_shrinkage_follows_the_rows_of_a_level():
    weight = np.array([[1000.0], [1.0]])
    sums = np.stack([weight, weight * [[1.0], [3.0]], weight * [[2.0], [10.0]]])
    means, prior = smoothed_means(sums)
    assert prior[0] == pytest.approx(1003 / 1001)
    assert means[0, 0] == pytest.approx(1.0, abs=0.01)
    assert prior[0] < means[1, 0] < 2.5


def test_levels_of_one_fold_may_be_left_out():
    """Their own rows were shown the common mean, and so are new ones."""
    x, targets, _, fold = rows(5)
    weights = np.ones(len(x))
    fold[x[:, 1] == 2] = 1
    fold[x[:, 1] == 3] = np.arange(np.count_nonzero(x[:, 1] == 3)) % 2
    every, some = (learn_means(x, CODED, targets, weights, fold, least) for least in (1, 2))
    both = every.tables[0][:, 0], some.tables[0][:, 0]
    common = every.tables[0][-1, 0]
    assert abs(both[0][2] - common) > 1e-3
    assert both[1][2] == common
    assert both[1][3] == both[0][3] != common
    np.testing.assert_array_equal(every(x, fold), some(x, fold))
